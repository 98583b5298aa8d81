"""A broker's settings: JSON with RocketMQ's names at the boundary, a frozen value with units inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address
from typing import Any

from system_under_test.node.settings import Settings
from system_under_test.remoting.server import MAX_RUNNING_HANDLERS
from system_under_test.rocketmq.broker.delayed.delay_levels import (
    DEFAULT_LEVELS,
    DelayDelivery,
    DelayLevels,
    DelaySettings,
)
from system_under_test.rocketmq.broker.delayed.timer_messages import TimerSettings
from system_under_test.rocketmq.broker.ha.wire import MAX_TRANSFER_BODY_BYTES
from system_under_test.rocketmq.consumer_protocol import RequestMode
from system_under_test.rocketmq.topic import MAX_TOPICS, TopicConfig
from system_under_test.rocketmq.version import Version
from system_under_test.storage.file_cleaner import CleaningRules
from system_under_test.storage.message_store import FlushMode

HOURS = 24


class BrokerRole(Enum):
    """A role that is configured, for good; in controller mode none is."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    """Dual write: a send succeeds when a slave has it as well."""
    SLAVE = "SLAVE"


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionSettings:
    rejected: bool = False
    timeout_s: float = 6.0
    """So long a transaction may be open before its producer is asked about it."""
    check_interval_s: float = 30.0
    check_max: int = 15
    """So often a producer is asked; then the message is put aside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerConfig:
    name_servers: tuple[str, ...]
    controllers: tuple[str, ...]
    """Empty outside of controller mode."""
    role: BrokerRole | None = None
    """None in controller mode: the controllers say it."""
    broker_id: int = 0
    """Of a configured role: 0 is the master's. In controller mode ids come from the controllers."""
    version: Version = Version.V5
    cluster: str = "DefaultCluster"
    group: str = "broker-a"
    """RocketMQ's brokerName: all replicas of one log share it."""
    address: str = ""
    """`name:port` for requests, as registered with controllers and NameServers; empty: the host's name."""
    listen_port: int = 10911
    ha_listen_port: int = 10912
    """Replicas find each other's HA port at this distance from their request port: all use the same distance."""
    topics: Mapping[str, TopicConfig] = field(default_factory=dict)
    """Those that exist from the start: until one is made, changed or deleted while the broker runs."""

    auto_create_topics: bool = False
    """A send to a topic that does not exist makes it, after TBW102."""
    filters_by_properties: bool = True
    """Readers may say in SQL92 what they want."""
    auto_create_groups: bool = True
    """Groups of consumers that nobody made may consume."""

    request_mode: RequestMode = RequestMode.PULL
    """How groups consume for which nobody has set that."""
    pop_shared_queues: int = -1
    divides_queues: bool = True
    """Members that ask for their queues are told their part; off: all of them."""

    flush_mode: FlushMode = FlushMode.ASYNC
    all_ack_in_sync_state_set: bool = False
    in_sync_replicas: int = 1
    min_in_sync_replicas: int = 1
    async_learner: bool = False
    sync_from_last_file: bool = False
    slave_reads: bool = False
    """A slave answers pulls also while it hears its master."""
    reads_uncommitted: bool = False
    """Consumers see the log to its end, also what may still be cut."""
    in_memory_bytes: int = 8 * 1024**3 * 40 // 100
    """A consumer that is behind by more than this is sent to a slave, where slaves answer."""
    copies_anew_when_expired: bool = False
    """A slave whose log ends before what its master has left empties it and copies all that is left; off: it stops for
    manual repair."""
    cleaning: CleaningRules = field(default_factory=CleaningRules)
    ack_after_flush: bool = False
    """A slave acks what is durable instead of what is written."""
    priority: int = 2**31 - 1

    delays: DelaySettings = field(default_factory=DelaySettings)
    timer: TimerSettings = field(default_factory=TimerSettings)
    transactions: TransactionSettings = field(default_factory=TransactionSettings)

    flush_wait_s: float = 5.0
    replication_wait_s: float = 3.0
    batch_push: bool = False
    """A master sends its slaves together what it writes in one go, instead of each message separately."""
    ha_batch_bytes: int = 32 * 1024
    ha_window_bytes: int = 4 * 1024 * 1024
    """Sent to one slave and not yet acked by it, at most (give or take one batch)."""
    ha_max_gap_bytes: int = 256 * 1024 * 1024
    """A slave of a synchronous master that is so far behind does not count as available."""
    ha_heartbeat_s: float = 5.0
    ha_housekeeping_s: float = 20.0
    ha_reconnect_s: float = 0.5
    ha_confirm_notice_s: float = 0.02
    """A confirm offset that moved is sent to idle slaves after this time."""
    max_time_slave_not_caught_up_s: float = 15.0
    check_sync_state_set_s: float = 5.0
    sync_broker_metadata_s: float = 5.0
    sync_controller_metadata_s: float = 10.0
    """So often a broker asks which controller is the active one."""
    controller_heartbeat_s: float = 1.0
    controller_patience_ms: int | None = None
    """After so long a silence controllers are to take it for dead; None: after their own time."""
    controller_timeout_s: float = 3.0
    register_name_server_s: float = 30.0
    compresses_registration: bool = False
    slave_sync_s: float = 10.0
    """A slave asks its master for topics, groups and consumers' offsets at this pace."""
    client_expires_s: float = 120.0
    """A member of a group that has sent no heartbeat for so long is none any more."""
    scan_clients_s: float = 10.0
    route_lives_s: float = 30.0
    """So long a broker divides queues by what a NameServer has said of them."""
    lock_lives_s: float = 60.0
    """So long a member alone may consume a queue after it last asked for that."""
    strict_locks: bool = False
    """A member has a queue only if most of the group's replicas have given it."""
    total_replicas: int = 1
    """So many brokers the group has; only strict locks ask."""
    running_requests: int = MAX_RUNNING_HANDLERS
    """So many are at work at one time; what waits is not."""
    retry_s: float = 0.5
    """Between two tries of anything that failed."""
    store_path: str = "store"
    file_bytes: int = 1024**3
    max_message_bytes: int = 4 * 1024**2
    ip: str = ""
    """IPv4 address under which messages' ids name this broker; empty: made of `address`."""
    index_slots: int = 1 << 16
    index_entries: int = 1 << 18

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> BrokerConfig:
        """Raises ValueError that names the setting that is wrong."""
        settings = _Settings(config)
        return cls(**_place(settings), **_replication(settings), **_storage(settings), **_messages(settings))


