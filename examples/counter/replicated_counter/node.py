"""A node of replicated counters. Each counter is a Raft group of its own, so a node holds as many logs as there are.

Only a group's leader answers: an addition once it is applied, a read once a majority has confirmed, after it was asked
for, that this node still leads.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from replicated_counter import mutants
from system_under_test.node.assembly import Assembly, AtPort
from system_under_test.node.settings import Settings
from system_under_test.raft.driver import RaftConfig, RaftNode
from system_under_test.raft.message import Entry
from system_under_test.raft.snapshot import Snapshot
from system_under_test.raft.transport import PeerTransport
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.replicated.answers import Answers
from system_under_test.replicated.read_barrier import ReadBarrier, read_index
from system_under_test.runtime.host import Host

PORT, RAFT_PORT = 7000, 7001
ADD, READ, LED = 1, 2, 3
"""Codes of requests; the last asks which counters the node leads."""
PATIENCE_S = 2.0
"""Of a node that waits until an addition is applied or a majority has confirmed, and of a peer with a silent one."""


@dataclass(frozen=True, kw_only=True)
class CounterParts:
    """Where a planted bug may put something else."""

    read_barrier: ReadBarrier = read_index


class Counter:
    """One counter, as this node has it."""

    def __init__(self, host: Host, number: int, transport: PeerTransport, peers: Mapping[str, str]) -> None:
        self._host, self._number, name = host, number, f"c{number}"
        self._total = self._reads = 0
        self._answers = Answers(host, lambda: PATIENCE_S, _not_leader)
        self.raft = RaftNode(
            host,
            RaftConfig(node=host.name, members=peers, group=number, directory=name, log=name, snapshot_threshold=100),
            transport=transport,
            check=int,
            apply=self._apply,
            snapshot=lambda: b"%d" % self._total,
            restore=self._restore,
        )

    def _restore(self, snapshot: Snapshot) -> None:
        self._total = int(snapshot.data)

    def _apply(self, entry: Entry) -> int:
        self._total += int(entry.data)
        self._host.reached("added", counter=self._number, index=entry.index, total=self._total)
        return self._total

    async def add(self, amount: bytes) -> RemotingCommand:
        total = await self._answers.wait(self.raft.propose, amount)
        if isinstance(total, RemotingCommand):
            return total
        self._host.reached("addition-answered", counter=self._number, total=total)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def read(self, barrier: ReadBarrier) -> RemotingCommand:
        self._reads = serial = self._reads + 1
        self._host.reached("read-asked", counter=self._number, serial=serial)
        refusal = await self._answers.wait(barrier, self.raft)
        if refusal is not None:
            return refusal
        self._host.reached("read-answered", counter=self._number, serial=serial, total=self._total)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=b"%d" % self._total)


async def node(host: Host, config: Mapping[str, Any]) -> None:
    assembly = Assembly(host, config, mutants)
    settings, parts = Settings(assembly.config), assembly.parts(CounterParts)
    peers = {address.rpartition(":")[0]: address for address in settings.addresses("peers")}
    transport = PeerTransport(host, node=host.name, address=peers[host.name], silence_s=PATIENCE_S)
    counters = [Counter(host, number, transport, peers) for number in range(settings.integer("counters", 1))]

    def handle(request: RemotingCommand, peer: Peer) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand]:
        if request.code == LED:
            led = (f"c{number}" for number, counter in enumerate(counters) if counter.raft.is_active)
            return RemotingCommand.response(ResponseCode.SUCCESS, body=" ".join(led).encode())
        counter = counters[int(request.ext_fields["counter"])]
        return counter.add(request.body) if request.code == ADD else counter.read(parts.read_barrier)

    rafts = [counter.raft for counter in counters]
    await assembly.run([*rafts, AtPort(transport, RAFT_PORT), AtPort(RemotingServer(host, handle), PORT)])


def _not_leader(leader: str | None) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.CONTROLLER_NOT_LEADER)
