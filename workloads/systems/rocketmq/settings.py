"""RocketMQ's settings by the names used here, and the names and addresses of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from string import ascii_lowercase
from typing import Annotated, Literal

from harness.bounds import Bounds
from harness.errors import UsageError
from harness.record.scenario import SettingValue

Deployment = Literal["controller", "single", "masters", "async-slaves", "dual-write"]

TOPIC = "storm"
NAMESERVER_PORT, CONTROLLER_PORT, RAFT_PORT = 9876, 9878, 9879
BROKER_PORT, HA_PORT = 10911, 10912
PROXY_PORT = 8081

SEGMENT_BYTES, SMALL_SEGMENT_BYTES = 64 * 1024 * 1024, 4_096


@dataclass(frozen=True, kw_only=True)
class RocketmqSettings:
    """RocketMQ's settings by the names used here; `time_scale` shortens all of its periods alike."""

    deployment: Deployment = "controller"
    """`controller`: masters are elected by controllers. Without these: `single`, one master; `masters`, several;
    `async-slaves` and `dual-write`, masters with slaves that they do not wait for, or do. Nobody is promoted then."""
    groups: Annotated[int, Bounds(0, 20)] = 0
    """Of brokers: each has its own queues, and a log of its own. 0 is as usual: one, or two where there are masters
    only."""
    controllers: Annotated[int, Bounds(1, 50)] = 3
    controllers_alone: bool = False
    """Controllers run by themselves, instead of in NameServers."""
    name_servers: Annotated[int, Bounds(0, 50)] = 0
    """NameServers without a controller in them. 0 is as usual: none, or three where no controller is in any."""
    brokers: Annotated[int, Bounds(1, 100)] = 3
    """Of each group, its master among them; where there are masters only, one whatever is given here."""
    all_ack: bool = True
    in_sync_replicas: Annotated[int, Bounds(1, 100)] = 1
    min_in_sync_replicas: Annotated[int, Bounds(1, 100)] = 2
    flush: Literal["sync", "async"] = "sync"
    ack_durable: bool = False
    """Slaves acknowledge only what they have fsynced."""
    unclean_election: bool = False
    read_uncommitted: bool = False
    """Consumers see what is not acknowledged by the SyncStateSet yet; only where not all of it has to."""
    notify_role_changed: bool = True
    learners: Annotated[int, Bounds(0, 99)] = 0
    """How many of each group's brokers are asynchronous learners (the last ones)."""
    delay_delivery: Literal["single", "level", "async"] = "level"
    """Who delivers messages that are delayed by a level: one worker for all, one a level, many a level."""
    topic_queues: Annotated[int, Bounds(1, 1_000)] = 16
    """Of each group."""
    segment_bytes: Annotated[int, Bounds(1_024, 1 << 30)] = SEGMENT_BYTES
    """Of each file of the log; where messages expire, 4 KiB unless another size is set."""
    retention_s: Annotated[float, Bounds(0, 1_000_000)] = 0.0
    """For so long a file of the log is kept once it is full, as long as its broker runs; 0: for ever. Scaled as all
    periods are."""
    clean_when_full: bool = False
    """A broker whose disk runs full deletes its oldest files, whatever their age."""
    sync_from_last_file: bool = False
    """A replica that is empty begins at the last file of its master's log, and counts once the rest has expired."""
    time_scale: Annotated[float, Bounds(0.01, 100)] = 0.3
    snapshot_threshold: Annotated[int, Bounds(1, 1_000_000)] = 1_000
    """So many entries the controllers' Raft log holds until a snapshot takes their place."""
    client: Literal["remoting", "grpc"] = "remoting"
    """How the harness's clients reach brokers: themselves, or through proxies."""
    proxies: Annotated[int, Bounds(0, 20)] = 0
    """Proxies in front of the brokers. 0 is as usual: none, or two where clients speak gRPC."""
    sparse_heartbeats: bool = False
    """Brokers and controllers send two heartbeats or three until they count as dead, instead of five or ten."""

    @property
    def file_bytes(self) -> int:
        return SMALL_SEGMENT_BYTES if self.retention_s and self.segment_bytes == SEGMENT_BYTES else self.segment_bytes

    def __post_init__(self) -> None:
        if self.deployment == "controller":
            self._require_possible_set()
        else:
            self._require_no_controllers()

    def _require_possible_set(self) -> None:
        if self.learners >= self.brokers:
            raise UsageError(f"learners must be less than brokers ({self.brokers}), got {self.learners}")
        if self.read_uncommitted and self.all_ack:
            raise UsageError(
                "read_uncommitted needs all_ack=false, for readers would see what not all have acknowledged"
            )
        for name in ("min_in_sync_replicas", "in_sync_replicas"):
            if getattr(self, name) > self.brokers - self.learners:
                raise UsageError(
                    f"{name}={getattr(self, name)} can never be met by "
                    f"{self.brokers - self.learners} brokers: every send would be refused; lower it or add brokers"
                )

    def _require_no_controllers(self) -> None:
        """What only controllers, or brokers that they elect, give a meaning."""
        for field in fields(self):
            if field.name in OF_CONTROLLER_MODE and getattr(self, field.name) != field.default:
                raise UsageError(
                    f"{field.name} means nothing with deployment={self.deployment}, which has no controllers; leave it "
                    "out"
                )
        if not self.has_slaves and self.brokers not in (1, type(self).__dataclass_fields__["brokers"].default):
            raise UsageError(
                f"deployment={self.deployment} has one broker in each group, got brokers={self.brokers}; leave it out, "
                "or choose a deployment with slaves"
            )
        if self.has_slaves and self.brokers < LEAST_WITH_SLAVES:
            raise UsageError(
                f"deployment={self.deployment} needs a master and a slave in each group: brokers must be at least "
                f"{LEAST_WITH_SLAVES}, got {self.brokers}"
            )
        if self.deployment == "single" and self.groups > 1:
            raise UsageError(
                f"deployment=single has one broker, got groups={self.groups}; several masters are deployment=masters"
            )
        if self.deployment == "masters" and self.groups == 1:
            raise UsageError("deployment=masters needs at least two groups, got 1; one master is deployment=single")

    @property
    def has_controllers(self) -> bool:
        return self.deployment == "controller"

    @property
    def has_slaves(self) -> bool:
        """Slaves of a configured master."""
        return self.deployment in ("async-slaves", "dual-write")

    @property
    def replicas(self) -> int:
        """Of each group."""
        return 1 if self.deployment in ("single", "masters") else self.brokers

    @property
    def needed_replicas(self) -> int:
        """Without so many a group does not acknowledge anything."""
        if self.has_controllers:
            return max(self.min_in_sync_replicas, 1 if self.all_ack else self.in_sync_replicas)
        return 2 if self.deployment == "dual-write" else 1


