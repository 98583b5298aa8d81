"""When what a member of a Raft group has applied may be read; a planted bug may put something else there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from system_under_test.raft.driver import RaftNode

ReadBarrier = Callable[[RaftNode], Awaitable[None]]
"""Done when the applied state may be read. Raises NotLeader."""


def read_index(raft: RaftNode) -> Awaitable[None]:
    """A majority confirms that this node is still the leader, after the read was asked for."""
    return raft.read_barrier()
