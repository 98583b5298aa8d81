"""What is done inside a node: copied there and run by the node's own Python, one verb a call.

    python3 agent.py VERB [JSON]        prints one line of JSON

The machine or container outlives the node's program (a container's first process only sleeps). So a killed program
leaves its network namespace behind: connections to it are reset or refused, and what is cut stays cut without a gap
while it boots. Pausing is SIGSTOP of the program, not the freezing of a container, for a frozen container takes no
verbs, and links of a paused node must be cut and healed as well.

Each life of a program has a supervisor, which adopts whatever its processes leave behind: a program is all
processes beneath it, daemons that left their session included, and it has ended when the last of them has.

Standard library only. Verbs are run outside the faked clock; the program runs inside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import glob
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

HOME = "/var/lib/stormproof"
"""All files that are brought here or written by the node lie below it, but those that a command names."""
NODE = f"{HOME}/node"
"""What a node keeps: a command's `${home}`, or `config.json` and `data/` with a Python program's disk and events."""
DISK = f"{NODE}/data/disk"
"""The disk of a Python program."""
LOGS = f"{HOME}/log"
"""Lies elsewhere than the node's data, which may be lost."""
LOG = f"{LOGS}/node.log"
RELAY = f"{HOME}/relay.py"
"""Relays what comes over impaired links (`relay.py`); its queue, and the mark of packets that it makes itself, are:"""
RELAY_QUEUE, RELAY_MARK = 21359, 0x53747270
CONTROL_GROUPS = f"{HOME}/control_groups.py"
"""Limits the program's memory, and its processes one by one (`control_groups.py`)."""
CAPTURE = f"{HOME}/capture.py"
"""Keeps packets (`capture.py`), where that is wanted."""
REAL_CLOCK = f"{HOME}/real_clock.py"
"""Sets the machine's own clock (`real_clock.py`), where that is wanted, instead of what the program reads."""
HOSTS = f"{HOME}/hosts"
STATE = "/dev/shm/stormproof"
"""Lies in memory: the clock's file is rewritten a hundred times a second while a clock drifts."""
LIMIT = f"{STATE}/limit"
"""There while the program is to have no more than a part of a processor."""
SUPERVISOR, PROGRAM, EXIT = f"{STATE}/supervisor", f"{STATE}/program", f"{STATE}/exit"
DRIFT, CLOCK, CLOCK_STATE = f"{STATE}/drift", f"{STATE}/clock", f"{STATE}/clock.json"
CHAIN, GATE = "STORM", "STORMGATE"
"""The chain in which cuts stand, and the one that leads there all but what is never cut."""
LIBFAKETIME = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/*/faketime/libfaketime.so.1")
SHARED_BY_LIBFAKETIME = ("/dev/shm/faketime_shm_[0-9]*", "/dev/shm/sem.faketime_sem_[0-9]*")
BUILT_BY_GO = b"\xff Go buildinf:"
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
PATIENCE_S = 10.0
DRIFT_STEP_S = 0.01
CGROUPS, PERIOD_US = "/sys/fs/cgroup", 100_000
LAST_WORDS_BYTES = 4096

Answer = Mapping[str, Any]
Named = Mapping[int, tuple[int, Sequence[str]]]
"""Processes: when each was started, and what it is called, by the kernel first."""


def main(arguments: Sequence[str]) -> int:
    verb, *rest = arguments
    answer = VERBS[verb](json.loads(rest[0]) if rest else {})
    print(json.dumps(answer), flush=True)
    return 0


# Processes


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and start time in ticks; None where there is no such process, or only its zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (fields[0], int(fields[1]), int(fields[19]))


def _remember(place: str, pid: int) -> None:
    stat = _stat(pid)
    if stat is not None:
        _write(place, f"{pid} {stat[2]}")


def _alive(place: str) -> int | None:
    """The process noted there, if it is still the same one."""
    try:
        with open(place, encoding="ascii") as file:
            pid, started = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    stat = _stat(pid)
    return pid if stat is not None and stat[2] == started else None


def _write(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def _processes() -> dict[int, str]:
    """The program's processes, all beneath its supervisor -> the state of each."""
    supervisor = _alive(SUPERVISOR)
    if supervisor is None:
        return {}
    everybody = {pid: stat for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if (stat := _stat(pid))}
    found: dict[int, str] = {}
    parents = {supervisor}
    while parents:
        children = {pid for pid, (_, parent, _) in everybody.items() if parent in parents}
        found |= {pid: everybody[pid][0] for pid in children}
        parents = children
    return found


def _state() -> str:
    if _alive(SUPERVISOR) is None:
        return "gone"
    processes = _processes()
    return "paused" if processes and all(state in "Tt" for state in processes.values()) else "running"


def _until(seen: Callable[[], bool], timeout_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + timeout_s
    while not seen():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _signal(number: int, wanted: tuple[str, ...]) -> Answer:
    """Send it to every process of the program, also those that are started meanwhile, until it has the wanted state."""
    before = _state()

    def arrived() -> bool:
        if _state() in wanted:
            return True
        for pid, state in _processes().items():
            if (number == signal.SIGSTOP) != (state in "Tt") or number == signal.SIGKILL:
                _send(pid, number)
        return False

    if before not in ("gone", *wanted):
        _until(arrived)
    return {"before": before, "after": _state()}


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def boot(arguments: Answer) -> Answer:
    """Start the program under a supervisor of its own; answers when it runs, or why it could not be started.

    `names`: node -> address, for names that this machine does not resolve by itself. `has_own_clock`: its wall
    clock can be made wrong.
    """
    before = _state()
    if before == "gone":
        with contextlib.suppress(FileNotFoundError):
            os.remove(EXIT)
        if arguments["was_off"]:
            _switch("-D")
        environment = {**os.environ, **arguments["environment"], **(_faked() if arguments["has_own_clock"] else {})}
        started, failed = os.pipe()
        if os.fork() == 0:
            os.close(started)
            _supervise(arguments["argv"], environment, arguments["names"], failed)
        os.close(failed)
        with os.fdopen(started, encoding="utf-8") as words:
            if why := words.read():
                raise SystemExit(why)
    return {"before": before, "after": _state()}


def _supervise(argv: Sequence[str], environment: Mapping[str, str], names: Mapping[str, str], failed: int) -> NoReturn:
    """Start the program, adopt what it leaves behind, keep its exit code, and end with the last of its processes."""
    os.setsid()
    if names and (why_not := _resolve_alone(names)):
        os.write(failed, why_not.encode())
        os._exit(127)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.makedirs(NODE, exist_ok=True)
    os.makedirs(LOGS, exist_ok=True)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    _remember(SUPERVISOR, os.getpid())
    if os.path.exists(LIMIT):
        _write_into(f"{_limited()}/cgroup.procs", str(os.getpid()))
    program = os.fork()
    if program == 0:
        try:
            os.execvpe(argv[0], list(argv), environment)
        except OSError as error:
            os.write(failed, f"{argv[0]} cannot be started: {error.strerror}".encode())
        os._exit(127)
    _remember(PROGRAM, program)
    os.close(failed)
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.wait()
            if pid == program:
                _write(EXIT, str(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _resolve_alone(names: Mapping[str, str]) -> str:
    """Let this process and what it starts, and nobody else here, resolve these names; why that failed, or empty.

    A view of the file system of its own ends with the last of these processes: the machine's /etc/hosts is not touched.
    """
    try:
        with open("/etc/hosts", encoding="utf-8", errors="replace") as file:
            others = file.read()
        _write(HOSTS, "".join(f"{address} {name}\n" for name, address in names.items()) + others)
        libc = ctypes.CDLL(None, use_errno=True)
        for call, *arguments in (
            (libc.unshare, CLONE_NEWNS),
            (libc.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None),
            (libc.mount, HOSTS.encode(), b"/etc/hosts", None, MS_BIND, None),
        ):
            if call(*arguments):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    except OSError as error:
        return f"names of nodes cannot be resolved by a view of /etc/hosts of the program's own: {error.strerror}"
    return ""


def kill(_: Answer) -> Answer:
    return _signal(signal.SIGKILL, ("gone",))


def power_off(_: Answer) -> Answer:
    """Kill the program, and let nobody hear of it: not even the end of its connections leaves the machine until it is
    booted."""
    _switch("-I")
    answer = kill({})
    subprocess.run(["ss", "-t", "-a", "-K"], capture_output=True, check=False)  # what was to be sent is gone
    return answer


def _switch(action: str) -> None:
    """No packet comes or goes from now on (-I), or all do again (-D), but within the machine. Idempotent."""
    family = _family()
    for chain, interface in (("INPUT", "-i"), ("OUTPUT", "-o")):
        rule = (chain, "!", interface, "lo", "-j", "DROP")
        is_off = subprocess.run([family, "-w", "-C", *rule], capture_output=True, check=False).returncode == 0
        if is_off != (action == "-I"):
            _tool(family, "-w", action, *rule)


def pause(_: Answer) -> Answer:
    return _signal(signal.SIGSTOP, ("paused", "gone"))


def resume(_: Answer) -> Answer:
    return _signal(signal.SIGCONT, ("running", "gone"))


def strike_processes(arguments: Answer) -> Answer:
    """Send the `signal` (KILL or STOP) to those processes of the program that are called so, and wait until it has
    done its work; answers which ones that were, and what else runs there.

    `name` fits what the kernel calls a process, its program's file, or its whole command line.
    """
    number = signal.SIGKILL if arguments["signal"] == "KILL" else signal.SIGSTOP
    running = _named_processes()
    struck = _called(arguments["name"], running)

    def done() -> bool:
        if number == signal.SIGSTOP:
            # Those as well that were started while the others were being stopped.
            struck.update(_called(arguments["name"], _named_processes()))
        left = [pid for pid, (started, _) in struck.items() if not _has_taken(pid, started, number)]
        for pid in left:
            _send(pid, number)
        return not left

    if struck and not _until(done):
        raise SystemExit(f"processes called {arguments['name']} were still running after {PATIENCE_S:g} s")
    return _describe_processes(struck, running)


def called(arguments: Answer) -> Answer:
    """As `strike_processes` answers, but nothing is done to them."""
    running = _named_processes()
    return _describe_processes(_called(arguments["name"], running), running)


def _describe_processes(struck: Named, running: Named) -> Answer:
    return {
        "struck": [[pid, started, names[0]] for pid, (started, names) in sorted(struck.items())],
        "running": sorted({names[0] for _, names in running.values()}),
    }


def _has_taken(pid: int, started: int, number: int) -> bool:
    stat = _stat(pid)
    return stat is None or stat[2] != started or (number == signal.SIGSTOP and stat[0] in "Tt")


def resume_processes(arguments: Answer) -> Answer:
    """Let these `processes` go on, so far as they are still the same; answers which ones are there."""
    there = [[pid, started, name] for pid, started, name in arguments["processes"] if _is_same(pid, started)]
    for pid, _, _ in there:
        _send(pid, signal.SIGCONT)
    return {"resumed": there}


def _is_same(pid: int, started: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[2] == started


def _called(name: str, processes: Named) -> dict[int, tuple[int, Sequence[str]]]:
    return {
        pid: (started, names)
        for pid, (started, names) in processes.items()
        if any(fnmatch.fnmatchcase(each, name) for each in names)
    }


def _named_processes() -> Named:
    """The program's processes."""
    named: dict[int, tuple[int, Sequence[str]]] = {}
    for pid in _processes():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                comm = file.read().rstrip("\n")
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().rstrip("\0").split("\0")
            if (stat := _stat(pid)) is not None:
                named[pid] = (stat[2], (comm, os.path.basename(words[0]), " ".join(words)))
    return named


def terminate(arguments: Answer) -> Answer:
    """A clean stop within a bound, by force after that. Daemons whose parent is gone are asked themselves."""
    before = resume({})["after"]
    program = _alive(PROGRAM)
    for pid in [program] if program is not None else _processes():
        _send(pid, signal.SIGTERM)
    _until(lambda: _state() == "gone", arguments["timeout_s"])
    return {"before": before, "after": kill({})["after"]}


def look(_: Answer) -> Answer:
    """The state and, of a program that has ended, its exit code (negative: the signal) and last words."""
    state = _state()
    if state != "gone":
        return {"state": state}
    try:
        with open(EXIT, encoding="ascii") as file:
            exit_code = int(file.read())
    except OSError:
        exit_code = None
    return {"state": state, "exit_code": exit_code, "last_words": _last_words()}


def supervisor(_: Answer) -> Answer:
    """Its number; 0 where nothing runs."""
    return {"pid": _alive(SUPERVISOR) or 0}


def usage(_: Answer) -> Answer:
    """Resident memory and open files of all processes of the program, together."""
    memory, handles, processes = 0, 0, 0
    for pid in _processes():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                memory += int(file.read().split()[1]) * mmap.PAGESIZE
            handles += len(os.listdir(f"/proc/{pid}/fd"))
            processes += 1
    return {"processes": processes, "memory_bytes": memory, "handles": handles}


def listens(arguments: Answer) -> Answer:
    """Whether a connection to a port of this node comes about, at the address at which other nodes reach it."""
    try:
        socket.create_connection((arguments["address"], arguments["port"]), 1.0).close()
    except OSError:
        return {"listens": False}
    return {"listens": True}


def _last_words() -> str:
    """The end of the log without the events, which have a file of their own."""
    try:
        with open(LOG, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return "\n".join(line for line in lines if not line.startswith('{"time"'))


# Packets


def _tool(*arguments: str, stdin: str | None = None) -> str:
    tool = subprocess.run(arguments, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if tool.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {tool.stderr.strip()}")
    return tool.stdout


def guard(arguments: Answer) -> Answer:
    """Make the chain in which cuts stand, before anything that the kernel would let pass; also gives the time here.

    `spared_ports`: what goes to or comes from them is never cut.
    """
    unguard({})
    family = "iptables"
    if subprocess.run(["iptables", "-w", "-S"], capture_output=True, check=False).returncode:
        family = "iptables-legacy"
    os.makedirs(STATE, exist_ok=True)
    _write(f"{STATE}/iptables", family)
    _tool(family, "-w", "-N", CHAIN)
    _tool(family, "-w", "-N", GATE)
    for port in arguments["spared_ports"]:
        for end in ("--dport", "--sport"):
            _tool(family, "-w", "-A", GATE, "-p", "tcp", end, str(port), "-j", "RETURN")
    _tool(family, "-w", "-A", GATE, "-j", CHAIN)
    _tool(family, "-w", "-I", "INPUT", "1", "-j", GATE)
    return {"monotonic_ns": time.monotonic_ns()}


def unguard(_: Answer) -> Answer:
    """Take the chains away again, and with them every cut; whether there were any."""
    try:
        with open(f"{STATE}/iptables", encoding="ascii") as file:
            family = file.read()
    except OSError:
        return {"guarded": False}
    _tool(family, "-w", "-D", "INPUT", "-j", GATE)
    for chain in (GATE, CHAIN):
        _tool(family, "-w", "-F", chain)
        _tool(family, "-w", "-X", chain)
    os.remove(f"{STATE}/iptables")
    return {"guarded": True}


def _family() -> str:
    """Which iptables there is, as `guard` has found out."""
    with open(f"{STATE}/iptables", encoding="ascii") as file:
        return file.read()


def filter_packets(arguments: Answer) -> Answer:
    """Drop all packets from the addresses `dropped`, hand those from `relayed` to the relay, and let all others pass;
    in one step.

    Answers whose packets were dropped until now, how many since the last change, and what is done from now on.
    """
    family = _family()
    counted: dict[str, int] = {}
    for line in _tool(family, "-w", "-L", CHAIN, "-n", "-v", "-x").splitlines()[2:]:
        packets, _, target, _, _, _, _, source, *_ = line.split()
        if target == "DROP":
            counted[source] = int(packets)
    rules = [f"-A {CHAIN} -s {address}/32 -j DROP" for address in arguments["dropped"]]
    if arguments["relayed"]:
        rules.append(f"-A {CHAIN} -m mark --mark {RELAY_MARK:#x} -j RETURN")
    rules += [
        f"-A {CHAIN} -s {address}/32 -j NFQUEUE --queue-num {RELAY_QUEUE} --queue-bypass"
        for address in arguments["relayed"]
    ]
    given = "\n".join(["*filter", f":{CHAIN} - [0:0]", *rules, "COMMIT", ""])
    _tool(f"{family}-restore", "-w", "--noflush", stdin=given)
    now = [line.split() for line in _tool(family, "-w", "-S", CHAIN).splitlines()]
    from_whom = {"DROP": "dropped", "NFQUEUE": "relayed"}
    done: dict[str, list[str]] = {"dropped": [], "relayed": []}
    for rule in now:
        if rule[0] == "-A" and (what := from_whom.get(rule[rule.index("-j") + 1])):
            done[what].append(rule[rule.index("-s") + 1].removesuffix("/32"))
    return {"counted": counted, **done}


# Clocks


def _faked() -> dict[str, str]:
    """What the program's wall clock reads is in a file, looked into at every reading. Empty without libfaketime.

    Rates are not left to libfaketime: it would stretch the time-outs of poll and epoll with them, so that a
    wrong wall clock slowed down timers that are on monotonic time. A process moves the offset instead.

    Where the machine's own clock is set, the program reads that.
    """
    if os.path.exists(REAL_CLOCK):
        return {}
    found = next((path for pattern in LIBFAKETIME for path in sorted(glob.glob(pattern))), None)
    if found is None:
        return {}
    if not os.path.exists(CLOCK):
        _write(CLOCK, "+0\n")
    return {
        # libc's own malloc first: jemalloc asks for the time while libfaketime asks for memory, and neither gets on.
        "LD_PRELOAD": f"{found}:libc.so.6",
        "FAKETIME_TIMESTAMP_FILE": CLOCK,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Otherwise it takes waits on monotonic time for waits on the wall clock, and a JVM's end at once or late.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def _wall_minus_monotonic_ns(environment: Mapping[str, str]) -> int:
    program = "import time; print(time.time_ns() - time.monotonic_ns())"
    command = [sys.executable, "-I", "-S", "-c", program]
    read = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return int(read.stdout)


def clock_error_s() -> float:
    """How far the program's wall clock is from the true one, asked of a process that is started as it was."""
    return round((_wall_minus_monotonic_ns(_faked()) - (time.time_ns() - time.monotonic_ns())) / 1e9, 6)


def set_clock(arguments: Answer) -> Answer:
    """An offset from the true time, and a rate from now on, beside the strobes that there are."""
    before_s = clock_error_s()
    changed = {"offset_s": float(arguments["offset_s"]), "rate": float(arguments["rate"]), "since": time.monotonic()}
    _move_clock({**_clock(), **changed})
    return {"before_s": before_s, "after_s": clock_error_s(), "unreached": _unreached()}


def strobe(arguments: Answer) -> Answer:
    """Let the clock flip by each of these offsets, and by no others, beside what else is wrong with it."""
    _move_clock({**_clock(), "strobes": arguments["strobes"]})
    return {"unreached": _unreached()}


def _clock() -> dict[str, Any]:
    """What is wrong with the clock now."""
    try:
        with open(CLOCK_STATE, encoding="utf-8") as file:
            state: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return {"offset_s": 0.0, "rate": 1.0, "since": time.monotonic(), "strobes": []}
    return state


def _move_clock(state: Answer) -> None:
    """Set it, by a process that goes on doing so where it does not stay as it is."""
    if not _faked():
        raise SystemExit("libfaketime is not installed here, without which no clock can be wrong for one program alone")
    drifting = _alive(DRIFT)
    if drifting is not None:
        os.kill(drifting, signal.SIGKILL)
        _until(lambda: _alive(DRIFT) is None)
    _write(CLOCK_STATE, json.dumps(state))
    _write_clock(_offset_s(state, time.monotonic()))
    if state["rate"] != 1.0 or state["strobes"]:
        command = [sys.executable, "-I", "-S", __file__, "drift", json.dumps(state)]
        quiet = subprocess.DEVNULL
        started = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        _remember(DRIFT, started.pid)
        if _alive(DRIFT) is None:
            raise SystemExit("what moves the clock has ended at once")


def _unreached() -> list[str]:
    return [why for pid in _processes() if (why := _why_not_faked(pid))]


def _why_not_faked(pid: int) -> str:
    """Why a process of the program reads the true time all the same; empty if it does not, or has ended."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            maps = file.read()
        program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/exe", "rb") as binary, mmap.mmap(binary.fileno(), 0, access=mmap.ACCESS_READ) as code:
            is_go = code.find(BUILT_BY_GO) >= 0
    except OSError as error:
        return "" if _stat(pid) is None else f"process {pid} cannot be looked into: {error.strerror}"
    if "libfaketime" not in maps:
        return f"{program} has not loaded libfaketime (a static program?)"
    return f"{program} is built by Go, which asks the kernel for the time" if is_go else ""


def drift(state: Answer) -> Answer:
    """Move the clock's file until killed."""
    periods_s = [one["period_ms"] / 1e3 for one in state["strobes"]]
    while True:
        now = time.monotonic()
        _write_clock(_offset_s(state, now))
        next_flips = [period_s - now % period_s for period_s in periods_s]
        time.sleep(min((*next_flips, *((DRIFT_STEP_S,) if state["rate"] != 1.0 else ()))))


def _offset_s(state: Answer, now: float) -> float:
    """Strobes of one period flip at the same moments, whenever they began."""
    flips_s = [one["offset_ms"] / 1e3 for one in state["strobes"] if int(now / (one["period_ms"] / 1e3)) % 2]
    return float(state["offset_s"] + (now - state["since"]) * (state["rate"] - 1.0) + sum(flips_s))


def _write_clock(offset_s: float) -> None:
    _write(CLOCK, f"{offset_s:+.9f}\n")


# Processors


def limit(arguments: Answer) -> Answer:
    """Give all processes of the program together no more than such a `share` of one processor; 0 is all there is.

    Only on machines: a container's limit is its engine's.
    """
    share = float(arguments["share"])
    group = _limited()
    os.makedirs(group, exist_ok=True)
    quota_us = max(1000, round(share * PERIOD_US)) if share else 0
    if os.path.exists(f"{group}/cpu.max"):
        _write_into(f"{group}/cpu.max", f"{quota_us or 'max'} {PERIOD_US}")
    else:
        _write_into(f"{group}/cpu.cfs_period_us", str(PERIOD_US))
        _write_into(f"{group}/cpu.cfs_quota_us", str(quota_us or -1))
    _write(LIMIT, str(share))
    for pid in (_alive(SUPERVISOR), *_processes()):
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                _write_into(f"{group}/cgroup.procs", str(pid))
    return {"quota_us": quota_us}


def _limited() -> str:
    """The control group of the program. Raises SystemExit where this machine lets nobody make one."""
    root = CGROUPS if os.path.exists(f"{CGROUPS}/cgroup.subtree_control") else f"{CGROUPS}/cpu"
    if not os.access(root, os.W_OK):
        raise SystemExit(f"{root} cannot be written, so no control group can limit a program's processor")
    if root == CGROUPS:
        _write_into(f"{root}/cgroup.subtree_control", "+cpu")
    return f"{root}/stormproof-{socket.gethostname()}"


def _write_into(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _unlimit() -> None:
    """Once its processes are gone."""
    if os.path.exists(LIMIT):
        os.remove(LIMIT)
        group = _limited()
        _until(lambda: _removed(group))


def _removed(group: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rmdir(group)
        except OSError:
            return False
    return True


# The end


def leave(_: Answer) -> Answer:
    """Give the machine its clock back, end the program and what moves its clock, heal the network, and forget that."""
    before = _state()
    if os.path.exists(REAL_CLOCK):  # first of all: whatever else fails, others live by this clock
        _tool(sys.executable, "-I", "-S", REAL_CLOCK, "give_back", "{}")
    kill({})
    drifting = _alive(DRIFT)
    if drifting is not None:
        _send(drifting, signal.SIGKILL)
    _unlimit()
    guarded = unguard({})["guarded"]
    if os.path.exists(CONTROL_GROUPS):
        for verb in ("release", "unthrottle"):
            _tool(sys.executable, "-I", "-S", CONTROL_GROUPS, verb, "{}")
    if os.path.exists(CAPTURE):
        _tool(sys.executable, "-I", "-S", CAPTURE, "end", "{}")
    if os.path.exists(RELAY):
        _tool(sys.executable, "-I", "-S", RELAY, "end", "{}")
    for place in (SUPERVISOR, PROGRAM, EXIT, DRIFT, CLOCK, CLOCK_STATE, *_orphans_of_libfaketime()):
        with contextlib.suppress(FileNotFoundError):
            os.remove(place)
    return {"before": before, "after": _state(), "guarded": guarded}


def _orphans_of_libfaketime() -> list[str]:
    """What it shared among processes by the number of one that was killed, and so did not remove it."""
    shared = [path for pattern in SHARED_BY_LIBFAKETIME for path in sorted(glob.glob(pattern))]
    return [path for path in shared if _stat(int(path.rpartition("_")[2])) is None]


VERBS: Mapping[str, Callable[[Answer], Answer]] = {
    verb.__name__: verb
    for verb in (
        boot,
        kill,
        power_off,
        pause,
        resume,
        strike_processes,
        resume_processes,
        called,
        terminate,
        look,
        supervisor,
        usage,
        listens,
        guard,
        unguard,
        filter_packets,
        set_clock,
        strobe,
        limit,
        drift,
        leave,
    )
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