OF_CONTROLLER_MODE = (
    "controllers",
    "controllers_alone",
    "all_ack",
    "in_sync_replicas",
    "min_in_sync_replicas",
    "unclean_election",
    "notify_role_changed",
    "read_uncommitted",
    "sync_from_last_file",
    "learners",
    "snapshot_threshold",
)
LEAST_WITH_SLAVES = 2
USUAL_NAME_SERVERS = 3
USUAL_PROXIES = 2


@dataclass(frozen=True)
class BrokerGroup:
    """The replicas of one log."""

    name: str
    """RocketMQ's brokerName."""
    brokers: tuple[str, ...]
    """Its nodes; the first is the master where that is configured."""
    voters: tuple[str, ...]
    """Those that may be elected, or all."""


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
    "read_uncommitted": (True,),
    "retention_s": (10.0, 30.0),
    "segment_bytes": (4_096, 65_536),
    "sync_from_last_file": (True,),
    "unclean_election": (True,),
}
"""What storms are drawn from, beside the defaults."""

EXPLORED_WITHOUT_CONTROLLERS: Mapping[str, tuple[SettingValue, ...]] = {
    "flush": ("async",),
    "retention_s": (10.0, 30.0),
    "segment_bytes": (4_096, 65_536),
}

PACES: Mapping[str, tuple[SettingValue, ...]] = {
    "sparse_heartbeats": (True,),
    "time_scale": (0.1, 0.1, 0.15, 0.2, 0.3),
}


def controller_names(settings: RocketmqSettings) -> list[str]:
    return [f"c{i + 1}" for i in range(settings.controllers)] if settings.has_controllers else []


def lone_name_servers(settings: RocketmqSettings) -> list[str]:
    """NameServers without a controller."""
    usual = 0 if settings.has_controllers and not settings.controllers_alone else USUAL_NAME_SERVERS
    count = settings.name_servers or usual
    return [f"n{i + 1}" for i in range(count)]


def name_server_names(settings: RocketmqSettings) -> list[str]:
    """All nodes in which there is one."""
    embedded = [] if settings.controllers_alone else controller_names(settings)
    return [*embedded, *lone_name_servers(settings)]


def proxy_names(settings: RocketmqSettings) -> list[str]:
    usual = USUAL_PROXIES if settings.client == "grpc" else 0
    return [f"p{i + 1}" for i in range(settings.proxies or usual)]


def broker_groups(settings: RocketmqSettings) -> tuple[BrokerGroup, ...]:
    """Brokers are numbered through: of groups of three, b4 is the first of the second."""
    count = settings.groups or (2 if settings.deployment == "masters" else 1)
    replicas = settings.replicas
    groups = []
    for number in range(count):
        brokers = tuple(f"b{number * replicas + i + 1}" for i in range(replicas))
        voters = brokers[: replicas - settings.learners]
        groups.append(BrokerGroup(name=f"broker-{ascii_lowercase[number]}", brokers=brokers, voters=voters))
    return tuple(groups)


def group_of(settings: RocketmqSettings, broker: str) -> BrokerGroup:
    return next(group for group in broker_groups(settings) if broker in group.brokers)


def broker_names(settings: RocketmqSettings) -> list[str]:
    return [broker for group in broker_groups(settings) for broker in group.brokers]


def addresses(names: list[str], port: int) -> list[str]:
    return [f"{name}:{port}" for name in names]


def milliseconds(default_ms: int, settings: RocketmqSettings) -> int:
    return max(1, round(default_ms * settings.time_scale))


def raft_milliseconds(default_ms: int, settings: RocketmqSettings) -> int:
    """Raft's periods shrink only below the usual time scale."""
    return max(1, round(default_ms * min(1.0, settings.time_scale / RocketmqSettings.time_scale)))


def node_of(address: str) -> str:
    return address.rpartition(":")[0]
