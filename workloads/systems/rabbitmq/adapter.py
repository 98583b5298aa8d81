"""RabbitMQ 3.10 on trial: three nodes of a cluster. What each kind of queue promises is in `queues.py` beside this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from harness.bounds import Bounds
from harness.client import Client
from harness.client_package import require_package
from harness.errors import OperationError, UsageError
from harness.record.fault_log import FaultWindow
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.lock import LockSettings, lock_key
from workloads.log import queue_key
from workloads.systems.rabbitmq.client import RabbitmqClient
from workloads.systems.rabbitmq.connection import ANSWER_TIMEOUT_S, answered, connected, ended, opened_channel
from workloads.systems.rabbitmq.lock import RabbitmqLockClient, make_lock
from workloads.systems.rabbitmq.nodes import NODES, node
from workloads.systems.rabbitmq.queues import (
    KEPT_BY_ONE,
    LOST_BY_POLICY,
    MOST_QUEUES,
    TAKEN_BACK,
    Kind,
    PartitionHandling,
    declare,
)

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

HARMLESS = frozenset({"clock", "strobe", "slow-links", "reordering-links", "duplicating-links", "none"})
"""Kinds of faults by which no mirror takes over."""


@dataclass(frozen=True, kw_only=True)
class RabbitmqSettings:
    kind: Kind = Kind.QUORUM
    """The kind of the queues."""
    partition_handling: PartitionHandling = PartitionHandling.IGNORE
    """`cluster_partition_handling`; quorum queues go by their own majorities."""
    net_tick_s: Annotated[int, Bounds(4, 120)] = 8
    """`net_ticktime`: so long a node may be silent before others take it for gone; RabbitMQ's own is 60."""
    strict: bool = False
    """Judge as if nothing could be lost."""


class Rabbitmq:
    """`System`."""

    name, settings_type, workloads = "rabbitmq", RabbitmqSettings, ("queue", "lock")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: RabbitmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return tuple(
            node(
                name,
                is_mirrored=settings.kind is Kind.MIRRORED,
                partition_handling=settings.partition_handling.value,
                net_tick_s=settings.net_tick_s,
            )
            for name in NODES
        )

    def cluster(self, settings: RabbitmqSettings) -> Declaration:
        nodes = ("nodes",)
        return Declaration(groups=nodes, data=nodes, voters=nodes)

    def require_fitting(self, settings: RabbitmqSettings, workload_settings: Any) -> None:
        """`Particular`: queues are declared before the storm."""
        is_lock = isinstance(workload_settings, LockSettings)
        name = "locks" if is_lock else "queues"
        if (number := getattr(workload_settings, name)) > MOST_QUEUES:
            raise UsageError(f"setting {name} on rabbitmq takes at most {MOST_QUEUES}, got {number}")
        if is_lock and workload_settings.fencing:
            raise UsageError("fencing on rabbitmq takes false: a message that is held back has no token; got true")

    def require_clients(self, settings: RabbitmqSettings, environment: str) -> None:
        require_package("aio-pika", system=self.name)

    def client(self, workload: str, settings: RabbitmqSettings, host: Any, process: int) -> Client:
        name = NODES[process % len(NODES)]
        return RabbitmqLockClient(host, name) if workload == "lock" else RabbitmqClient(host, name)

    async def ready(self, settings: RabbitmqSettings, host: Any, workload: str) -> None:
        """Each queue is there for clients of every node."""
        while not await _is_ready(settings, host, workload):
            await host.clock.sleep(0.5)

    async def roles(self, settings: RabbitmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        return {}

    def legal_loss(
        self, settings: RabbitmqSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        is_harmed = any(set(window.kinds) - HARMLESS for window in struck)
        if settings.strict or not is_harmed:
            return LegalLoss()
        of_locks = {"lock": ("nonlinearizable",)}
        if settings.kind is Kind.QUORUM:
            return LegalLoss(reason=TAKEN_BACK, in_workloads=of_locks)
        reason = LOST_BY_POLICY if settings.kind is Kind.MIRRORED else KEPT_BY_ONE
        return LegalLoss(reason=f"{reason}; {TAKEN_BACK}", in_workloads={"queue": ("lost",), **of_locks})


async def _is_ready(settings: RabbitmqSettings, host: Any, workload: str) -> bool:
    for name in NODES:
        try:
            connection = await connected(host, name)
        except OperationError:
            return False
        try:
            channel = await answered(opened_channel(connection), ANSWER_TIMEOUT_S)
            for number in range(MOST_QUEUES):
                if workload == "lock":
                    await make_lock(connection, lock_key(number), settings.kind)
                else:
                    await answered(declare(channel, queue_key(number), settings.kind), ANSWER_TIMEOUT_S)
        except OperationError:
            return False
        finally:
            await ended(connection)
    return True


SYSTEM = Rabbitmq()
