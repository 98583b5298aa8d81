from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import NotLeader, RaftNode


async def believed_leader(raft: RaftNode) -> None:
    if not raft.believes_itself_leader:
        raise NotLeader(raft.leader)


MUTANT = Mutant(
    name="fake-leader-read",
    breaks="an acknowledged message is never given out again",
    parts=(CmqParts(read_barrier=believed_leader),),
)
