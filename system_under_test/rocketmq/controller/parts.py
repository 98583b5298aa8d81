"""What a controller is made of, where a planted bug may put something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from system_under_test.raft.driver import RaftNode
from system_under_test.raft.storage import RaftStorage
from system_under_test.rocketmq.controller.state_machine import Candidates, living_candidates
from system_under_test.runtime.host import Disk

ReadBarrier = Callable[[RaftNode], Awaitable[None]]
"""Done when the applied state may be read. Raises NotLeader."""


def read_index(raft: RaftNode) -> Awaitable[None]:
    """A majority confirms that this node is still the leader, after the read was asked for."""
    return raft.read_barrier()


@dataclass(frozen=True, kw_only=True)
class ControllerParts:
    raft_storage: Callable[[Disk, str], RaftStorage] = RaftStorage
    candidates: Candidates = living_candidates
    read_barrier: ReadBarrier = read_index
