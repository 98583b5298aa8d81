from __future__ import annotations

from typing import Any

from system_under_test.cmq.entry import Ack, decode
from system_under_test.cmq.parts import CmqParts, StateMachine
from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import NotLeader, RaftNode


async def append_messages(raft: RaftNode, machine: StateMachine, entry: bytes) -> Any:
    if not isinstance(decode(entry), Ack):
        return await raft.propose(entry)
    if not raft.is_active:
        raise NotLeader(raft.leader)
    return machine.apply(entry)


MUTANT = Mutant(
    name="ack-local",
    breaks="an acknowledged message is never given out again",
    parts=(CmqParts(propose=append_messages),),
)
