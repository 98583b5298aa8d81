"""A proxy's settings: JSON with RocketMQ's names at the boundary, a frozen value with units inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from system_under_test.grpc.server import MAX_RUNNING_CALLS
from system_under_test.node.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyConfig:
    name_servers: tuple[str, ...]
    cluster: str = "DefaultCluster"
    """The proxy serves topics of this cluster's brokers."""
    listen_port: int = 8081
    broker_timeout_s: float = 3.0
    route_age_s: float = 5.0
    """A route is looked up anew after this time; after an error at once."""
    max_body_bytes: int = 4 * 1024**2
    max_user_properties: int = 128
    max_user_property_bytes: int = 16 * 1024
    max_polling_s: float = 20.0
    default_invisible_s: float = 60.0
    min_invisible_s: float = 10.0
    max_invisible_s: float = 12 * 3600.0
    renew_every_s: float = 20.0
    """While a client that asked for it holds messages, their time is renewed at this pace."""
    max_receive_count: int = 32
    client_expires_s: float = 120.0
    """A client that has been silent so long is taken for gone."""
    running_calls: int = MAX_RUNNING_CALLS
    """So many are at work at one time; what waits is not."""
    producer_attempts: int = 3
    """So often clients are told to send a message that could not be sent, the first time included."""

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> ProxyConfig:
        """Raises ValueError that names the setting that is wrong."""
        settings = Settings(config)
        name_servers = settings.addresses("namesrvAddr")
        if not name_servers:
            raise ValueError("namesrvAddr: expected the NameServers' addresses, got none")
        return cls(
            name_servers=name_servers,
            cluster=settings.text("rocketMQClusterName", "DefaultCluster"),
            listen_port=settings.port("grpcServerPort", 8081),
            broker_timeout_s=settings.seconds_from_ms("brokerRequestTimeout", 3_000),
            route_age_s=settings.seconds_from_ms("topicRouteServiceCacheExpiredTime", 5_000),
            max_body_bytes=settings.integer("maxMessageSize", 4 * 1024**2, minimum=1),
            max_user_properties=settings.integer("userPropertyMaxNum", 128),
            max_user_property_bytes=settings.integer("maxUserPropertySize", 16 * 1024),
            max_polling_s=settings.seconds_from_ms("grpcClientConsumerMaxLongPollingTimeoutMillis", 20_000),
            default_invisible_s=settings.seconds_from_ms("defaultInvisibleTimeMills", 60_000),
            min_invisible_s=settings.seconds_from_ms("minInvisibleTimeMillsForRecv", 10_000),
            max_invisible_s=settings.seconds_from_ms("maxInvisibleTimeMills", 12 * 3_600_000),
            renew_every_s=settings.seconds_from_ms("renewSliceTimeMillis", 20_000),
            max_receive_count=settings.integer("grpcClientConsumerLongPollingBatchSize", 32, minimum=1),
            client_expires_s=settings.seconds_from_ms("grpcClientIdleTimeMills", 120_000, minimum_ms=1_000),
            running_calls=settings.integer("grpcThreadPoolQueueCapacity", MAX_RUNNING_CALLS, minimum=1),
            producer_attempts=settings.integer("grpcClientProducerMaxAttempts", 3, minimum=1),
        )
