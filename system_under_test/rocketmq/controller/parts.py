"""What a controller is made of, where a planted bug may put something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from system_under_test.raft.driver import RaftNode
from system_under_test.raft.storage import RaftStorage
from system_under_test.rocketmq.controller.key_value import KeyValueStore, Result
from system_under_test.rocketmq.controller.state_machine import Rules
from system_under_test.runtime.host import Disk, Host

ReadBarrier = Callable[[RaftNode], Awaitable[None]]
"""Done when the applied state may be read. Raises NotLeader."""


def read_index(raft: RaftNode) -> Awaitable[None]:
    """A majority confirms that this node is still the leader, after the read was asked for."""
    return raft.read_barrier()


ReadTransaction = Callable[[Host, KeyValueStore, bytes], Awaitable[Result]]
"""(host, store, a transaction that only reads), once the applied state may be read."""


async def read_at_once(host: Host, store: KeyValueStore, command: bytes) -> Result:
    """All of it at one moment."""
    return store.apply(command)


@dataclass(frozen=True, kw_only=True)
class ControllerParts:
    raft_storage: Callable[[Disk, str], RaftStorage] = RaftStorage
    rules: Rules = field(default_factory=Rules)
    read_barrier: ReadBarrier = read_index
    read_transaction: ReadTransaction = read_at_once
