"""What a node of CMQ is made of, where a planted bug may put something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from system_under_test.cmq.message_files import MessageFiles
from system_under_test.cmq.state_machine import QueueGroupState
from system_under_test.raft.core import Raft
from system_under_test.raft.driver import RaftNode
from system_under_test.raft.storage import RaftStorage
from system_under_test.replicated.read_barrier import ReadBarrier, read_index
from system_under_test.runtime.host import Disk


class StateMachine(Protocol):
    """What the entries of a group are applied to, at one node."""

    @property
    def state(self) -> QueueGroupState: ...

    def apply(self, data: bytes, index: int = 0) -> Any:
        """Here and at once: the result of an entry, or of what is none (0)."""


Propose = Callable[[RaftNode, StateMachine, bytes], Awaitable[Any]]
"""What applying an entry gave, once it is applied. Raises NotLeader, LeadershipLost."""


def append_and_apply(raft: RaftNode, machine: StateMachine, entry: bytes) -> Awaitable[Any]:
    return raft.propose(entry)


@dataclass(frozen=True, kw_only=True)
class CmqParts:
    raft_core: type[Raft] = Raft
    raft_node: type[RaftNode] = RaftNode
    raft_storage: Callable[[Disk, str], RaftStorage] = RaftStorage
    state: type[QueueGroupState] = QueueGroupState
    files: type[MessageFiles] = MessageFiles
    read_barrier: ReadBarrier = read_index
    """Comes before each pull."""
    propose: Propose = append_and_apply
