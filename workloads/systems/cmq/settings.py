"""What can be set of CMQ on trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from harness.bounds import Bounds
from harness.errors import UsageError
from system_under_test.cmq.config import RECORD_BYTES
from system_under_test.cmq.routing import group_of

NODES = "nodes"
"""The group of nodes."""
LEADER = "leader"
"""The role of who leads the first group; of another one it is this and its number."""

PATIENCE_S = 4.0
"""The longest that an operation may take: less than the harness waits for it, which would know less of it."""


@dataclass(frozen=True, kw_only=True)
class CmqSettings:
    """Sizes and times are small, so that what the product does once in minutes happens many times in a storm."""

    nodes: Annotated[int, Bounds(3, 5)] = 3
    """Three or five."""
    groups: Annotated[int, Bounds(1, 16)] = 3
    """Raft groups, each on all nodes; queues are spread over them by their names."""
    queues: Annotated[int, Bounds(1, 16)] = 4
    """So many queues each workload has."""
    most_queues: Annotated[int, Bounds(1, 4096)] = 256
    """A group takes so many queues."""
    invisible_ms: Annotated[int, Bounds(50, 60_000)] = 1_000
    """A message that is given out comes again after so long, unless it is acknowledged; 30 s in the product, as long
    as a whole storm."""
    message_bytes: Annotated[int, Bounds(32, 65_536)] = 128
    """The longest message."""
    file_bytes: Annotated[int, Bounds(256, 1 << 24)] = 2_048
    """Size of the files with a queue's messages: a hundred messages fill one."""
    snapshot_interval_s: Annotated[float, Bounds(0.1, 3_600)] = 5.0
    """A snapshot is made after so long; 5 min in the product, so that no storm would see one."""
    snapshot_entries: Annotated[int, Bounds(0, 1_000_000)] = 200
    """A snapshot is made as soon as so many entries were applied; 0: however many these are."""
    snapshot_log_kib: Annotated[int, Bounds(1, 1 << 20)] = 64
    """A snapshot is made as soon as so much was appended to the log; 64 MiB in the product."""
    log_kept_kib: Annotated[int, Bounds(0, 1 << 20)] = 4
    """So much of the log stays behind a snapshot: who lags by more gets the snapshot itself."""
    segment_kib: Annotated[int, Bounds(1, 16_384)] = 16
    """Size of the log's files; with 1 some ten entries fill one."""
    window_entries: Annotated[int, Bounds(1, 65_536)] = 64
    """A leader sends so many entries ahead of what a follower has acknowledged."""
    batch_entries: Annotated[int, Bounds(1, 65_536)] = 16
    """Entries that one message to a follower carries at most."""
    batch_kib: Annotated[int, Bounds(1, 16_384)] = 16
    """Such a message carries so much of entries at most."""
    gathered_entries: Annotated[int, Bounds(0, 65_536)] = 0
    """Entries that a leader makes durable by one fsync at most; 0: as many as have gathered."""
    promotion_lag: Annotated[int, Bounds(0, 65_536)] = 16
    """A new node votes once it is at most so many entries behind."""
    heartbeat_s: Annotated[float, Bounds(0.01, 10)] = 0.1
    """A leader that has nothing to send waits so long between two messages."""
    election_s: Annotated[float, Bounds(0.02, 60)] = 1.0
    """The least election time-out; 0.3 s in the product, whose nodes are near each other."""
    election_spread: Annotated[float, Bounds(1, 10)] = 2.0
    """So many times the least one is the greatest; with 1 all are alike, and candidates may split votes for ever."""
    patience_s: Annotated[float, Bounds(0.3, PATIENCE_S / 2)] = PATIENCE_S / 2
    """How long a client waits for an answer; a dequeue waits for two."""
    reads_by_lease: bool = False
    """Whether a leader gives messages out without asking the others for each pull, while nobody else can lead."""
    spread: bool = True
    """Whether leaders hand over so that each node leads as many groups as the others."""
    strict: bool = False
    """Judge as if nothing could be lost."""

    def __post_init__(self) -> None:
        if self.nodes % 2 == 0:
            raise UsageError(f"setting nodes of cmq takes 3 or 5, got {self.nodes}")
        if self.election_s < 2 * self.heartbeat_s:
            least = f"at least {2 * self.heartbeat_s:g}, two of heartbeat_s"
            raise UsageError(f"setting election_s of cmq takes {least}, got {self.election_s:g}")
        if self.file_bytes < self.message_bytes + RECORD_BYTES:
            least = f"at least {self.message_bytes + RECORD_BYTES}, a message of message_bytes with its head"
            raise UsageError(f"setting file_bytes of cmq takes {least}, got {self.file_bytes}")

    @property
    def longest_election_s(self) -> float:
        """The greatest election time-out, and so long a leader goes on without hearing a majority."""
        return self.election_s * self.election_spread

    @property
    def names(self) -> tuple[str, ...]:
        """Of its nodes."""
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    def queue_names(self, workload: str) -> tuple[str, ...]:
        """By number. Raises UsageError where a group takes fewer than come together in it."""
        names = tuple(queue_name(number, workload) for number in range(self.queues))
        placed = [group_of(name, self.groups) for name in names]
        fullest = max(placed, key=placed.count)
        if (count := placed.count(fullest)) > self.most_queues:
            raise UsageError(
                f"setting most_queues of cmq takes at least {count}, for so many of {self.queues} queues come together "
                f"in group {fullest}, got {self.most_queues}"
            )
        return names


def queue_name(number: int, workload: str) -> str:
    return f"{number}-of-{workload}"


def leader_role(group: int) -> str:
    return LEADER if group == 1 else f"{LEADER}-{group}"


def roles_in(settings: CmqSettings, leaders: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    """Who plays which role, given who leads the groups of which that is known. Spare are the leader of the first one
    and as many others as still leave a majority."""
    roles: dict[str, tuple[str, ...]] = {leader_role(group): (node,) for group, node in sorted(leaders.items())}
    if 1 in leaders:
        others = [name for name in settings.names if name != leaders[1]]
        roles["spare"] = (leaders[1], *others[: len(others) // 2 - 1])
    return roles