class _Settings(Settings):
    """With what only brokers have."""

    def version(self) -> Version:
        return Version.of(self._config)

    def patience_ms(self) -> int | None:
        name = "controllerHeartBeatTimeoutMills"
        return self.integer(name, 10_000, minimum=1) if name in self._config else None

    def own_address(self) -> str:
        return self.addresses("brokerAddr")[0] if "brokerAddr" in self._config else ""

    def role(self) -> tuple[BrokerRole | None, int, tuple[str, ...]]:
        """Role, id and controllers. In controller mode the first two come from the controllers, whom the mode needs,
        and RocketMQ's settings for them mean nothing; without it controllers mean nothing."""
        name = self.text("brokerRole", BrokerRole.ASYNC_MASTER.value)
        broker_id = self.integer("brokerId", 0, minimum=-1)
        controllers = self.addresses("controllerAddr")
        self._config.get("controllerDeployedStandAlone")
        if self.flag("enableControllerMode", False):
            if Version.of(self._config) is Version.V4:
                raise ValueError("enableControllerMode: a broker of version 4 has no such mode")
            if not controllers:
                raise ValueError("controllerAddr: controller mode is on and no controller is named: cannot come online")
            return None, 0, controllers
        if name not in BrokerRole.__members__:
            raise ValueError(f"brokerRole: expected {', '.join(BrokerRole.__members__)}, got {name!r}")
        role = BrokerRole[name]
        if role is BrokerRole.SLAVE and broker_id < 1:
            raise ValueError(f"brokerId: a slave's is greater than 0, got {broker_id}")
        if role is not BrokerRole.SLAVE and broker_id != 0:
            raise ValueError(f"brokerId: a master's is 0, got {broker_id} with brokerRole {name}")
        return role, broker_id, ()

    def topics(self, name: str) -> dict[str, TopicConfig]:
        value = self._config.get(name, {})
        if not isinstance(value, Mapping) or len(value) > MAX_TOPICS:
            raise ValueError(f"{name}: expected {{topic: queues}}, at most {MAX_TOPICS}, got {value!r}")
        try:
            return {topic: TopicConfig.of(topic, queues) for topic, queues in sorted(value.items())}
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

    def in_memory_bytes(self) -> int:
        memory_bytes = self.integer("physicalMemorySize", 8 * 1024**3)
        return memory_bytes * self.integer("accessMessageInMemoryMaxRatio", 40, maximum=100) // 100

    def reads_uncommitted(self) -> bool:
        is_on = self.flag("readUnCommitted", False)
        if is_on and self.flag("allAckInSyncStateSet", False):
            raise ValueError(
                "readUnCommitted: expected false where allAckInSyncStateSet is true, for consumers would read what the "
                "SyncStateSet has not acknowledged; turn one of them off"
            )
        return is_on

    def cleaning(self) -> CleaningRules:
        hours = self.text("deleteWhen", "04")
        if not all(hour.isascii() and hour.isdigit() and int(hour) < HOURS for hour in hours.split(";")):
            raise ValueError(f"deleteWhen: expected hours of the day, 00 to 23, with semicolons between, got {hours!r}")
        kept_hours = self.integer("fileReservedTime", 72)
        return CleaningRules(
            interval_s=self.seconds_from_ms("cleanResourceInterval", 10_000),
            kept_s=self.seconds_from_ms("fileReservedTimeMillis", kept_hours * 3_600_000, minimum_ms=0),
            hours=frozenset(int(hour) for hour in hours.split(";")),
            full_share=self.integer("diskMaxUsedSpaceRatio", 75, minimum=10, maximum=95) / 100,
            forced_share=self.integer("diskSpaceCleanForciblyRatio", 85, minimum=30, maximum=99) / 100,
            is_forced=self.flag("cleanFileForciblyEnable", True),
            files_at_once=self.integer("deleteFileBatchMax", 10, minimum=1),
        )

    def request_mode(self) -> RequestMode:
        name = self.text("defaultMessageRequestMode", RequestMode.PULL.value)
        if name not in RequestMode.__members__:
            raise ValueError(
                f"defaultMessageRequestMode: expected {' or '.join(RequestMode.__members__)}, got {name!r}"
            )
        return RequestMode[name]

    def delays(self) -> DelaySettings:
        try:
            levels = DelayLevels.parse(self.text("messageDelayLevel", DEFAULT_LEVELS))
        except ValueError as error:
            raise ValueError(f"messageDelayLevel: {error}") from error
        pending = self.integer("scheduleAsyncDeliverMaxPendingLimit", 2000, minimum=1)
        return DelaySettings(levels=levels, delivery=self.delay_delivery(), pending=pending)

    def transactions(self) -> TransactionSettings:
        return TransactionSettings(
            rejected=self.flag("rejectTransactionMessage", False),
            timeout_s=self.seconds_from_ms("transactionTimeOut", 6_000),
            check_interval_s=self.seconds_from_ms("transactionCheckInterval", 30_000),
            check_max=self.integer("transactionCheckMax", 15, minimum=1),
        )

    def timer(self) -> TimerSettings:
        """RocketMQ's wheel has slots for fourteen days whatever their width; timerWheelSlots is the number of them."""
        slots = self.integer("timerWheelSlots", 14 * 86_400, minimum=8, maximum=10**9)
        most = slots // 4
        return TimerSettings(
            enabled=self.flag("timerWheelEnable", True),
            precision_ms=self.integer("timerPrecisionMs", 1000, minimum=1, maximum=60_000),
            max_delay_s=self.integer("timerMaxDelaySec", 3 * 86_400, maximum=10**9),
            window_slots=self.integer("timerRollWindowSlot", min(2 * 86_400, most), minimum=2, maximum=most),
            slots=slots,
            log_file_bytes=self.integer("mappedFileSizeTimerLog", 100 * 1024**2, minimum=52),
        )

    def delay_delivery(self) -> DelayDelivery:
        """RocketMQ has a flag for the third mode alone; the first one is that of its early versions."""
        is_asynchronous = self.flag("enableScheduleAsyncDeliver", False)
        default = DelayDelivery.ASYNC if is_asynchronous else DelayDelivery.LEVEL
        value = self.text("scheduleDeliveryMode", default.value)
        try:
            mode = DelayDelivery(value)
        except ValueError:
            expected = ", ".join(mode.value for mode in DelayDelivery)
            raise ValueError(f"scheduleDeliveryMode: expected one of {expected}, got {value!r}") from None
        if is_asynchronous and mode is not DelayDelivery.ASYNC:
            raise ValueError(f"scheduleDeliveryMode: expected ASYNC with enableScheduleAsyncDeliver, got {value}")
        return mode

    def ipv4(self, name: str) -> str:
        """Empty where it is not set."""
        value = self._config.get(name, "")
        try:
            return str(IPv4Address(value)) if value else ""
        except ValueError as error:
            raise ValueError(f"{name}: expected an IPv4 address, got {value!r}") from error

    def flush_disk_type(self) -> FlushMode:
        value = self.text("flushDiskType", FlushMode.ASYNC.value)
        try:
            return FlushMode(value)
        except ValueError:
            expected = " or ".join(mode.value for mode in FlushMode)
            raise ValueError(f"flushDiskType: expected {expected}, got {value!r}") from None


