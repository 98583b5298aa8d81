"""A proxy's settings: JSON with RocketMQ's names at the boundary, a frozen value with units inside."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.grpc.server import MAX_RUNNING_CALLS
from system_under_test.node.settings import Settings, integer, port, seconds, setting, text


@setting
def _name_servers(settings: Settings, name: str) -> tuple[str, ...]:
    name_servers = settings.addresses(name)
    if not name_servers:
        raise ValueError(f"{name}: expected the NameServers' addresses, got none")
    return name_servers


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyConfig:
    name_servers: tuple[str, ...] = _name_servers("namesrvAddr")
    cluster: str = text("rocketMQClusterName", "DefaultCluster")
    """The proxy serves topics of this cluster's brokers."""
    listen_port: int = port("grpcServerPort", 8081)
    broker_timeout_s: float = seconds("brokerRequestTimeout", 3_000)
    route_age_s: float = seconds("topicRouteServiceCacheExpiredTime", 5_000)
    """A route is looked up anew after this time; after an error at once."""
    max_body_bytes: int = integer("maxMessageSize", 4 * 1024**2, minimum=1)
    max_user_properties: int = integer("userPropertyMaxNum", 128)
    max_user_property_bytes: int = integer("maxUserPropertySize", 16 * 1024)
    max_polling_s: float = seconds("grpcClientConsumerMaxLongPollingTimeoutMillis", 20_000)
    default_invisible_s: float = seconds("defaultInvisibleTimeMills", 60_000)
    min_invisible_s: float = seconds("minInvisibleTimeMillsForRecv", 10_000)
    max_invisible_s: float = seconds("maxInvisibleTimeMills", 12 * 3_600_000)
    renew_every_s: float = seconds("renewSliceTimeMillis", 20_000)
    """While a client that asked for it holds messages, their time is renewed at this pace."""
    max_receive_count: int = integer("grpcClientConsumerLongPollingBatchSize", 32, minimum=1)
    client_expires_s: float = seconds("grpcClientIdleTimeMills", 120_000, minimum_ms=1_000)
    """A client that has been silent so long is taken for gone."""
    running_calls: int = integer("grpcThreadPoolQueueCapacity", MAX_RUNNING_CALLS, minimum=1)
    """So many are at work at one time; what waits is not."""
    producer_attempts: int = integer("grpcClientProducerMaxAttempts", 3, minimum=1)
    """So often clients are told to send a message that could not be sent, the first time included."""
