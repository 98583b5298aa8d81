"""Settings of a NameServer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from system_under_test.node.settings import Settings
from system_under_test.rocketmq.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerConfig:
    listen_port: int = 9876
    scan_interval_s: float = 5.0
    """How often expired brokers are looked for."""
    broker_expiry_s: float = 120.0
    """How long a broker stays without registering again, unless it asked for a time of its own."""
    version: Version = Version.V5

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> NameServerConfig:
        settings = Settings(config)
        return cls(
            listen_port=settings.port("listenPort", 9876),
            scan_interval_s=settings.seconds_from_ms("scanNotActiveBrokerInterval", 5_000),
            broker_expiry_s=settings.seconds_from_ms("brokerChannelExpiredTime", 120_000),
            version=Version.of(config),
        )