def _place(settings: _Settings) -> dict[str, Any]:
    """Who the broker is, and whom it knows."""
    role, broker_id, controllers = settings.role()
    listen_port = settings.port("listenPort", 10911)
    return dict(
        name_servers=settings.addresses("namesrvAddr"),
        controllers=controllers,
        role=role,
        broker_id=broker_id,
        version=settings.version(),
        cluster=settings.text("brokerClusterName", "DefaultCluster"),
        group=settings.text("brokerName", "broker-a"),
        address=settings.own_address(),
        ip=settings.ipv4("brokerIP1"),
        listen_port=listen_port,
        ha_listen_port=settings.port("haListenPort", listen_port + 1),
        priority=settings.integer("brokerElectionPriority", 2**31 - 1),
        controller_patience_ms=settings.patience_ms(),
        controller_heartbeat_s=settings.seconds_from_ms("brokerHeartbeatInterval", 1_000),
        controller_timeout_s=settings.seconds_from_ms("controllerRequestTimeout", 3_000),
        sync_broker_metadata_s=settings.seconds_from_ms("syncBrokerMetadataPeriod", 5_000),
        sync_controller_metadata_s=settings.seconds_from_ms("syncControllerMetadataPeriod", 10_000),
        register_name_server_s=settings.seconds_from_ms("registerNameServerPeriod", 30_000),
        compresses_registration=settings.flag("compressedRegister", False),
        running_requests=settings.integer("serverAsyncSemaphoreValue", MAX_RUNNING_HANDLERS, minimum=1),
        retry_s=settings.seconds_from_ms("controllerRetryInterval", 500),
    )


