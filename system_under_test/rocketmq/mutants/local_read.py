"""local-read: getReplicaInfo, key-value gets and the other reads are answered without a read barrier.

Breaks the rule that reads go through the log or a read index. A controller that was cut off from its peers,
or was paused, still takes itself for the leader and answers from a state that others have gone beyond.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.raft.driver import NotLeader, RaftNode
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.mutants.mutant import Mutant


async def no_barrier(raft: RaftNode) -> None:
    if not raft.believes_itself_leader:
        raise NotLeader(raft.leader)


def _controller(parts: ControllerParts) -> ControllerParts:
    return replace(parts, read_barrier=no_barrier, transaction_barrier=no_barrier)


MUTANT = Mutant(name="local-read", breaks="a read sees every write completed before it", controller=_controller)
