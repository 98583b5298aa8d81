"""answers-alone: a node that takes itself for the leader answers reads without asking the others."""

from __future__ import annotations

from replicated_counter.node import CounterParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import NotLeader, RaftNode


async def no_barrier(raft: RaftNode) -> None:
    if not raft.believes_itself_leader:
        raise NotLeader(raft.leader)


MUTANT = Mutant(
    name="answers-alone",
    breaks="a read shows all that was added before it",
    parts=(CounterParts(read_barrier=no_barrier),),
)