def _replication(settings: _Settings) -> dict[str, Any]:
    """How its log gets to others, and when that is enough."""
    return dict(
        all_ack_in_sync_state_set=settings.flag("allAckInSyncStateSet", False),
        in_sync_replicas=settings.integer("inSyncReplicas", 1, minimum=1),
        min_in_sync_replicas=settings.integer("minInSyncReplicas", 1, minimum=1),
        async_learner=settings.flag("asyncLearner", False),
        sync_from_last_file=settings.flag("syncFromLastFile", False),
        copies_anew_when_expired=settings.flag("copyAnewWhenExpired", False),
        ack_after_flush=settings.flag("ackAfterFlush", False),
        replication_wait_s=settings.seconds_from_ms("slaveTimeout", 3_000),
        batch_push=settings.flag("enableBatchPush", False),
        ha_batch_bytes=settings.integer("haTransferBatchSize", 32 * 1024, minimum=1, maximum=MAX_TRANSFER_BODY_BYTES),
        ha_window_bytes=settings.integer("haTransferWindowSize", 4 * 1024 * 1024, minimum=1),
        ha_max_gap_bytes=settings.integer("haMaxGapNotInSync", 256 * 1024 * 1024, minimum=1),
        ha_heartbeat_s=settings.seconds_from_ms("haSendHeartbeatInterval", 5_000),
        ha_housekeeping_s=settings.seconds_from_ms("haHousekeepingInterval", 20_000),
        ha_reconnect_s=settings.seconds_from_ms("haReconnectInterval", 500),
        ha_confirm_notice_s=settings.seconds_from_ms("haConfirmNoticeInterval", 20),
        max_time_slave_not_caught_up_s=settings.seconds_from_ms("haMaxTimeSlaveNotCatchup", 15_000),
        check_sync_state_set_s=settings.seconds_from_ms("checkSyncStateSetPeriod", 5_000),
        slave_sync_s=settings.seconds_from_ms("slaveSynchronizePeriod", 10_000),
    )


