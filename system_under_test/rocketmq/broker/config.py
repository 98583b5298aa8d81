"""A broker's settings: JSON with RocketMQ's names at the boundary, a frozen value with units inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

from system_under_test.rocketmq.broker.ha.wire import MAX_TRANSFER_BODY_BYTES
from system_under_test.rocketmq.settings import Settings
from system_under_test.rocketmq.topic import MAX_TOPICS, TopicConfig
from system_under_test.storage.message_store import FlushMode


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerConfig:
    name_servers: tuple[str, ...]
    controllers: tuple[str, ...]
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

    flush_mode: FlushMode = FlushMode.ASYNC
    all_ack_in_sync_state_set: bool = False
    in_sync_replicas: int = 1
    min_in_sync_replicas: int = 1
    async_learner: bool = False
    sync_from_last_file: bool = False
    ack_after_flush: bool = False
    """A slave acks what is durable instead of what is written."""
    priority: int = 2**31 - 1

    flush_wait_s: float = 5.0
    replication_wait_s: float = 3.0
    ha_batch_bytes: int = 32 * 1024
    ha_window_bytes: int = 4 * 1024 * 1024
    """Sent to one slave and not yet acked by it, at most (give or take one batch)."""
    ha_heartbeat_s: float = 5.0
    ha_housekeeping_s: float = 20.0
    ha_reconnect_s: float = 0.5
    ha_confirm_notice_s: float = 0.02
    """A confirm offset that moved is sent to idle slaves after this time."""
    max_time_slave_not_caught_up_s: float = 15.0
    check_sync_state_set_s: float = 5.0
    sync_broker_metadata_s: float = 5.0
    controller_heartbeat_s: float = 1.0
    controller_timeout_s: float = 3.0
    register_name_server_s: float = 30.0
    compresses_registration: bool = False
    slave_sync_s: float = 10.0
    """A slave asks its master for topics, groups and consumers' offsets at this pace."""
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
        if not settings.flag("enableControllerMode", True):
            raise ValueError("enableControllerMode: expected true, got False: brokers run in controller mode only")
        controllers = settings.addresses("controllerAddr")
        if not controllers:
            raise ValueError("controllerAddr: controller mode is on and no controller is named: cannot come online")
        # RocketMQ's settings that mean nothing here: ids and roles come from the controller, which is looked for
        # whenever it does not answer.
        for ignored in ("brokerId", "brokerRole", "controllerDeployedStandAlone", "syncControllerMetadataPeriod"):
            config.get(ignored)
        listen_port = settings.port("listenPort", 10911)
        return cls(
            name_servers=settings.addresses("namesrvAddr"),
            controllers=controllers,
            cluster=settings.text("brokerClusterName", "DefaultCluster"),
            group=settings.text("brokerName", "broker-a"),
            address=settings.addresses("brokerAddr")[0] if "brokerAddr" in config else "",
            listen_port=listen_port,
            ha_listen_port=settings.port("haListenPort", listen_port + 1),
            topics=settings.topics("topics"),
            auto_create_topics=settings.flag("autoCreateTopicEnable", False),
            filters_by_properties=settings.flag("enablePropertyFilter", True),
            auto_create_groups=settings.flag("autoCreateSubscriptionGroup", True),
            flush_mode=settings.flush_disk_type(),
            all_ack_in_sync_state_set=settings.flag("allAckInSyncStateSet", False),
            in_sync_replicas=settings.integer("inSyncReplicas", 1, minimum=1),
            min_in_sync_replicas=settings.integer("minInSyncReplicas", 1, minimum=1),
            async_learner=settings.flag("asyncLearner", False),
            sync_from_last_file=settings.flag("syncFromLastFile", False),
            ack_after_flush=settings.flag("ackAfterFlush", False),
            priority=settings.integer("brokerElectionPriority", 2**31 - 1),
            flush_wait_s=settings.seconds_from_ms("syncFlushTimeout", 5_000),
            replication_wait_s=settings.seconds_from_ms("slaveTimeout", 3_000),
            ha_batch_bytes=settings.integer(
                "haTransferBatchSize", 32 * 1024, minimum=1, maximum=MAX_TRANSFER_BODY_BYTES
            ),
            ha_window_bytes=settings.integer("haTransferWindowSize", 4 * 1024 * 1024, minimum=1),
            ha_heartbeat_s=settings.seconds_from_ms("haSendHeartbeatInterval", 5_000),
            ha_housekeeping_s=settings.seconds_from_ms("haHousekeepingInterval", 20_000),
            ha_reconnect_s=settings.seconds_from_ms("haReconnectInterval", 500),
            ha_confirm_notice_s=settings.seconds_from_ms("haConfirmNoticeInterval", 20),
            max_time_slave_not_caught_up_s=settings.seconds_from_ms("haMaxTimeSlaveNotCatchup", 15_000),
            check_sync_state_set_s=settings.seconds_from_ms("checkSyncStateSetPeriod", 5_000),
            sync_broker_metadata_s=settings.seconds_from_ms("syncBrokerMetadataPeriod", 5_000),
            controller_heartbeat_s=settings.seconds_from_ms("brokerHeartbeatInterval", 1_000),
            controller_timeout_s=settings.seconds_from_ms("controllerRequestTimeout", 3_000),
            register_name_server_s=settings.seconds_from_ms("registerNameServerPeriod", 30_000),
            compresses_registration=settings.flag("compressedRegister", False),
            slave_sync_s=settings.seconds_from_ms("slaveSynchronizePeriod", 10_000),
            retry_s=settings.seconds_from_ms("controllerRetryInterval", 500),
            store_path=settings.text("storePathRootDir", "store"),
            file_bytes=settings.integer("mappedFileSizeCommitLog", 1024**3, minimum=1024),
            max_message_bytes=settings.integer("maxMessageSize", 4 * 1024**2, minimum=1),
            ip=settings.ipv4("brokerIP1"),
            index_slots=settings.integer("maxHashSlotNum", 1 << 16, minimum=1, maximum=1 << 26),
            index_entries=settings.integer("maxIndexNum", 1 << 18, minimum=2, maximum=1 << 26),
        )


class _Settings(Settings):
    """With what only brokers have."""

    def addresses(self, name: str) -> tuple[str, ...]:
        """Addresses `name:port` with semicolons between, or a list of them."""
        value = self._config.get(name, "")
        parts = value.split(";") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"{name}: expected addresses with semicolons between, got {value!r}")
        addresses = tuple(part.strip() for part in parts if part.strip())
        for address in addresses:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise ValueError(f"{name}: expected name:port, got {address!r}")
        return addresses

    def topics(self, name: str) -> dict[str, TopicConfig]:
        value = self._config.get(name, {})
        if not isinstance(value, Mapping) or len(value) > MAX_TOPICS:
            raise ValueError(f"{name}: expected {{topic: queues}}, at most {MAX_TOPICS}, got {value!r}")
        try:
            return {topic: TopicConfig.of(topic, queues) for topic, queues in sorted(value.items())}
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

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
