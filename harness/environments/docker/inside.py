"""What is done inside a node's container: copied into it and run there by the node's own Python, one verb a call.

    python3 inside.py VERB [JSON]        prints one line of JSON

The container outlives the node's program: its first process only sleeps. So a killed program leaves its network
namespace behind, as a dead process leaves its machine: connections to it are reset or refused, and what is cut
stays cut without a gap while it boots. Pausing is SIGSTOP of the program, not the freezing of the container, for
a frozen container takes no verbs, and links of a paused node must be cut and healed as well.

Standard library only. Verbs are run outside the faked clock; the program runs inside it.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NODE = "/node"
"""A volume: `config.json`, `node.log`, and `data/` with the program's disk and events."""
LOG = f"{NODE}/node.log"
STATE = "/dev/shm"
"""In memory: the clock's file is rewritten a hundred times a second while a clock drifts."""
PROGRAM, DRIFT, CLOCK = f"{STATE}/program", f"{STATE}/drift", f"{STATE}/clock"
CHAIN = "STORM"
LIBFAKETIME = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/*/faketime/libfaketime.so.1")
PATIENCE_S = 10.0
DRIFT_STEP_S = 0.01
LAST_WORDS_BYTES = 4096

Answer = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    verb, *rest = arguments
    answer = VERBS[verb](json.loads(rest[0]) if rest else {})
    print(json.dumps(answer), flush=True)
    return 0


# Processes


def _stat(pid: int) -> tuple[str, int] | None:
    """State and start time in ticks; None where there is no such process, or only its zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (fields[0], int(fields[19]))


def _remember(place: str, pid: int, life: int = 0) -> None:
    stat = _stat(pid)
    if stat is not None:
        _write(place, f"{pid} {stat[1]} {life}")


def _noted(place: str) -> tuple[int, int, int] | None:
    """Process, start time and life."""
    try:
        with open(place, encoding="ascii") as file:
            pid, started, life = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return pid, started, life


def _write(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def _alive(place: str) -> int | None:
    """The process noted there, if it is still the same one."""
    noted = _noted(place)
    stat = None if noted is None else _stat(noted[0])
    return noted[0] if noted is not None and stat is not None and stat[1] == noted[1] else None


def _state() -> str:
    pid = _alive(PROGRAM)
    stat = None if pid is None else _stat(pid)
    if stat is None:
        return "gone"
    return "paused" if stat[0] in "Tt" else "running"


def _until(seen: Callable[[], bool], timeout_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + timeout_s
    while not seen():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _signal(number: int, wanted: tuple[str, ...], timeout_s: float = PATIENCE_S) -> Answer:
    """Send it, wait for its effect, and tell the state before and after."""
    before, pid = _state(), _alive(PROGRAM)
    if pid is not None and before not in wanted:
        os.kill(pid, number)
        _until(lambda: _state() in wanted, timeout_s)
    return {"before": before, "after": _state()}


def boot(arguments: Answer) -> Answer:
    """Becomes the program; never returns."""
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    _remember(PROGRAM, os.getpid(), arguments["life"])
    command = ["python3", "-m", "system_under_test.runtime.real", arguments["main"], f"{NODE}/config.json"]
    os.execvpe(command[0], command, {**os.environ, **_faked()})


def booted(arguments: Answer) -> Answer:
    """Wait until `boot` has become the program in this life of the node."""

    def seen() -> bool:
        noted = _noted(PROGRAM)
        return noted is not None and noted[2] == arguments["life"]

    return {"seen": _until(seen), "after": _state()}


def kill(_: Answer) -> Answer:
    return _signal(signal.SIGKILL, ("gone",))


def pause(_: Answer) -> Answer:
    return _signal(signal.SIGSTOP, ("paused", "gone"))


def resume(_: Answer) -> Answer:
    return _signal(signal.SIGCONT, ("running", "gone"))


def terminate(arguments: Answer) -> Answer:
    """A clean stop within a bound, by force after that."""
    resume({})
    answer = _signal(signal.SIGTERM, ("gone",), arguments["timeout_s"])
    return answer if answer["after"] == "gone" else kill({})


def last_words(_: Answer) -> Answer:
    """The end of the log without the events, which have a file of their own."""
    try:
        with open(LOG, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return {"words": "\n".join(line for line in lines if not line.startswith('{"time"'))}


# Packets


def _tool(*arguments: str, given: str | None = None) -> str:
    told = subprocess.run(arguments, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if told.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {told.stderr.strip()}")
    return told.stdout


def guard(_: Answer) -> Answer:
    """Make the chain in which cuts stand, before anything that the kernel would let pass; also tells the time here."""
    family = "iptables"
    if subprocess.run(["iptables", "-w", "-S"], capture_output=True, check=False).returncode:
        family = "iptables-legacy"
    _write(f"{STATE}/iptables", family)
    _tool(family, "-w", "-N", CHAIN)
    _tool(family, "-w", "-I", "INPUT", "1", "-j", CHAIN)
    return {"monotonic_ns": time.monotonic_ns()}


def drop(arguments: Answer) -> Answer:
    """Drop all packets from these addresses and from no others, in one step.

    Tells whose packets were dropped until now, how many since the last change, and whose are from now on.
    """
    with open(f"{STATE}/iptables", encoding="ascii") as file:
        family = file.read()
    counted: dict[str, int] = {}
    for line in _tool(family, "-w", "-L", CHAIN, "-n", "-v", "-x").splitlines()[2:]:
        fields = line.split()
        counted[fields[7]] = int(fields[0])
    rules = [f"-A {CHAIN} -s {address}/32 -j DROP" for address in arguments["sources"]]
    given = "\n".join(["*filter", f":{CHAIN} - [0:0]", *rules, "COMMIT", ""])
    _tool(f"{family}-restore", "-w", "--noflush", given=given)
    now = [line.split() for line in _tool(family, "-w", "-S", CHAIN).splitlines()]
    return {"counted": counted, "sources": [rule[3].removesuffix("/32") for rule in now if rule[0] == "-A"]}


# Clocks


def _faked() -> dict[str, str]:
    """What the program's wall clock reads is in a file, looked into at every reading.

    Rates are not left to libfaketime: it would stretch the time-outs of poll and epoll with them, so that a
    wrong wall clock slowed down timers that are on monotonic time. A process moves the offset instead.
    """
    found = next((path for pattern in LIBFAKETIME for path in sorted(glob.glob(pattern))), None)
    if found is None:
        raise SystemExit("the image has no libfaketime")
    if not os.path.exists(CLOCK):
        _write(CLOCK, "+0\n")
    return {
        "LD_PRELOAD": found,
        "FAKETIME_TIMESTAMP_FILE": CLOCK,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _wall_minus_monotonic_ns(environment: Mapping[str, str]) -> int:
    program = "import time; print(time.time_ns() - time.monotonic_ns())"
    command = [sys.executable, "-I", "-S", "-c", program]
    told = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return int(told.stdout)


def clock_error_s() -> float:
    """How far the program's wall clock is from the true one, asked of a process that is started as it was."""
    return round((_wall_minus_monotonic_ns(_faked()) - (time.time_ns() - time.monotonic_ns())) / 1e9, 6)


def set_clock(arguments: Answer) -> Answer:
    before_s = clock_error_s()
    drifting = _alive(DRIFT)
    if drifting is not None:
        os.kill(drifting, signal.SIGKILL)
        _until(lambda: _alive(DRIFT) is None)
    offset_s, rate = float(arguments["offset_s"]), float(arguments["rate"])
    _write_clock(offset_s)
    if rate != 1.0:
        command = [sys.executable, "-I", "-S", __file__, "drift", json.dumps({"offset_s": offset_s, "rate": rate})]
        quiet = subprocess.DEVNULL
        started = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        _remember(DRIFT, started.pid)
    return {"before_s": before_s, "after_s": clock_error_s(), "drifts": _alive(DRIFT) is not None}


def drift(arguments: Answer) -> Answer:
    """Move the clock's file until killed."""
    start, offset_s, rate = time.monotonic(), arguments["offset_s"], arguments["rate"]
    while True:
        _write_clock(offset_s + (time.monotonic() - start) * (rate - 1.0))
        time.sleep(DRIFT_STEP_S)


def _write_clock(offset_s: float) -> None:
    _write(CLOCK, f"{offset_s:+.9f}\n")


VERBS: Mapping[str, Callable[[Answer], Answer]] = {
    verb.__name__: verb
    for verb in (boot, booted, kill, pause, resume, terminate, last_words, guard, drop, set_clock, drift)
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
