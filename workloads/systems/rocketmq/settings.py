"""RocketMQ's settings by the names used here, and the names and addresses of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from string import ascii_lowercase
from typing import Annotated, Literal

from harness.bounds import Bounds
from harness.errors import UsageError
from system_under_test.rocketmq.topic import MAX_NAME
from workloads.systems.java import require_release

Deployment = Literal["controller", "single", "masters", "async-slaves", "dual-write", "dledger"]

TOPIC = "storm"
MOST_BEFORE_TOPIC = 40
"""Characters of a retry topic before the topic's."""
BORDERS = "borders".ljust(MAX_NAME, "-")
"""The topic of requests that no history tells of."""
BORDERING_MESSAGE_BYTES = 48 * 1024
NAMESERVER_PORT, CONTROLLER_PORT, RAFT_PORT = 9876, 9878, 9879
BROKER_PORT, HA_PORT, DLEDGER_PORT = 10911, 10912, 20911
PROXY_PORT = 8081

SEGMENT_BYTES, SMALL_SEGMENT_BYTES = 64 * 1024 * 1024, 4_096


@dataclass(frozen=True, kw_only=True)
class RocketmqSettings:
    """RocketMQ's settings by the names used here; `time_scale` shortens all of its periods alike."""

    deployment: Deployment = "controller"
    """`controller`: masters are elected by controllers. Without these: `single`, one master; `masters`, several;
    `async-slaves` and `dual-write`, masters with slaves that they do not wait for, or do. Nobody is promoted then.
    `dledger`: each group of brokers is one of DLedger, which replicates their log and elects the master itself."""
    groups: Annotated[int, Bounds(0, 20)] = 0
    """How many groups of brokers there are: each has its own queues, and a log of its own. 0 is as usual: one, or two
    where there are masters only."""
    machines: Annotated[int, Bounds(0, 100)] = 0
    """So many that nodes share: the first controller, NameServer, broker and proxy run on the first one, and so on,
    round and round. 0: each node has one of its own."""
    controllers: Annotated[int, Bounds(1, 50)] = 3
    controllers_alone: bool = False
    """Controllers run by themselves, instead of in NameServers."""
    name_servers: Annotated[int, Bounds(0, 50)] = 0
    """NameServers without a controller in them. 0 is as usual: none, or three where no controller is in any."""
    brokers: Annotated[int, Bounds(1, 100)] = 3
    """How many brokers each group has, its master among them; where there are masters only, one whatever is given
    here."""
    all_ack: bool = True
    in_sync_replicas: Annotated[int, Bounds(1, 100)] = 1
    min_in_sync_replicas: Annotated[int, Bounds(1, 100)] = 2
    flush: Literal["sync", "async"] = "sync"
    ack_durable: bool = False
    """Slaves acknowledge only what they have fsynced; with deployment=dledger no member counts before."""
    batch_push: bool = False
    """A master sends its slaves together what it writes in one go, instead of each message separately."""
    preferred: Annotated[int, Bounds(0, 5)] = 0
    """The number of the broker in each group of DLedger that is to be master if it can; 0: none."""
    unclean_election: bool = False
    read_uncommitted: bool = False
    """Consumers see what is not acknowledged by the SyncStateSet yet; only where not all of it has to."""
    notify_role_changed: bool = True
    learners: Annotated[int, Bounds(0, 99)] = 0
    """How many of each group's brokers are asynchronous learners (the last ones)."""
    becomes_learner: bool = False
    """The last one of each group that is none is configured as one from when the nemesis upgrades it."""
    delay_delivery: Literal["single", "level", "async"] = "level"
    """Who delivers messages that are delayed by a level: one worker for all, one a level, many a level."""
    topic_queues: Annotated[int, Bounds(1, 1_000)] = 16
    """How many queues the topic has in each group."""
    segment_bytes: Annotated[int, Bounds(1_024, 1 << 30)] = SEGMENT_BYTES
    """The size of each file of the log; where messages expire, 4 KiB unless another size is set."""
    static_queues: Annotated[int, Bounds(0, 64)] = 0
    """How many queues the topic has, if it is a static one: they are not the groups' own, but move between them. 0: it
    is not."""
    retention_s: Annotated[float, Bounds(0, 1_000_000)] = 0.0
    """How long a file of the log is kept once it is full, as long as its broker runs; 0: for ever. Scaled as all
    periods are."""
    clean_when_full: bool = False
    """A broker whose disk runs full deletes its oldest files, whatever their age."""
    sync_from_last_file: bool = False
    """A replica that is empty begins at the last file of its master's log, and counts once the rest has expired."""
    time_scale: Annotated[float, Bounds(0.01, 100)] = 0.3
    snapshot_threshold: Annotated[int, Bounds(1, 1_000_000)] = 1_000
    """So many entries the controllers' Raft log holds until a snapshot takes their place."""
    strict_locks: bool = False
    """A member has a queue that is consumed in order only if most replicas have given it."""
    assignment: Literal["client", "broker"] = "client"
    """Who divides queues among the members of a group that neither consumes in order nor broadcasts. For a member that
    pops brokers always decide."""
    client: Literal["remoting", "grpc"] = "remoting"
    """How the harness's clients reach brokers: themselves, or through proxies."""
    requests: Literal["all", "public"] = "all"
    """Which the harness's clients send: `public` are those that every RocketMQ knows. Then the controllers' key-value
    store is out of reach, and nothing that nodes report of themselves excuses a loss."""
    proxies: Annotated[int, Bounds(0, 20)] = 0
    """Proxies in front of the brokers. 0 is as usual: none, or two where clients speak gRPC."""
    release: str = ""
    """A published release of RocketMQ itself, as 5.4.0: its programs, which Maven fetches, are put on trial instead of
    those that come with Stormproof. For containers."""
    distribution: str = ""
    """The same of a distribution that is here: its folder, or its archive (.zip, .tar.gz). For containers."""
    image: str = ""
    """The same of an image that has a distribution, where its variable ROCKETMQ_HOME says, or `installed`. For
    containers."""
    installed: str = ""
    """The same of a RocketMQ that is installed where nodes run: its directory, as /opt/rocketmq."""
    originals: Annotated[int, Bounds(0, 5)] = 0
    """So many brokers of each group of DLedger, the first ones, are RocketMQ's own, and all other nodes those that come
    with Stormproof. With 0 all are RocketMQ's own, if what is put on trial is named."""
    java_options: str = ""
    """Options for the virtual machines of such a RocketMQ, such as `-Xms1g -Xmx1g`, after those that make them
    small."""
    begins_as_version: Annotated[int, Bounds(4, 5)] = 5
    """The version of RocketMQ that NameServers and brokers behave as until the nemesis upgrades them to version 5. In a
    group of DLedger brokers of version 4 push and take single entries alone."""
    values: Literal["ordinary", "bordering"] = "ordinary"
    """What clients send: `bordering` are topics with the longest names, sometimes messages of the greatest size and
    beyond, and beside them what is to be refused or to end nobody: numbers and flags at their limits, many pulls that
    wait, clients of proxies that vanish."""
    request_places: Annotated[int, Bounds(0, 100_000)] = 0
    """So many requests a broker, and calls a proxy, works on at one time; what waits is not counted. 0 is as usual."""
    topic_each: bool = False
    """Each workload has a topic of its own, as it needs beside others; on where several run at once."""
    sparse_heartbeats: bool = False
    """Brokers and controllers send two heartbeats or three until they count as dead, instead of five or ten."""

    @property
    def file_bytes(self) -> int:
        return SMALL_SEGMENT_BYTES if self.retention_s and self.segment_bytes == SEGMENT_BYTES else self.segment_bytes

    def __post_init__(self) -> None:
        self._require_original_possible()
        if self.static_queues and self.values == "bordering":
            raise UsageError("values=bordering is about topics of brokers, not static ones; leave static_queues out")
        if self.static_queues and self.client == "grpc":
            raise UsageError("client=grpc goes through proxies, which know no static topics; leave static_queues out")
        if self.retention_s and self.begins_as_version != NEWEST_VERSION:
            raise UsageError(
                f"begins_as_version={self.begins_as_version} with retention_s={self.retention_s:g}: a slave of that "
                "version that has less than its master has left waits for good; leave retention_s out"
            )
        if self.deployment == "dledger":
            self._require_possible_group()
        else:
            for name in ("preferred", "originals"):
                if given := getattr(self, name):
                    raise UsageError(f"{name}={given} is about deployment=dledger; leave it out, or choose that")
        if self.deployment == "controller":
            if self.begins_as_version != NEWEST_VERSION:
                raise UsageError(
                    f"begins_as_version={self.begins_as_version} with deployment=controller: that version knows no "
                    "controllers; choose another deployment"
                )
            self._require_possible_set()
        else:
            self._require_no_controllers()

    def _require_original_possible(self) -> None:
        if not self.is_original:
            for name in ("java_options", "originals"):
                if getattr(self, name):
                    raise UsageError(
                        f"{name} is about a RocketMQ of Apache's: say which, by release, distribution, image or "
                        "installed"
                    )
            return
        named = [name for name in ("release", "distribution", "image") if getattr(self, name)]
        if len(named) > 1 or (self.installed and named not in ([], ["image"])):
            both = " and ".join([*named, *(["installed"] if self.installed else [])])
            raise UsageError(f"{both} each say which RocketMQ is put on trial; leave all but one out")
        if self.release:
            require_release(self.release, of="RocketMQ", such_as="5.4.0")
        if self.installed and not self.installed.startswith("/"):
            raise UsageError(
                "installed takes the directory of a RocketMQ where nodes run, an absolute path as /opt/rocketmq, got "
                f"{self.installed!r}"
            )
        for field in fields(self):
            if field.name in OURS_ALONE and getattr(self, field.name) != field.default:
                which = "that Apache publishes" if named else "that is installed"
                raise UsageError(f"{field.name} is no setting of a RocketMQ {which}; leave it out")

    @property
    def is_original(self) -> bool:
        """Whether Apache RocketMQ itself is put on trial."""
        return bool(self.release or self.distribution or self.image or self.installed)

    def _require_possible_set(self) -> None:
        if self.learners >= self.brokers:
            raise UsageError(f"learners must be less than brokers ({self.brokers}), got {self.learners}")
        if self.read_uncommitted and self.all_ack:
            raise UsageError(
                "read_uncommitted needs all_ack=false, for readers would see what not all have acknowledged"
            )
        for name in ("min_in_sync_replicas", "in_sync_replicas"):
            if getattr(self, name) > self.lasting_voters:
                raise UsageError(
                    f"{name}={getattr(self, name)} can never be met by "
                    f"{self.lasting_voters} brokers: every send would be refused; lower it or add brokers"
                )

    def _require_possible_group(self) -> None:
        for field in fields(self):
            if field.name in NOT_OF_DLEDGER and getattr(self, field.name) != field.default:
                raise UsageError(f"setting {field.name} is not for deployment=dledger; leave it out")
        if self.brokers not in SIZES_OF_DLEDGER:
            raise UsageError(f"deployment=dledger takes 3 or 5 brokers a group, got brokers={self.brokers}")
        for name in ("preferred", "originals"):
            if (given := getattr(self, name)) > self.brokers:
                raise UsageError(f"{name} takes 0 to {self.brokers} of {self.brokers} brokers, got {given}")

    def _require_no_controllers(self) -> None:
        """What only controllers, or brokers that they elect, give a meaning."""
        for field in fields(self):
            if field.name in OF_CONTROLLER_MODE and getattr(self, field.name) != field.default:
                raise UsageError(
                    f"{field.name} means nothing with deployment={self.deployment}, which has no controllers; leave it "
                    "out"
                )
        if self.has_dledger:
            return
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
    def has_proxies(self) -> bool:
        return bool(self.proxies) or self.client == "grpc"

    @property
    def has_controllers(self) -> bool:
        return self.deployment == "controller"

    @property
    def has_dledger(self) -> bool:
        """Groups elect their masters themselves."""
        return self.deployment == "dledger"

    @property
    def has_slaves(self) -> bool:
        """Slaves of a configured master."""
        return self.deployment in ("async-slaves", "dual-write")

    @property
    def replicas(self) -> int:
        """Of each group."""
        return 1 if self.deployment in ("single", "masters") else self.brokers

    @property
    def lasting_voters(self) -> int:
        """Of each group: those that are no learners, and do not become such."""
        return self.replicas - self.learners - self.becomes_learner

    @property
    def needed_replicas(self) -> int:
        """Without so many a group does not acknowledge anything."""
        if self.has_controllers:
            return max(self.min_in_sync_replicas, 1 if self.all_ack else self.in_sync_replicas)
        if self.has_dledger:
            return self.brokers // 2 + 1
        return 2 if self.deployment == "dual-write" else 1


