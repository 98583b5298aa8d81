"""One node that runs somewhere else, with the verbs that act on it. Everything here blocks."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from harness.environments.environment import Usage
from harness.environments.impairment import Strobe
from harness.environments.remote import agent, capture, control_groups, real_clock, relay
from harness.environments.remote.launch import Launch, launch_of
from harness.environments.remote.logs import bring_home
from harness.environments.remote.machines import NodeMachine, Squeezed
from harness.environments.remote.struck_processes import OneProcess, Struck
from harness.errors import HarnessError
from harness.printable import last_lines
from harness.program import Command, Listening, Program, Succeeding, image_of
from harness.system import NodeSpec

CLEAN_STOP_S = 10.0
AGENT = f"{agent.HOME}/agent.py"
TOOLS: Mapping[str, Any] = {AGENT: agent, agent.RELAY: relay, agent.CONTROL_GROUPS: control_groups}
"""What is brought to a node, by where it is there."""


def remote_node(
    spec: NodeSpec, place: NodeMachine, addresses: Mapping[str, str], *, has_own_clock: bool = True
) -> RemoteNode:
    """`addresses`: node -> where other nodes reach it. Raises UsageError for a text that names what is not there."""
    return RemoteNode(
        name=spec.name,
        address=addresses[spec.name],
        place=place,
        program=spec.program,
        launch=launch_of(spec.name, spec.program, addresses),
        upgraded=None if spec.upgraded is None else launch_of(spec.name, spec.upgraded, addresses),
        has_own_clock=has_own_clock,
    )


@dataclass(kw_only=True)
class RemoteNode:
    """The agent beside the node's program, which comes and goes, asked through a shell."""

    name: str
    address: str
    """The address at which other nodes reach it."""
    place: NodeMachine
    program: Program
    launch: Launch
    upgraded: Launch | None = None
    """What it is to run instead from its upgrade on; None where there is nothing, or it does already."""
    has_own_clock: bool = True
    """Its program reads a clock that can be wrong."""
    deaths: list[str] = field(default_factory=list)
    """The last words of each life that ended of its own accord."""
    _should_run: bool = False
    _is_off: bool = False
    """Without power."""
    _troubles: int = 0
    """How many impairments there are by which it may end."""
    _ended_in_trouble: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self) -> int:
        """Bring the agent to the node; returns what CLOCK_MONOTONIC is there. Raises HarnessError."""
        self.place.shell.put({path: Path(module.__file__).read_bytes() for path, module in TOOLS.items()})
        if self.place.lends_clock:
            self.place.shell.put({agent.REAL_CLOCK: Path(real_clock.__file__).read_bytes()})
        here: int = self._ask("guard", {"spared_ports": self.place.spared_ports})["monotonic_ns"]
        return here

    def capture_packets(self) -> None:
        """Keep packets from now on, until the logs come home. Raises HarnessError where that cannot be."""
        self.place.shell.put({agent.CAPTURE: Path(capture.__file__).read_bytes()})
        self._ask("begin", {"spared_ports": self.place.spared_ports}, tool=agent.CAPTURE)

    # Verbs: each returns what it did, or "" where there was nothing to do ----------------------------------------

    def boot(self) -> str:
        self.look()
        if self._should_run:
            return ""
        self.place.shell.put(self.launch.files)
        environment = {**self.place.environment, **self.launch.environment}
        names = dict(self.place.names)
        start = {"argv": self.launch.argv, "environment": environment, "names": names, "was_off": self._is_off}
        start["has_own_clock"] = self.has_own_clock
        answer = self._ask("boot", start)
        self._should_run, self._is_off = True, False
        return f"{self.name} ({answer['after']})"

    def upgrade(self) -> str:
        """End the program cleanly and start the one that takes its place."""
        if self.upgraded is None:
            return ""
        self._terminate(CLEAN_STOP_S)
        self.launch, self.upgraded = self.upgraded, None
        return self.boot()

    def replace_program(self, program: Program, addresses: Mapping[str, str]) -> str:
        """From its next boot on. Raises HarnessError where its image has not what the program needs."""
        if image_of(program) != image_of(self.program):
            raise HarnessError(f"{self.name} cannot be another program in its container: that needs another image")
        launch = launch_of(self.name, program, addresses)
        if launch == self.launch:
            return ""
        self.program, self.launch = program, launch
        return self.name

    def is_ready(self) -> bool:
        """What the program's probe says. Raises HarnessError with its last words if the program has ended meanwhile."""
        self.look()
        if self.deaths:
            raise HarnessError(f"{self.name} ended before it was ready: {last_lines(self.deaths[-1])}")
        match self.launch.ready:
            case Listening(port=port):
                return bool(self._ask("listens", {"address": self.address, "port": port})["listens"])
            case Succeeding(argv=argv):
                return self.place.shell.run(argv).exit_code == 0
        return True

    def kill(self) -> str:
        self.look()
        self._should_run = self._ended_in_trouble = False
        return self._changed(self._ask("kill"))

    def power_off(self) -> str:
        self.look()
        self._should_run = self._ended_in_trouble = False
        self._is_off = True
        return self._changed(self._ask("power_off"))

    def pause(self) -> str:
        return self._changed(self._ask("pause"))

    def resume(self) -> str:
        return self._changed(self._ask("resume"))

    def kill_processes(self, name: str) -> Struck:
        return self._strike(name, "KILL")

    def pause_processes(self, name: str) -> Struck:
        return self._strike(name, "STOP")

    def resume_processes(self, processes: Sequence[OneProcess]) -> Sequence[OneProcess]:
        answer = self._ask("resume_processes", {"processes": [astuple(one) for one in processes]})
        return [OneProcess(*one) for one in answer["resumed"]]

    def lacks_process(self, name: str) -> bool:
        """Whether the program runs, but no process of this name."""
        self.look()
        return self._should_run and not self._struck("called", {"name": name}).processes

    def _strike(self, name: str, signal: str) -> Struck:
        self.look()
        return self._struck("strike_processes", {"name": name, "signal": signal})

    def _struck(self, verb: str, arguments: Mapping[str, Any]) -> Struck:
        answer = self._ask(verb, arguments)
        return Struck(processes=tuple(OneProcess(*one) for one in answer["struck"]), others=tuple(answer["running"]))

    def filter_packets(self, *, dropped: Sequence[str], relayed: Sequence[str]) -> Mapping[str, int]:
        """Drop packets from the first addresses, relay those from the second, and let all others pass; answers how many
        were dropped until now, by address."""
        wanted = {"dropped": list(dropped), "relayed": list(relayed)}
        answer = self._ask("filter_packets", wanted)
        for what, addresses in wanted.items():
            if sorted(answer[what]) != sorted(addresses):
                raise HarnessError(f"{self.name} should have packets {what} from {addresses}, but has from {answer}")
        counted: Mapping[str, int] = answer["counted"]
        return counted

    def require_relay(self) -> None:
        """Raises HarnessError where packets cannot be relayed on this machine."""
        try:
            self._ask("try", tool=agent.RELAY)
        except HarnessError as error:
            raise HarnessError(
                f"{error}; delay, loss and whatever else is wrong with links needs a Linux kernel with nfnetlink_queue "
                "(modprobe nfnetlink_queue); partition, links and pause do without"
            ) from None

    def relay(self, table: Mapping[str, Sequence[Mapping[str, Any]]]) -> Mapping[str, int]:
        """Let the relay do as its table says; answers how many packets each impairment that is no more has struck, by
        its number. Raises HarnessError, also where the relay has ended by itself meanwhile."""
        answer = self._ask("ask", table, tool=agent.RELAY)
        if answer["lost"]:
            raise HarnessError(f"the relay of {self.name} has ended, and with it what was wrong with its links")
        struck: Mapping[str, int] = answer["struck"]
        return struck

    def reset(self, sources: Sequence[str]) -> Mapping[str, int]:
        """End the connections with these addresses by RST; how many of each were ended."""
        ends = {"addresses": list(sources), "spared_ports": self.place.spared_ports}
        ended: Mapping[str, int] = self._ask("reset", ends, tool=agent.RELAY)["ended"]
        return ended

    def set_clock(self, offset_s: float, rate: float) -> Mapping[str, Any]:
        """The clock's error before and after, whether it drifts, and which processes do not read it."""
        return self._ask("set_clock", {"offset_s": offset_s, "rate": rate}, tool=self._clock)

    @property
    def _clock(self) -> str:
        """What changes it."""
        return agent.REAL_CLOCK if self.place.lends_clock else AGENT

    def strobe(self, strobes: Sequence[Strobe]) -> str:
        """Let its clock flip by all of these and no others; which processes do not read it, or empty."""
        wanted = {"strobes": [asdict(one) for one in strobes]}
        unreached = self._ask("strobe", wanted, tool=self._clock)["unreached"]
        return f"{self.name} reads the true time: {', '.join(unreached)}" if unreached else ""

    def limit_processor(self, share: float) -> None:
        """By a control group on the machine; 0: as much as there is."""
        self._ask("limit", {"share": share})

    def supervisor(self) -> int:
        return int(self._ask("supervisor")["pid"])

    def squeeze_memory(self, left_bytes: int) -> Squeezed:
        """By a control group on the machine."""
        if not (supervisor := self.supervisor()):
            return Squeezed(killed=0)
        answer = self._ask("squeeze", {"supervisor": supervisor, "bytes": left_bytes}, tool=agent.CONTROL_GROUPS)
        return Squeezed(names=tuple(answer["names"]), killed=answer["killed"])

    def release_memory(self) -> Squeezed:
        answer = self._ask("release", {"supervisor": self.supervisor()}, tool=agent.CONTROL_GROUPS)
        return Squeezed(killed=answer["killed"])

    def named_processes(self, name: str) -> Struck:
        """Nothing is done to them."""
        self.look()
        return self._struck("called", {"name": name})

    def throttle(self, number: int, pids: Sequence[int], share: float) -> None:
        """By a control group on the machine."""
        wanted = {"number": number, "pids": list(pids), "share": share}
        self._ask("throttle", wanted, tool=agent.CONTROL_GROUPS)

    def unthrottle(self, number: int) -> int:
        answer = self._ask("unthrottle", {"number": number, "supervisor": self.supervisor()}, tool=agent.CONTROL_GROUPS)
        return int(answer["processes"])

    @property
    def spared(self) -> Sequence[str]:
        """Files that are written before each boot, as its disk calls them."""
        home = f"{agent.NODE}/"
        return [path.removeprefix(home) for path in self.launch.files if path.startswith(home)]

    def begin_trouble(self) -> None:
        """Its disk fails from now on, or its processes are struck: what ends by itself then has not panicked."""
        self.look()
        self._troubles += 1

    def end_trouble(self) -> bool:
        """Whether it has ended by itself since, and is to be booted."""
        self.look()
        self._troubles -= 1
        if self._troubles:
            return False
        ended, self._ended_in_trouble = self._ended_in_trouble, False
        return ended

    def usage(self) -> Usage | None:
        """What the program holds of its machine; None where it is down."""
        held = self._ask("usage")
        if not held["processes"]:
            return None
        return Usage(memory_bytes=held["memory_bytes"], handles=held["handles"])

    def end(self) -> None:
        """For good: what a clean stop would leave is not needed any more."""
        self._terminate(self.program.stops_within_s if isinstance(self.program, Command) else CLEAN_STOP_S)

    def _terminate(self, timeout_s: float) -> None:
        self.look()
        if self._should_run:
            self._should_run = False
            self._ask("terminate", {"timeout_s": timeout_s})

    def look(self) -> None:
        """Note if the program has ended of its own accord."""
        if not self._should_run:
            return
        seen = self._ask("look")
        if seen["state"] == "gone":
            self._should_run = False
            if self._troubles:
                self._ended_in_trouble = True
                return
            self.deaths.append(f"exit code {seen['exit_code']}\n{seen['last_words']}".strip())

    def bring_logs_home(self, directory: Path, *, zero_ns: int) -> None:
        bring_home(self.place.shell, directory, zero_ns=zero_ns, logs=self.launch.logs)

    def _changed(self, answer: Mapping[str, Any]) -> str:
        before, after = answer["before"], answer["after"]
        return "" if before == after else f"{self.name} ({before} → {after})"

    def _ask(self, verb: str, arguments: Mapping[str, Any] | None = None, *, tool: str = AGENT) -> Mapping[str, Any]:
        # One at a time: a verb whose caller gave up still runs, and the next must find what it left.
        with self._lock:
            # The program's Python is not isolated as the agent's is: it finds its packages through PYTHONPATH.
            finished = self.place.shell.run(["python3", "-I", "-S", tool, verb, json.dumps(dict(arguments or {}))])
        if finished.exit_code:
            last = finished.errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise HarnessError(f"{verb} in {self.name} failed: {last}")
        try:
            answer: Mapping[str, Any] = json.loads(finished.output)
        except ValueError:
            shown = finished.output[:200].decode(errors="replace")
            raise HarnessError(f"{verb} in {self.name} should answer with JSON, and answered {shown!r}") from None
        return answer
