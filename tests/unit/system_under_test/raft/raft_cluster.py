"""Raft nodes with a list for a state machine, on hosts of the simulator, in virtual time."""

from __future__ import annotations

import dataclasses
import tempfile
import zlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.raft.core import Raft
from system_under_test.raft.driver import RaftConfig, RaftNode
from system_under_test.raft.message import Entry
from system_under_test.raft.snapshot import Snapshot, SnapshotFile
from system_under_test.raft.storage import RaftStorage
from system_under_test.raft.transport import PeerTransport
from tests.unit.harness.environments.simulated.lending import LENT

NAMES = ("a", "b", "c")
"""The voters of the beginning."""
HOSTS = (*NAMES, "d")
PORT = 9879


class InChunks(Raft):
    """A snapshot of some entries is several chunks."""

    chunk_bytes = 40


class Member:
    """One life of a node."""

    core: type[Raft] = Raft

    def __init__(self, host: Any, config: RaftConfig, transport: PeerTransport) -> None:
        self.applied: list[bytes] = []
        self.restored = 0
        """So much of that came with a snapshot."""
        self.host = host
        self.node = RaftNode(
            host,
            config,
            storage=RaftStorage(host.disk, config.directory),
            transport=transport,
            check=lambda data: None,
            apply=self._apply,
            snapshot=self.snapshot,
            restore=self._restore,
            on_leadership=lambda is_active: None,
            core=self.core,
        )

    @property
    def snapshot(self) -> Callable[[], bytes] | None:
        return lambda: b"\0".join(self.applied)

    def _restore(self, snapshot: Snapshot) -> None:
        self.applied = snapshot.data.split(b"\0")
        self.restored = len(self.applied)

    def _apply(self, entry: Entry) -> int:
        self.applied.append(entry.data)
        return entry.index


class FilingMember(Member):
    """One life of a node whose state is in a file, an entry a line; it makes its snapshots when it is asked to."""

    core = InChunks
    snapshot = None

    @property
    def file(self) -> Any:
        return self.host.disk.open(f"{self.node.place}/lines")

    def _apply(self, entry: Entry) -> int:
        self.file.append(entry.data + b"\n")
        return super()._apply(entry)

    def _restore(self, snapshot: Snapshot) -> None:
        assert snapshot.place == self.node.place
        (kept,) = snapshot.files
        self.file.truncate(kept.size)
        assert zlib.crc32(self.file.read_at(0, kept.size)) == kept.crc, "the file is not the snapshot's"
        self.applied = self.file.read_at(0, kept.size).splitlines()
        self.restored = len(self.applied)

    async def compact(self) -> bool:
        """Whether it is this snapshot that is durable now."""
        index, file, place = self.node.applied, self.file, self.node.place
        content = file.read_at(0, file.size)
        await file.fsync()
        if place != self.node.place:
            return False  # A snapshot of the leader's came meanwhile.
        kept = SnapshotFile("lines", len(content), zlib.crc32(content))
        return bool(await self.node.compact(index, b"", [kept]))


class RaftCluster:
    def __init__(self, env: SimulatedEnvironment, settings: dict[str, Any], kind: type[Member] = Member) -> None:
        self.env = env
        self.kind = kind
        self.settings = settings
        self.members: dict[str, Member] = {}

    async def start(self, name: str) -> Member:
        """Begin a life on the host that this node has now."""
        transport = PeerTransport(LENT[name], node=name, address=f"{name}:{PORT}", silence_s=2.0)
        member = self.members[name] = await self.join(name, transport)
        await transport.start(PORT)
        return member

    async def join(self, name: str, transport: PeerTransport, **settings: Any) -> Member:
        voters = {peer: f"{peer}:{PORT}" for peer in NAMES}
        config = RaftConfig(**{"node": name, "members": voters, **self.settings, **settings})
        member = self.kind(LENT[name], config, transport)
        await member.node.start()
        return member

    async def leader(self) -> Member:
        """The active leader, once there is one."""
        await self.until(lambda: any(member.node.is_active for member in self.members.values()))
        return next(member for member in self.members.values() if member.node.is_active)

    async def until(self, holds: Callable[[], bool], bound_s: float = 60.0) -> None:
        begun_ns = self.env.timeline.now_ns()
        while not holds():
            assert self.env.timeline.now_ns() - begun_ns < bound_s * 1e9, f"not so within {bound_s} s"
            await self.env.timeline.sleep(0.01)

    async def seconds_of(self, awaitable: Any) -> float:
        begun_ns = self.env.timeline.now_ns()
        await awaitable
        return (self.env.timeline.now_ns() - begun_ns) / 1e9


def play(
    story: Callable[[RaftCluster], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    fsync_ms: float = 1.0,
    kind: type[Member] = Member,
    **settings: Any,
) -> Trace:
    """Tell a story to hosts on a quiet network; the nodes of `story` begin when it starts them."""
    trace = Trace()

    async def whole(env: SimulatedEnvironment) -> None:
        program = PythonProgram(main="tests.unit.harness.environments.simulated.lending:lend")
        await env.start([NodeSpec(name=name, groups=("nodes",), program=program) for name in HOSTS], Path(directory))
        await env.timeline.sleep(0)
        await story(RaftCluster(env, settings, kind))
        await env.stop()

    LENT.clear()
    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=dataclasses.replace(Regime.calm(), fsync_ms=fsync_ms))
    return trace
