"""A broker's settings: JSON with RocketMQ's names at the boundary, a frozen value with units inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address

from system_under_test.dledger.config import MemberConfig
from system_under_test.node.settings import (
    Settings,
    addresses,
    choice,
    flag,
    integer,
    nested,
    path,
    port,
    seconds,
    setting,
    text,
)
from system_under_test.remoting.server import MAX_RUNNING_HANDLERS
from system_under_test.rocketmq.broker.delayed.delay_levels import DelaySettings
from system_under_test.rocketmq.broker.delayed.timer_messages import TimerSettings
from system_under_test.rocketmq.broker.dledger.settings import DledgerSettings
from system_under_test.rocketmq.broker.ha.wire import MAX_TRANSFER_BODY_BYTES
from system_under_test.rocketmq.consumer_protocol import RequestMode
from system_under_test.rocketmq.topic import MAX_TOPICS, TopicConfig
from system_under_test.rocketmq.version import Version, behaves_as
from system_under_test.storage.file_cleaner import CleaningRules
from system_under_test.storage.message_store import FlushMode


class BrokerRole(Enum):
    """A role that is configured, for good; in controller mode none is."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    """Dual write: a send succeeds when a slave has it as well."""
    SLAVE = "SLAVE"


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionSettings:
    rejected: bool = flag("rejectTransactionMessage", False)
    timeout_s: float = seconds("transactionTimeOut", 6_000)
    """So long a transaction may be open before its producer is asked about it."""
    check_interval_s: float = seconds("transactionCheckInterval", 30_000)
    check_max: int = integer("transactionCheckMax", 15, minimum=1)
    """So often a producer is asked; then the message is put aside."""


@setting
def _own_address(settings: Settings, name: str) -> str:
    return next(iter(settings.addresses(name)), "")


@setting
def _ha_listen_port(settings: Settings, name: str) -> int:
    return settings.port(name, settings.port("listenPort", 10911) + 1)


@setting
def _ipv4(settings: Settings, name: str) -> str:
    value = settings.config.get(name, "")
    try:
        return str(IPv4Address(value)) if value else ""
    except ValueError as error:
        raise ValueError(f"{name}: expected an IPv4 address, got {value!r}") from error


@setting
def _patience_ms(settings: Settings, name: str) -> int | None:
    return settings.integer(name, 10_000, minimum=1) if name in settings.config else None


@setting
def _topics(settings: Settings, name: str) -> Mapping[str, TopicConfig]:
    value = settings.config.get(name, {})
    if not isinstance(value, Mapping) or len(value) > MAX_TOPICS:
        raise ValueError(f"{name}: expected {{topic: queues}}, at most {MAX_TOPICS}, got {value!r}")
    try:
        return {topic: TopicConfig.of(topic, queues) for topic, queues in sorted(value.items())}
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


@setting
def _in_memory_bytes(settings: Settings, name: str) -> int:
    memory_bytes = settings.integer(name, 8 * 1024**3)
    return memory_bytes * settings.integer("accessMessageInMemoryMaxRatio", 40, maximum=100) // 100


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerConfig:
    name_servers: tuple[str, ...] = addresses("namesrvAddr")
    controller_mode: bool = flag("enableControllerMode", False)
    """Role and id come from the controllers; those that are configured mean nothing. Without it controllers do not."""
    controllers: tuple[str, ...] = addresses("controllerAddr")
    controllers_stand_alone: bool = flag("controllerDeployedStandAlone", False)
    """A setting of RocketMQ's brokers that changes nothing here."""
    role: BrokerRole = choice("brokerRole", BrokerRole.ASYNC_MASTER)
    broker_id: int = integer("brokerId", 0, minimum=-1)
    """0 is the master's."""
    version: Version = behaves_as("behavesAsVersion")
    cluster: str = text("brokerClusterName", "DefaultCluster")
    group: str = text("brokerName", "broker-a")
    """RocketMQ's brokerName: all replicas of one log share it."""
    address: str = _own_address("brokerAddr")
    """`name:port` for requests, as registered with controllers and NameServers; empty: the host's name."""
    listen_port: int = port("listenPort", 10911)
    ha_listen_port: int = _ha_listen_port("haListenPort")
    """Replicas find each other's HA port at this distance from their request port: all use the same distance."""
    topics: Mapping[str, TopicConfig] = _topics("topics")
    """Those that exist from the start: until one is made, changed or deleted while the broker runs."""

    auto_create_topics: bool = flag("autoCreateTopicEnable", False)
    """A send to a topic that does not exist makes it, after TBW102."""
    filters_by_properties: bool = flag("enablePropertyFilter", True)
    """Readers may say in SQL92 what they want."""
    auto_create_groups: bool = flag("autoCreateSubscriptionGroup", True)
    """Groups of consumers that nobody made may consume."""

    request_mode: RequestMode = choice("defaultMessageRequestMode", RequestMode.PULL)
    """How groups consume for which nobody has set that."""
    pop_shared_queues: int = integer("defaultPopShareQueueNum", -1, minimum=-1)
    divides_queues: bool = flag("serverLoadBalancerEnable", True)
    """Members that ask for their queues are told their part; off: all of them."""

    flush_mode: FlushMode = choice("flushDiskType", FlushMode.ASYNC)
    all_ack_in_sync_state_set: bool = flag("allAckInSyncStateSet", False)
    in_sync_replicas: int = integer("inSyncReplicas", 1, minimum=1)
    min_in_sync_replicas: int = integer("minInSyncReplicas", 1, minimum=1)
    async_learner: bool = flag("asyncLearner", False)
    sync_from_last_file: bool = flag("syncFromLastFile", False)
    slave_reads: bool = flag("slaveReadEnable", False)
    """A slave answers pulls also while it hears its master."""
    reads_uncommitted: bool = flag("readUnCommitted", False)
    """Consumers see the log to its end, also what may still be cut."""
    in_memory_bytes: int = _in_memory_bytes("physicalMemorySize")
    """A consumer that is behind by more than this is sent to a slave, where slaves answer."""
    copies_anew_when_expired: bool = flag("copyAnewWhenExpired", False)
    """A slave whose log ends before what its master has left empties it and copies all that is left; off: it stops for
    manual repair."""
    cleaning: CleaningRules = nested(CleaningRules)
    ack_after_flush: bool = flag("ackAfterFlush", False)
    """A slave acks what is durable instead of what is written."""
    priority: int = integer("brokerElectionPriority", 2**31 - 1)

    dledger: DledgerSettings = nested(DledgerSettings)
    delays: DelaySettings = nested(DelaySettings)
    timer: TimerSettings = nested(TimerSettings)
    transactions: TransactionSettings = nested(TransactionSettings)

    flush_wait_s: float = seconds("syncFlushTimeout", 5_000)
    replication_wait_s: float = seconds("slaveTimeout", 3_000)
    batch_push: bool = flag("enableBatchPush", False)
    """A master sends its slaves together what it writes in one go, instead of each message separately."""
    ha_batch_bytes: int = integer("haTransferBatchSize", 32 * 1024, minimum=1, maximum=MAX_TRANSFER_BODY_BYTES)
    ha_window_bytes: int = integer("haTransferWindowSize", 4 * 1024 * 1024, minimum=1)
    """Sent to one slave and not yet acked by it, at most (give or take one batch)."""
    ha_max_gap_bytes: int = integer("haMaxGapNotInSync", 256 * 1024 * 1024, minimum=1)
    """A slave of a synchronous master that is so far behind does not count as available."""
    ha_heartbeat_s: float = seconds("haSendHeartbeatInterval", 5_000)
    ha_housekeeping_s: float = seconds("haHousekeepingInterval", 20_000)
    ha_reconnect_s: float = seconds("haReconnectInterval", 500)
    ha_confirm_notice_s: float = seconds("haConfirmNoticeInterval", 20)
    """A confirm offset that moved is sent to idle slaves after this time."""
    max_time_slave_not_caught_up_s: float = seconds("haMaxTimeSlaveNotCatchup", 15_000)
    check_sync_state_set_s: float = seconds("checkSyncStateSetPeriod", 5_000)
    sync_broker_metadata_s: float = seconds("syncBrokerMetadataPeriod", 5_000)
    sync_controller_metadata_s: float = seconds("syncControllerMetadataPeriod", 10_000)
    """So often a broker asks which controller is the active one."""
    controller_heartbeat_s: float = seconds("brokerHeartbeatInterval", 1_000)
    controller_patience_ms: int | None = _patience_ms("controllerHeartBeatTimeoutMills")
    """How long it may be silent until controllers take it for dead; None: their own time."""
    controller_timeout_s: float = seconds("controllerRequestTimeout", 3_000)
    register_name_server_s: float = seconds("registerNameServerPeriod", 30_000)
    compresses_registration: bool = flag("compressedRegister", False)
    slave_sync_s: float = seconds("slaveSynchronizePeriod", 10_000)
    """A slave asks its master for topics, groups and consumers' offsets at this pace."""
    client_expires_s: float = seconds("channelExpiredTimeout", 120_000)
    """A member of a group that has sent no heartbeat for so long is none any more."""
    scan_clients_s: float = seconds("scanNotActiveChannelInterval", 10_000)
    route_lives_s: float = seconds("loadBalancePollNameServerInterval", 30_000)
    """So long a broker divides queues by what a NameServer has said of them."""
    lock_lives_s: float = seconds("rebalanceLockMaxLiveTime", 60_000)
    """So long a member alone may consume a queue after it last asked for that."""
    strict_locks: bool = flag("lockInStrictMode", False)
    """A member has a queue only if most of the group's replicas have given it."""
    total_replicas: int = integer("totalReplicas", 1, minimum=1)
    """So many brokers the group has; only strict locks ask."""
    running_requests: int = integer("serverAsyncSemaphoreValue", MAX_RUNNING_HANDLERS, minimum=1)
    """So many are at work at one time; what waits is not."""
    retry_s: float = seconds("controllerRetryInterval", 500)
    """How long it is between two tries of anything that failed."""
    store_path: str = path("storePathRootDir", "store")
    file_bytes: int = integer("mappedFileSizeCommitLog", 1024**3, minimum=1024)
    max_message_bytes: int = integer("maxMessageSize", 4 * 1024**2, minimum=1)
    ip: str = _ipv4("brokerIP1")
    """IPv4 address under which messages' ids name this broker; empty: made of `address`."""
    index_slots: int = integer("maxHashSlotNum", 1 << 16, minimum=1, maximum=1 << 26)
    index_entries: int = integer("maxIndexNum", 1 << 18, minimum=2, maximum=1 << 26)

    def member_config(self) -> MemberConfig:
        """Of the DLedger group's member. Raises ValueError."""
        return self.dledger.of_member(batches=self.batch_push, file_bytes=self.file_bytes)

    def __post_init__(self) -> None:
        """Raises ValueError for settings that cannot work together."""
        if self.dledger.is_on:
            self._require_possible_group()
            return
        is_slave = self.role is BrokerRole.SLAVE
        if self.controller_mode and self.version is Version.V4:
            raise ValueError("enableControllerMode: a broker of version 4 has no such mode")
        if self.controller_mode and not self.controllers:
            raise ValueError("controllerAddr: controller mode is on and no controller is named: cannot come online")
        if not self.controller_mode and is_slave and self.broker_id < 1:
            raise ValueError(f"brokerId: a slave's is greater than 0, got {self.broker_id}")
        if not self.controller_mode and not is_slave and self.broker_id != 0:
            raise ValueError(f"brokerId: a master's is 0, got {self.broker_id} with brokerRole {self.role.value}")
        if self.reads_uncommitted and self.all_ack_in_sync_state_set:
            raise ValueError(
                "readUnCommitted: expected false where allAckInSyncStateSet is true, for consumers would read what the "
                "SyncStateSet has not acknowledged; turn one of them off"
            )

    def _require_possible_group(self) -> None:
        if self.controller_mode:
            raise ValueError(
                "enableDLegerCommitLog: expected false where enableControllerMode is true, for the group of replicas "
                "elects its master itself; turn one of them off"
            )
        if self.flush_mode is FlushMode.SYNC:
            raise ValueError(
                "flushDiskType: expected ASYNC_FLUSH where enableDLegerCommitLog is true; whether members make durable "
                "what they acknowledge, ackDurable says"
            )
        if self.reads_uncommitted:
            raise ValueError("readUnCommitted: expected false where enableDLegerCommitLog is true")
        assert self.dledger.broker_id > 0
        self.member_config()
