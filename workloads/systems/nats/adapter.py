"""NATS JetStream 2.9 on trial. What it may lose, in its vendor's words, is below.

JetStream (https://docs.nats.io/nats-concepts/jetstream) acknowledges a message once most replicas of its stream have
it, and calls that immediate consistency. Files are flushed by `sync_interval`, every two minutes unless it is set
(https://docs.nats.io/running-a-nats-service/configuration): until then an operating system that goes down takes what
was acknowledged with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from harness.bounds import Bounds
from harness.client import Client
from harness.client_package import require_package
from harness.errors import OperationError, UsageError
from harness.record.fault_log import FaultWindow
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.log import LogSettings, queue_key
from workloads.systems.nats.client import NatsClient, make_stream, stream_of
from workloads.systems.nats.jetstream import Jetstream, connected
from workloads.systems.nats.log import NatsLogClient, make_log_stream
from workloads.systems.nats.nodes import SERVERS, server

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

MOST_QUEUES = 4
UNFLUSHED = (
    "messages are acknowledged before they are flushed, which happens every two minutes (the vendor's page on the "
    "configuration of JetStream)"
)
TAKES_UNFLUSHED = frozenset({"power"})
OF_LOGS = (
    *("lost-write", "unseen", "dirty-read"),
    *("inconsistent-offsets", "nonmonotonic-poll", "nonmonotonic-send", "poll-skip"),
)
"""What is lost with the end of a stream, which then grows again from an earlier place. That replicas differ, that a
message is there twice, or that one poll passes something over, does not follow from that."""


@dataclass(frozen=True, kw_only=True)
class NatsSettings:
    servers: Annotated[int, Bounds(3, 5)] = 3
    replicas: Annotated[int, Bounds(1, 5)] = 3
    """How many replicas each stream has."""
    strict: bool = False
    """Judge as if nothing could be lost."""

    def __post_init__(self) -> None:
        if self.replicas > self.servers:
            raise UsageError(f"replicas takes at most the number of servers ({self.servers}), got {self.replicas}")

    @property
    def names(self) -> tuple[str, ...]:
        return SERVERS[: self.servers]


class Nats:
    """`System`."""

    name, settings_type, workloads = "nats", NatsSettings, ("queue", "log")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: NatsSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return tuple(server(name, settings.names) for name in settings.names)

    def cluster(self, settings: NatsSettings) -> Declaration:
        servers = ("servers",)
        roles = {"leader": "servers"}
        return Declaration(groups=servers, data=servers, voters=servers, roles=roles)

    def require_fitting(self, settings: NatsSettings, workload_settings: Any) -> None:
        """`Particular`: streams are made before the storm."""
        if workload_settings.queues > MOST_QUEUES:
            raise UsageError(f"setting queues on nats takes at most {MOST_QUEUES}, got {workload_settings.queues}")
        if not isinstance(workload_settings, LogSettings):
            return
        for name in ("batch_share", "tags", "move_share"):
            if given := getattr(workload_settings, name):
                raise UsageError(
                    f"setting {name} of log takes 0 on nats, whose streams have no such thing; got {given}"
                )
        if settings.replicas != settings.servers:
            raise UsageError(
                f"log on nats reads the stream at every server in the end, so that replicas takes as many as there are "
                f"servers ({settings.servers}), got {settings.replicas}; add --set replicas={settings.servers}"
            )

    def require_clients(self, settings: NatsSettings, environment: str) -> None:
        require_package("nats-py", system=self.name)

    def client(self, workload: str, settings: NatsSettings, host: Any, process: int) -> Client:
        name = settings.names[process % settings.servers]
        return NatsLogClient(host, name) if workload == "log" else NatsClient(host, name)

    async def ready(self, settings: NatsSettings, host: Any, workload: str) -> None:
        """Each stream is there, and all its replicas are current."""
        make = make_log_stream if workload == "log" else make_stream
        while not await _is_ready(settings, host, make):
            await host.clock.sleep(0.3)

    async def roles(self, settings: NatsSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        """The leader of the first stream."""
        for name in settings.names:
            try:
                jetstream = await connected(host, name)
            except OperationError:
                continue
            try:
                leader = await _leader(jetstream)
                return {"leader": (leader,)} if leader else {}
            except OperationError:
                continue
            finally:
                await jetstream.close()
        return {}

    def legal_loss(self, settings: NatsSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        if settings.strict or not any(TAKES_UNFLUSHED & set(window.kinds) for window in struck):
            return LegalLoss()
        return LegalLoss(reason=UNFLUSHED, in_workloads={"queue": ("lost",), "log": OF_LOGS})


async def _leader(jetstream: Jetstream) -> str | None:
    cluster = (await jetstream.ask(f"STREAM.INFO.{stream_of(queue_key(0))}")).get("cluster", {})
    leader: str | None = cluster.get("leader")
    return leader


Making = Callable[[Jetstream, str, int], Awaitable[None]]
"""Makes the stream of a queue, with so many replicas."""


async def _is_ready(settings: NatsSettings, host: Any, make: Making) -> bool:
    for name in settings.names:
        try:
            jetstream = await connected(host, name)
        except OperationError:
            return False
        try:
            for queue in range(MOST_QUEUES):
                if name == settings.names[0]:
                    await make(jetstream, queue_key(queue), settings.replicas)
                known = (await jetstream.ask(f"STREAM.INFO.{stream_of(queue_key(queue))}"))["cluster"]
                replicas = known.get("replicas") or ()
                if not known.get("leader") or len(replicas) + 1 != settings.replicas:
                    return False
                if not all(one["current"] and not one.get("offline") for one in replicas):
                    return False
        except OperationError:
            return False
        finally:
            await jetstream.close()
    return True


SYSTEM = Nats()
