"""Settings of a node of CMQ, by their names in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from system_under_test.node.members import members
from system_under_test.node.settings import flag, integer, path, seconds, text
from system_under_test.raft.driver import RaftConfig

RECORD_BYTES: Final = 16
"""What a message takes in its file beside its body."""
LEASE_SHARE: Final = 0.8
"""A lease is this part of the least election time-out: clocks of two nodes may differ in rate by a quarter."""
KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class CmqConfig:
    self_id: str = text("selfId")
    peers: Mapping[str, str] = members("peers", own="selfId")
    """Address of each node by id, where it takes requests of clients and messages of the others, until nodes come and
    go."""
    joins: bool = flag("joins", False)
    """This node belongs to no group until an administrator adds it to each; the others are already there."""
    groups: int = integer("groups", 3, minimum=1, maximum=256)
    """Raft groups of these nodes, each with its own log and leader; queues are spread over them by their names."""
    store_path: str = path("storePath", "cmq")
    most_queues: int = integer("mostQueues", 256, minimum=1, maximum=4096)
    """Queues of a group; one more is refused."""

    visibility_s: float = seconds("visibility", 30_000)
    """A message that a consumer holds comes again after so long, unless it is acknowledged."""
    file_bytes: int = integer("fileBytes", 16 * MIB, minimum=256, maximum=1024 * MIB)
    """Size of the files with a queue's messages."""
    message_bytes: int = integer("messageBytes", 64 * KIB, minimum=1, maximum=8 * MIB)
    """The longest message."""
    snapshot_interval_s: float = seconds("snapshotInterval", 300_000)
    """A snapshot is made after so long, if anything was applied since the one before."""
    snapshot_log_bytes: int = integer("snapshotLogBytes", 64 * MIB, minimum=KIB)
    """A snapshot is made as soon as so much was appended to the log."""
    snapshot_entries: int = integer("snapshotEntries", 0)
    """A snapshot is made as soon as so many entries were applied; 0: however many these are."""
    digest_entries: int = integer("digestEntries", 0)
    """Each node reports a digest of its state after so many entries, to be held against the others'; 0: only at
    snapshots."""
    reports_entries: bool = flag("reportsEntries", True)
    """Whether each entry of the logs is reported as it is written."""

    log_kept_bytes: int = integer("logKeptBytes", 16 * MIB)
    """So much of the log stays behind a snapshot, for followers that lag a little."""
    log_memory_bytes: int = integer("logMemoryBytes", 8 * MIB, minimum=KIB)
    """So much of the log is kept in memory, the newest part."""
    segment_bytes: int = integer("segmentBytes", 8 * MIB, minimum=KIB)
    """Size of the log's files."""
    window_entries: int = integer("windowEntries", 4096, minimum=1)
    """A leader sends so many entries ahead of what a follower has acknowledged."""
    batch_entries: int = integer("batchEntries", 512, minimum=1)
    """Entries that one message to a follower carries at most."""
    batch_bytes: int = integer("batchBytes", MIB, minimum=1)
    """Bytes of entries that one message to a follower carries at most, unless the first one is longer."""
    gathered_entries: int = integer("gatheredEntries", 0)
    """Entries that a leader makes durable by one fsync at most; 0: as many as have gathered."""
    promotion_lag: int = integer("promotionLag", 512)
    """A new node votes once it is at most so many entries behind."""

    heartbeat_s: float = seconds("heartbeatInterval", 100)
    min_election_timeout_s: float = seconds("minElectionTimeout", 300)
    max_election_timeout_s: float = seconds("maxElectionTimeout", 600)
    """Election time-outs are drawn between the least one and this."""
    reads_by_lease: bool = flag("readsByLease", False)
    """Whether a leader gives messages out without asking the others for each pull, as long as by their answers before
    nobody else can have been elected. All nodes have to agree on it."""
    spread: bool = flag("spread", True)
    """Whether leaders hand over so that each node leads as many groups as the others."""
    spread_after_s: float = seconds("spreadAfter", 1_000)
    """So long the preferred leader has to be level before it is handed over to."""
    request_timeout_s: float = seconds("requestTimeout", 5_000)
    """How long a request waits for its entry to be applied; after that its outcome is unknown."""
    full_percent: int = integer("fullPercent", 95, minimum=1, maximum=100)
    """Messages are refused while so much of the disk is in use."""

    def __post_init__(self) -> None:
        if self.message_bytes + RECORD_BYTES > self.file_bytes:
            raise ValueError(
                f"fileBytes: expected at least {self.message_bytes + RECORD_BYTES}, for a message of messageBytes "
                f"({self.message_bytes}) with its head, got {self.file_bytes}"
            )
        if self.min_election_timeout_s < 2 * self.heartbeat_s:
            raise ValueError(
                f"minElectionTimeout: expected at least two of heartbeatInterval, "
                f"{2_000 * self.heartbeat_s:.0f} ms, got {1_000 * self.min_election_timeout_s:.0f}"
            )
        self.raft(1)

    def raft(self, group: int) -> RaftConfig:
        """Of one group; they are numbered from 1. Raises ValueError for timings that cannot work together."""
        return RaftConfig(
            node=self.self_id,
            members={node: at for node, at in self.peers.items() if not self.joins or node != self.self_id},
            group=group,
            directory=f"{self.store_path}/{group}",
            log=group_name(group),
            heartbeat_s=self.heartbeat_s,
            min_election_timeout_s=self.min_election_timeout_s,
            max_election_timeout_s=self.max_election_timeout_s,
            lease_s=LEASE_SHARE * self.min_election_timeout_s if self.reads_by_lease else 0.0,
            reports_entries=self.reports_entries,
            log_memory_bytes=self.log_memory_bytes,
            log_kept_bytes=self.log_kept_bytes,
            segment_bytes=self.segment_bytes,
            window_entries=self.window_entries,
            batch_entries=self.batch_entries,
            batch_bytes=self.batch_bytes,
            gathered_entries=self.gathered_entries,
            promotion_lag=self.promotion_lag,
        )

    @property
    def port(self) -> int:
        return int(self.peers[self.self_id].rpartition(":")[2])


def group_name(group: int) -> str:
    """As its log is reported."""
    return f"g{group}"