def _storage(settings: _Settings) -> dict[str, Any]:
    """How it keeps its log."""
    return dict(
        flush_mode=settings.flush_disk_type(),
        flush_wait_s=settings.seconds_from_ms("syncFlushTimeout", 5_000),
        store_path=settings.path("storePathRootDir", "store"),
        file_bytes=settings.integer("mappedFileSizeCommitLog", 1024**3, minimum=1024),
        max_message_bytes=settings.integer("maxMessageSize", 4 * 1024**2, minimum=1),
        cleaning=settings.cleaning(),
        index_slots=settings.integer("maxHashSlotNum", 1 << 16, minimum=1, maximum=1 << 26),
        index_entries=settings.integer("maxIndexNum", 1 << 18, minimum=2, maximum=1 << 26),
    )


def _messages(settings: _Settings) -> dict[str, Any]:
    """What it does with messages."""
    return dict(
        topics=settings.topics("topics"),
        auto_create_topics=settings.flag("autoCreateTopicEnable", False),
        request_mode=settings.request_mode(),
        pop_shared_queues=settings.integer("defaultPopShareQueueNum", -1, minimum=-1),
        divides_queues=settings.flag("serverLoadBalancerEnable", True),
        route_lives_s=settings.seconds_from_ms("loadBalancePollNameServerInterval", 30_000),
        filters_by_properties=settings.flag("enablePropertyFilter", True),
        auto_create_groups=settings.flag("autoCreateSubscriptionGroup", True),
        slave_reads=settings.flag("slaveReadEnable", False),
        reads_uncommitted=settings.reads_uncommitted(),
        in_memory_bytes=settings.in_memory_bytes(),
        delays=settings.delays(),
        timer=settings.timer(),
        transactions=settings.transactions(),
        client_expires_s=settings.seconds_from_ms("channelExpiredTimeout", 120_000),
        scan_clients_s=settings.seconds_from_ms("scanNotActiveChannelInterval", 10_000),
        lock_lives_s=settings.seconds_from_ms("rebalanceLockMaxLiveTime", 60_000),
        strict_locks=settings.flag("lockInStrictMode", False),
        total_replicas=settings.integer("totalReplicas", 1, minimum=1),
    )
