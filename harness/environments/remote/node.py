"""One node that runs somewhere else, with the verbs that act on it. Everything here blocks."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.environments.environment import Usage
from harness.environments.remote import agent
from harness.environments.remote.launch import Launch, launch_of
from harness.environments.remote.logs import bring_home
from harness.environments.remote.machines import Place
from harness.errors import HarnessError
from harness.program import Listening, Succeeding
from harness.system import NodeSpec

CLEAN_STOP_S = 10.0
AGENT = f"{agent.HOME}/agent.py"


def remote_node(spec: NodeSpec, place: Place, addresses: Mapping[str, str]) -> RemoteNode:
    """`addresses`: node -> where other nodes reach it. Raises UsageError for a text that names what is not there."""
    return RemoteNode(
        name=spec.name,
        address=addresses[spec.name],
        place=place,
        launch=launch_of(spec.name, spec.program, addresses),
        upgraded=None if spec.upgraded is None else launch_of(spec.name, spec.upgraded, addresses),
    )


@dataclass(kw_only=True)
class RemoteNode:
    """The agent beside the node's program, which comes and goes, asked through a shell."""

    name: str
    address: str
    """At which other nodes reach it."""
    place: Place
    launch: Launch
    upgraded: Launch | None = None
    """What it is to run instead from its upgrade on; None where there is nothing, or it does already."""
    deaths: list[str] = field(default_factory=list)
    """The last words of each life that ended of its own accord."""
    _should_run: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self) -> int:
        """Bring the agent to the node; returns what CLOCK_MONOTONIC is there. Raises HarnessError."""
        self.place.shell.put({AGENT: Path(agent.__file__).read_bytes()})
        here: int = self._ask("guard", {"spared_ports": self.place.spared_ports})["monotonic_ns"]
        return here

    # Verbs: each returns what it did, or "" where there was nothing to do ----------------------------------------

    def boot(self) -> str:
        self.look()
        if self._should_run:
            return ""
        self.place.shell.put(self.launch.files)
        environment = {**self.place.environment, **self.launch.environment}
        names = dict(self.place.names)
        answer = self._ask("boot", {"argv": self.launch.argv, "environment": environment, "names": names})
        self._should_run = True
        return f"{self.name} ({answer['after']})"

    def upgrade(self) -> str:
        """End the program cleanly and start the one that takes its place."""
        if self.upgraded is None:
            return ""
        self.terminate()
        self.launch, self.upgraded = self.upgraded, None
        return self.boot()

    def is_ready(self) -> bool:
        """What the program's probe says. Raises HarnessError with its last words if the program has ended meanwhile."""
        self.look()
        if self.deaths:
            raise HarnessError(f"{self.name} ended before it was ready: {self.deaths[-1]}")
        match self.launch.ready:
            case Listening(port=port):
                return bool(self._ask("listens", {"address": self.address, "port": port})["listens"])
            case Succeeding(argv=argv):
                return self.place.shell.run(argv).exit_code == 0
        return True

    def kill(self) -> str:
        self.look()
        self._should_run = False
        return self._changed(self._ask("kill"))

    def pause(self) -> str:
        return self._changed(self._ask("pause"))

    def resume(self) -> str:
        return self._changed(self._ask("resume"))

    def drop(self, sources: Sequence[str]) -> Mapping[str, Any]:
        """Drop packets from these addresses and no others; `counted` says how many were dropped until now."""
        answer = self._ask("drop", {"sources": list(sources)})
        if sorted(answer["sources"]) != sorted(sources):
            raise HarnessError(f"{self.name} should drop packets from {sources}, but does from {answer}")
        return answer

    def set_clock(self, offset_s: float, rate: float) -> Mapping[str, Any]:
        """The clock's error before and after, whether it drifts, and which processes do not read it."""
        return self._ask("set_clock", {"offset_s": offset_s, "rate": rate})

    def usage(self) -> Usage | None:
        """What the program holds of its machine; None where it is down."""
        held = self._ask("usage")
        if not held["processes"]:
            return None
        return Usage(memory_bytes=held["memory_bytes"], handles=held["handles"])

    def terminate(self) -> None:
        self.look()
        if self._should_run:
            self._should_run = False
            self._ask("terminate", {"timeout_s": CLEAN_STOP_S})

    def look(self) -> None:
        """Note if the program has ended of its own accord."""
        if not self._should_run:
            return
        seen = self._ask("look")
        if seen["state"] == "gone":
            self._should_run = False
            self.deaths.append(f"exit code {seen['exit_code']}\n{seen['last_words']}".strip())

    def bring_logs_home(self, directory: Path, *, zero_ns: int) -> None:
        bring_home(self.place.shell, directory, zero_ns=zero_ns)

    def _changed(self, answer: Mapping[str, Any]) -> str:
        before, after = answer["before"], answer["after"]
        return "" if before == after else f"{self.name} ({before} → {after})"

    def _ask(self, verb: str, arguments: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        # One at a time: a verb whose caller gave up still runs, and the next must find what it left.
        with self._lock:
            # The program's Python is not isolated as the agent's is: it finds its packages through PYTHONPATH.
            finished = self.place.shell.run(["python3", "-I", "-S", AGENT, verb, json.dumps(dict(arguments or {}))])
        if finished.exit_code:
            last = finished.errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise HarnessError(f"{verb} in {self.name} failed: {last}")
        answer: Mapping[str, Any] = json.loads(finished.output)
        return answer