ON_BROKERS = ("log", "queue", "consumption", "pop", "delayed", "transactional")
"""The workloads that are about messages; all others are about the controllers' key-value store."""

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
    "becomes_learner",
    "snapshot_threshold",
)
OURS_ALONE = (
    "ack_durable",
    "read_uncommitted",
    "delay_delivery",
    "retention_s",
    "snapshot_threshold",
    "static_queues",
    "becomes_learner",
    "sparse_heartbeats",
    "values",
    "request_places",
)
"""What Apache RocketMQ has no setting for, or has to be told in another way."""
NOT_OF_DLEDGER = (
    "flush",
    "retention_s",
    "clean_when_full",
    "static_queues",
    "requests",
)
"""What a group of DLedger gives no meaning, beside what is of controllers. Its logs are flushed every 10 ms, or as
`ack_durable` says, and nothing in them expires."""
SIZES_OF_DLEDGER = (3, 5)
LEAST_WITH_SLAVES = 2
NEWEST_VERSION = 5
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
    lasting: tuple[str, ...]
    """Those of them that may be elected whatever administrators do."""


def topic_of(settings: RocketmqSettings, workload: str) -> str:
    name = f"{TOPIC}-{workload}" if settings.topic_each or settings.values == "bordering" else TOPIC
    if settings.values == "ordinary":
        return name
    # What groups retry from is named after them and the topic.
    return name.ljust(MAX_NAME - (MOST_BEFORE_TOPIC if workload in ("pop", "consumption") else 0), "-")


def topics(settings: RocketmqSettings) -> tuple[str, ...]:
    if settings.values == "bordering":
        return (TOPIC, BORDERS, *(topic_of(settings, workload) for workload in ON_BROKERS))
    return (TOPIC, *(topic_of(settings, workload) for workload in ON_BROKERS)) if settings.topic_each else (TOPIC,)


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
        lasting = brokers[: settings.lasting_voters]
        name = f"broker-{ascii_lowercase[number]}"
        groups.append(BrokerGroup(name=name, brokers=brokers, voters=voters, lasting=lasting))
    return tuple(groups)


def group_of(settings: RocketmqSettings, broker: str) -> BrokerGroup:
    return next(group for group in broker_groups(settings) if broker in group.brokers)


def runs_apaches(settings: RocketmqSettings, node: str) -> bool:
    """Whether this node is one of RocketMQ's own. Beside brokers of ours NameServers are ours: RocketMQ's own do not
    register a broker that they do not know yet and that has one topic alone."""
    if not settings.is_original or not settings.originals:
        return settings.is_original
    return any(node in group.brokers[: settings.originals] for group in broker_groups(settings))


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
