"""RocketMQ's settings by the names used here, and the names and addresses of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from harness.bounds import Bounds
from harness.errors import UsageError
from harness.record.scenario import SettingValue

BROKER_GROUP = "broker-a"
TOPIC = "storm"
NAMESERVER_PORT, CONTROLLER_PORT, RAFT_PORT = 9876, 9878, 9879
BROKER_PORT, HA_PORT = 10911, 10912


@dataclass(frozen=True, kw_only=True)
class RocketmqSettings:
    """RocketMQ's settings by the names used here; `time_scale` shortens all of its periods alike."""

    controllers: Annotated[int, Bounds(1, 50)] = 3
    brokers: Annotated[int, Bounds(1, 100)] = 3
    all_ack: bool = True
    in_sync_replicas: Annotated[int, Bounds(1, 100)] = 1
    min_in_sync_replicas: Annotated[int, Bounds(1, 100)] = 2
    flush: Literal["sync", "async"] = "sync"
    ack_durable: bool = False
    """Slaves acknowledge only what they have fsynced."""
    unclean_election: bool = False
    notify_role_changed: bool = True
    learners: Annotated[int, Bounds(0, 99)] = 0
    """How many of the brokers are asynchronous learners (the last ones)."""
    delay_delivery: Literal["single", "level", "async"] = "level"
    """Who delivers messages that are delayed by a level: one worker for all, one a level, many a level."""
    topic_queues: Annotated[int, Bounds(1, 1_000)] = 16
    segment_bytes: Annotated[int, Bounds(1_024, 1 << 30)] = 64 * 1024 * 1024
    time_scale: Annotated[float, Bounds(0.01, 100)] = 0.3
    snapshot_threshold: Annotated[int, Bounds(1, 1_000_000)] = 1_000
    """So many entries the controllers' Raft log holds until a snapshot takes their place."""
    sparse_heartbeats: bool = False
    """Brokers and controllers send two heartbeats or three until they count as dead, instead of five or ten."""

    def __post_init__(self) -> None:
        if self.learners >= self.brokers:
            raise UsageError(f"learners must be less than brokers ({self.brokers}), got {self.learners}")
        for name in ("min_in_sync_replicas", "in_sync_replicas"):
            if getattr(self, name) > self.brokers - self.learners:
                raise UsageError(
                    f"{name}={getattr(self, name)} can never be met by "
                    f"{self.brokers - self.learners} brokers: every send would be refused; lower it or add brokers"
                )


EXPLORED: Mapping[str, tuple[SettingValue, ...]] = {
    "ack_durable": (True,),
    "all_ack": (False,),
    "brokers": (1, 2, 4, 5),
    "controllers": (1, 5),
    "delay_delivery": ("single", "async"),
    "flush": ("async",),
    "in_sync_replicas": (2,),
    "learners": (1,),
    "min_in_sync_replicas": (1, 3),
    "notify_role_changed": (False,),
    "segment_bytes": (4_096, 65_536),
    "unclean_election": (True,),
}
"""What storms are drawn from, beside the defaults."""

PACES: Mapping[str, tuple[SettingValue, ...]] = {
    "sparse_heartbeats": (True,),
    "time_scale": (0.1, 0.1, 0.15, 0.2, 0.3),
}


def controller_names(settings: RocketmqSettings) -> list[str]:
    return [f"c{i + 1}" for i in range(settings.controllers)]


def broker_names(settings: RocketmqSettings) -> list[str]:
    return [f"b{i + 1}" for i in range(settings.brokers)]


def addresses(names: list[str], port: int) -> list[str]:
    return [f"{name}:{port}" for name in names]


def milliseconds(default_ms: int, settings: RocketmqSettings) -> int:
    return max(1, round(default_ms * settings.time_scale))


def raft_milliseconds(default_ms: int, settings: RocketmqSettings) -> int:
    """Raft's periods shrink only below the usual time scale."""
    return max(1, round(default_ms * min(1.0, settings.time_scale / RocketmqSettings.time_scale)))


def node_of(address: str) -> str:
    return address.rpartition(":")[0]
