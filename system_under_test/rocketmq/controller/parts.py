"""What a controller is made of, where a planted bug may put something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from system_under_test.raft.core import Raft
from system_under_test.raft.driver import RaftNode
from system_under_test.raft.storage import RaftStorage
from system_under_test.replicated.key_value_service import KeyValueParts
from system_under_test.replicated.read_barrier import ReadBarrier, read_index
from system_under_test.rocketmq.controller.heartbeat import (
    Liveness,
    LivenessTable,
    NotedReport,
    SeenPulse,
    newest_report,
    seen_pulse,
)
from system_under_test.rocketmq.controller.masters import needs_master, registration_answer
from system_under_test.rocketmq.controller.protocol import ReplicaInfo
from system_under_test.rocketmq.controller.replicated_state import ReplicatedState
from system_under_test.rocketmq.controller.state_machine import Group, Rules
from system_under_test.runtime.host import Disk, Host

Propose = Callable[[Host, RaftNode, ReplicatedState, bytes], Awaitable[Any]]
"""(host, raft, what is applied here, an entry) → what applying the entry gave, once it is applied. Raises NotLeader,
LeadershipLost."""


def append_and_apply(host: Host, raft: RaftNode, state: ReplicatedState, entry: bytes) -> Awaitable[Any]:
    return raft.propose(entry)


@dataclass(frozen=True, kw_only=True)
class ControllerParts:
    raft_core: type[Raft] = Raft
    raft_storage: Callable[[Disk, str], RaftStorage] = RaftStorage
    rules: Rules = field(default_factory=Rules)
    read_barrier: ReadBarrier = read_index
    unchanged_barrier: ReadBarrier = read_index
    """Comes before a request that changes nothing, or is refused, is answered."""
    values: KeyValueParts = field(default_factory=KeyValueParts)
    propose: Propose = append_and_apply
    noted_report: NotedReport = newest_report
    seen_pulse: SeenPulse = seen_pulse
    needs_master: Callable[[Group, LivenessTable, int], bool] = needs_master
    registration_answer: Callable[[Group, Liveness], ReplicaInfo] = registration_answer
