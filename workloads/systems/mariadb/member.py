"""What an administrator does at one server of a Galera cluster, so that the cluster comes back whatever went down.

    python3 member.py NAME MEMBER,MEMBER… DIRECTORY

It is the program of a node: it keeps the server running, and tells the other members how far this one is. By the
vendor's pages (https://galeracluster.com/library/documentation/crash-recovery.html and quorum-reset.html there):

- Before each start the server's position in the history of the cluster is recovered.
- While some member runs, one that does not joins it. Servers that went down together and remember the same component
  form it again by themselves.
- Only where all members are down, and all their positions are known, the one that is furthest is marked as safe to
  bootstrap and begins the cluster anew; what it does not have is lost.
- Where all run, but outside of a primary component for a while, the furthest one is told to be one.

A member that does not answer may be ahead, or serve: nothing is begun anew without it. Standard library only; it is
copied into the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum, StrEnum
from pathlib import Path

PORT = 4570
CONFIG = "/etc/start.cnf"
NOWHERE = "00000000-0000-0000-0000-000000000000"
POSITION = re.compile(r"Recovered position:\s*([0-9a-f-]{36}):(-?[0-9]+)")
ANSWER_TIMEOUT_S = 1.0
EVERY_S = 0.5
PATIENCE_S = 10.0
"""So long a component is given to come about by itself."""


class Status(StrEnum):
    DOWN = "down"
    APART = "apart"
    """It runs, outside of a primary component as far as it is known."""
    PRIMARY = "primary"


class Step(Enum):
    WAIT = "wait"
    JOIN = "join"
    BOOTSTRAP = "bootstrap"


@dataclass(frozen=True)
class State:
    """Of one member."""

    status: Status
    history: str = NOWHERE
    """The name of the cluster's history."""
    seqno: int = -1
    """The last of its transactions that this member has."""


def furthest(states: Mapping[str, State]) -> str:
    """The member that has most; of equals the first by name."""
    return min(states, key=lambda name: (states[name].history == NOWHERE, -states[name].seqno, name))


def start(name: str, own: State, others: Mapping[str, State | None]) -> Step:
    """What becomes of a server that is down. None: a member that does not answer."""
    known = {one: state for one, state in others.items() if state is not None}
    if any(state.status is not Status.DOWN for state in known.values()):
        return Step.JOIN
    if len(known) == len(others) and furthest({name: own, **known}) == name:
        return Step.BOOTSTRAP
    return Step.WAIT


def resets_quorum(name: str, own: State, others: Mapping[str, State | None], apart_s: float) -> bool:
    """Whether this server, which has run outside of a primary component for so long, is to be one."""
    known = {one: state for one, state in others.items() if state is not None}
    all_apart = len(known) == len(others) and all(state.status is Status.APART for state in known.values())
    return apart_s >= PATIENCE_S and all_apart and furthest({name: own, **known}) == name


def recovered(log: str) -> State:
    """Where a server that is down is, by what `--wsrep-recover` prints; nowhere where it prints no position."""
    found = POSITION.search(log)
    return State(Status.DOWN, found[1], int(found[2])) if found else State(Status.DOWN)


def running(answer: str, before: State) -> State:
    """Where a server is, by the rows of its status; where it answers none yet, it is where it was."""
    rows = dict(line.split("\t", 1) for line in answer.splitlines() if "\t" in line)
    if "wsrep_cluster_status" not in rows:
        return State(Status.APART, before.history, before.seqno)
    status = Status.PRIMARY if rows["wsrep_cluster_status"] == "Primary" else Status.APART
    history, seqno = rows.get("wsrep_local_state_uuid", NOWHERE), int(rows.get("wsrep_last_committed", -1))
    return State(status, history, seqno)


class Member:
    def __init__(self, name: str, members: Sequence[str], directory: Path) -> None:
        self._name, self._others, self._directory = name, [one for one in members if one != name], directory
        self._state = State(Status.DOWN)
        self._is_known = False
        """Whether the state is that of this life."""

    async def run(self) -> None:
        await asyncio.start_server(self._answer, "0.0.0.0", PORT)
        while True:
            self._state, self._is_known = await self._recover(), True
            print(f"member: recovered {self._state.history}:{self._state.seqno}", flush=True)
            await self._serve(await self._first_step())
            await asyncio.sleep(1.0)

    async def _first_step(self) -> Step:
        while True:
            step = start(self._name, self._state, await self._ask_others())
            if step is not Step.WAIT:
                return step
            await asyncio.sleep(EVERY_S)

    async def _serve(self, step: Step) -> None:
        """Until the server ends."""
        arguments = [f"--wsrep-start-position={self._state.history}:{self._state.seqno}"]
        if step is Step.BOOTSTRAP:
            arguments.append("--wsrep-new-cluster")
            self._mark_as_safe()
        print(f"member: {step.value}", flush=True)
        self._state = State(Status.APART, self._state.history, self._state.seqno)
        server = await asyncio.create_subprocess_exec("mariadbd", f"--defaults-file={CONFIG}", *arguments)
        watch = asyncio.create_task(self._watch())
        await server.wait()
        self._is_known = False
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch

    async def _watch(self) -> None:
        since = time.monotonic()
        while True:
            answer = await self._said_by("SHOW GLOBAL STATUS LIKE 'wsrep_%'")
            self._state = running(answer, self._state)
            if self._state.status is Status.PRIMARY:
                since = time.monotonic()
            elif resets_quorum(self._name, self._state, await self._ask_others(), time.monotonic() - since):
                print("member: this server becomes the primary component", flush=True)
                await self._said_by("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
            await asyncio.sleep(EVERY_S)

    async def _recover(self) -> State:
        recovery = await asyncio.create_subprocess_exec(
            *("mariadbd", f"--defaults-file={CONFIG}", "--wsrep-recover"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        log, _ = await recovery.communicate()
        return recovered(log.decode(errors="replace"))

    def _mark_as_safe(self) -> None:
        kept = self._directory / "data" / "grastate.dat"
        if kept.exists():
            kept.write_text(kept.read_text().replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))

    async def _said_by(self, statement: str) -> str:
        """What the server answers; nothing where it takes no connections."""
        client = await asyncio.create_subprocess_exec(
            *("mariadb", "--no-defaults", f"--socket={self._directory}/storm.sock", "--user=storm"),
            *("--batch", "--skip-column-names", "--connect-timeout=2", f"--execute={statement}"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        answer, _ = await client.communicate()
        return answer.decode(errors="replace")

    async def _ask_others(self) -> dict[str, State | None]:
        answers = await asyncio.gather(*map(self._ask, self._others))
        return dict(zip(self._others, answers, strict=True))

    async def _ask(self, name: str) -> State | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(name, PORT)
                try:
                    said = json.loads(await reader.read())
                finally:
                    writer.close()
        except (OSError, TimeoutError, ValueError):
            return None
        return State(Status(said["status"]), said["history"], said["seqno"]) if said else None

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(json.dumps(asdict(self._state) if self._is_known else None).encode())
            await writer.drain()
        writer.close()


if __name__ == "__main__":
    asyncio.run(Member(sys.argv[1], sys.argv[2].split(","), Path(sys.argv[3])).run())
