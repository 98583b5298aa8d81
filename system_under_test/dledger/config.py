"""A member's settings, by the names and with the defaults of DLedger 0.3.1, and a few of our own.

Of our own are `ackDurable`, `compareByTerm`, `version` and `maxRequestsInFlight`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from system_under_test.dledger.driver import DriverTimes
from system_under_test.dledger.entry import HEAD_BYTES
from system_under_test.dledger.entry_files import FileSizes
from system_under_test.dledger.message import MAX_BODY_BYTES
from system_under_test.dledger.record import INDEX_BYTES
from system_under_test.dledger.state import GroupConfig
from system_under_test.node.settings import Settings, choice, flag, integer, seconds, setting, text
from system_under_test.storage.file_cleaner import CleaningRules, deletion_hours
from system_under_test.storage.record_format import BLANK_BYTES

FIRST_VERSION = 1
"""Members of this version take no batches."""


@setting
def _share(settings: Settings, name: str, default: float, *, minimum: float = 0) -> float:
    value = settings.config.get(name, default)
    if type(value) not in (int, float) or not minimum <= value <= 1:
        raise ValueError(f"{name}: expected a share of the disk from {minimum} to 1, got {value!r}")
    return float(value)


class StoreType(Enum):
    FILE = "FILE"
    MEMORY = "MEMORY"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    group: str = text("group", "default")
    node: str = text("selfId", "n0")
    peers: str = text("peers", "n0-localhost:20911")
    """`ID-ADDRESS:PORT` of each member, with semicolons between."""
    store_type: StoreType = choice("storeType", StoreType.FILE)
    heartbeat_s: float = seconds("heartBeatTimeIntervalMs", 2_000)
    missed_heartbeats: int = integer("maxHeartBeatLeak", 3, minimum=1)
    min_backoff_s: float = seconds("minVoteIntervalMs", 300)
    max_backoff_s: float = seconds("maxVoteIntervalMs", 1_000)
    max_pending: int = integer("maxPendingRequestsNum", 10_000, minimum=1)
    ack_timeout_s: float = seconds("maxWaitAckTimeMs", 2_500)
    push_timeout_s: float = seconds("maxPushTimeOutMs", 1_000)
    flush_interval_s: float = seconds("flushFileInterval", 10)
    checkpoint_interval_s: float = seconds("checkPointInterval", 3_000)
    batches: bool = flag("isEnableBatchPush", False)
    batch_bytes: int = integer("maxBatchPushSize", 4_096, minimum=1, maximum=4 * 1024 * 1024)
    preferred: str = text("preferredLeaderIds", "-")
    """Ids with semicolons between; a dash: none is preferred."""
    transfer_lag: int = integer("maxLeadershipTransferWaitIndex", 1_000)
    transfer_timeout_s: float = seconds("leadershipTransferWaitTimeout", 1_000)
    data_file_bytes: int = integer("mappedFileSizeForEntryData", 1 << 30)
    index_file_bytes: int = integer("mappedFileSizeForEntryIndex", 5 * 1024 * 1024 * INDEX_BYTES)
    kept_hours: int = integer("fileReservedHours", 72)
    delete_hours: frozenset[int] = deletion_hours("deleteWhen")
    check_share: float = _share("diskSpaceRatioToCheckExpired", 0.70)
    clean_share: float = _share("diskSpaceRatioToForceClean", 0.85, minimum=0.5)
    is_forced: bool = flag("enableDiskForceClean", True)
    max_in_flight: int = integer("maxRequestsInFlight", 1_000, minimum=1)
    ack_durable: bool = flag("ackDurable", False)
    compare_by_term: bool = flag("compareByTerm", False)
    version: int = integer("version", 2, minimum=FIRST_VERSION, maximum=2)

    def addresses(self) -> Mapping[str, str]:
        """`name:port` of each member by id. Raises ValueError."""
        found: dict[str, str] = {}
        for part in filter(None, self.peers.split(";")):
            node, _, address = part.partition("-")
            host, _, port = address.rpartition(":")
            if not node or not host or not port.isdigit():
                raise ValueError(f"peers: expected ID-ADDRESS:PORT with semicolons between, got {part!r}")
            if node in found:
                raise ValueError(f"peers: {node} is there twice")
            if address in found.values():
                raise ValueError(f"peers: two members have the address {address}")
            found[node] = address
        if self.node not in found:
            raise ValueError(f"peers: expected {self.node}, which selfId names, among {', '.join(found)}")
        return found

    def core(self) -> GroupConfig:
        """Raises ValueError for settings that do not go together."""
        members = tuple(sorted(self.addresses()))
        preferred = () if self.preferred == "-" else tuple(filter(None, self.preferred.split(";")))
        for node in preferred:
            if node not in members:
                raise ValueError(f"preferredLeaderIds: {node} is none of the members {', '.join(members)}")
        if self.min_backoff_s > self.max_backoff_s:
            raise ValueError("minVoteIntervalMs: expected at most maxVoteIntervalMs")
        if self.batches and self.version == FIRST_VERSION:
            raise ValueError("isEnableBatchPush: members of version 1 know no batches")
        return GroupConfig(
            node=self.node,
            members=members,
            heartbeat_ns=int(self.heartbeat_s * 1e9),
            missed_heartbeats=self.missed_heartbeats,
            max_backoff_ns=int(self.max_backoff_s * 1e9),
            ack_timeout_ns=int(self.ack_timeout_s * 1e9),
            push_timeout_ns=int(self.push_timeout_s * 1e9),
            commit_interval_ns=int(self.push_timeout_s * 1e9),
            max_pending=self.max_pending,
            max_body_bytes=min(MAX_BODY_BYTES, self.data_file_bytes - HEAD_BYTES - BLANK_BYTES),
            max_in_flight=self.max_in_flight,
            batch_bytes=self.batch_bytes if self.batches else 0,
            understands_batches=self.version > FIRST_VERSION,
            ack_durable=self.ack_durable,
            compare_by_term=self.compare_by_term,
            preferred=preferred,
            transfer_lag=self.transfer_lag,
            transfer_timeout_ns=int(self.transfer_timeout_s * 1e9),
            preference_interval_ns=int(self.transfer_timeout_s * 1e9),
        )

    def times(self) -> DriverTimes:
        return DriverTimes(
            min_backoff_ns=int(self.min_backoff_s * 1e9),
            flush_interval_s=self.flush_interval_s,
            checkpoint_interval_s=self.checkpoint_interval_s,
        )

    def cleaning(self) -> CleaningRules:
        return CleaningRules(
            kept_s=3_600.0 * self.kept_hours,
            hours=self.delete_hours,
            full_share=self.check_share,
            forced_share=self.clean_share,
            is_forced=self.is_forced,
        )

    @property
    def full_share(self) -> float:
        """Share of the disk in use beyond which nothing is appended, which has no setting of its own."""
        return min(0.95, self.clean_share + 0.05)

    def sizes(self) -> FileSizes:
        """Raises ValueError."""
        least = HEAD_BYTES + 1 + BLANK_BYTES
        if self.data_file_bytes < least:
            raise ValueError(f"mappedFileSizeForEntryData: expected at least {least} bytes, got {self.data_file_bytes}")
        if self.index_file_bytes < INDEX_BYTES or self.index_file_bytes % INDEX_BYTES:
            raise ValueError(
                f"mappedFileSizeForEntryIndex: expected a multiple of {INDEX_BYTES} bytes, got {self.index_file_bytes}"
            )
        return FileSizes(data_bytes=self.data_file_bytes, index_bytes=self.index_file_bytes)
