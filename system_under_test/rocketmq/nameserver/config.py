"""Settings of a NameServer."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.node.settings import port, seconds
from system_under_test.rocketmq.version import Version, behaves_as


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerConfig:
    listen_port: int = port("listenPort", 9876)
    scan_interval_s: float = seconds("scanNotActiveBrokerInterval", 5_000)
    """How often expired brokers are looked for."""
    broker_expiry_s: float = seconds("brokerChannelExpiredTime", 120_000)
    """How long a broker stays without registering again, unless it asked for a time of its own."""
    version: Version = behaves_as("behavesAsVersion")
