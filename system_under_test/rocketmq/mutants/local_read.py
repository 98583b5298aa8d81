"""local-read: getReplicaInfo, key-value gets and the other reads are answered without a read barrier.

Breaks the rule that reads go through the log or a read index. A controller that was cut off from its peers,
or was paused, still takes itself for the leader and answers from a state that others have gone beyond.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.raft.driver import NotLeader, RaftNode
from system_under_test.replicated.key_value_service import KeyValueParts
from system_under_test.rocketmq.controller.parts import ControllerParts


async def no_barrier(raft: RaftNode) -> None:
    if not raft.believes_itself_leader:
        raise NotLeader(raft.leader)


MUTANT = Mutant(
    name="local-read",
    breaks="a read sees every write completed before it",
    parts=(
        ControllerParts(
            read_barrier=no_barrier, values=KeyValueParts(read_barrier=no_barrier, transaction_barrier=no_barrier)
        ),
    ),
)
