"""CMQ on trial: queues on Raft groups, of which each node has a part.

It promises that a message which was confirmed is given out until it is acknowledged, and never after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from checkers.elements.order import Order
from harness.client import Client
from harness.errors import OperationError, UsageError
from harness.invariants import Breaches
from harness.membership import Start
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.record.steady_spans import SteadySpan
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.cmq import mutants, wire
from system_under_test.node.mutant import find_mutant, mutant_names
from workloads.pop import PopSettings
from workloads.queue import QueueSettings
from workloads.systems.cmq import nodes
from workloads.systems.cmq.access import GroupsClient, all_follow, leaders_of
from workloads.systems.cmq.invariants import INVARIANTS, CmqInvariants
from workloads.systems.cmq.legal_loss import DAMAGE, legal_loss
from workloads.systems.cmq.membership import let_go, let_in
from workloads.systems.cmq.narrator import CmqNarrator
from workloads.systems.cmq.points import POINTS
from workloads.systems.cmq.pop_client import PopClient
from workloads.systems.cmq.queue_client import QueueClient
from workloads.systems.cmq.quorum import elects, serves_within_s
from workloads.systems.cmq.settings import NODES, PATIENCE_S, CmqSettings, leader_role, roles_in
from workloads.systems.cmq.watch import CmqWatch

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

RECOVERS_WITHIN_S, ELECTIONS = 15.0, 5
"""A cluster needs so long to start, and so many of the longest election time-outs until each group has a leader whom
all follow."""
AGAIN_S = 0.1
CANNOT_WRITE = ("full-disk", "failing-fsync", "disk-errors")
"""Faults under which a node ends itself rather than go on."""
DEPLOYMENTS: tuple[Mapping[str, SettingValue], ...] = (
    {},
    {"groups": 1},
    {"groups": 2},
    {"groups": 4, "nodes": 5},
    {"groups": 1, "nodes": 5},
    {"file_bytes": 256, "log_kept_kib": 0, "segment_kib": 1, "snapshot_entries": 20},
)
"""Files of all kinds are small in the last of them, and come and go all the time."""
EXPLORED: Mapping[str, tuple[SettingValue, ...]] = {
    "batch_entries": (1,),
    "file_bytes": (256,),
    "gathered_entries": (1,),
    "invisible_ms": (200,),
    "log_kept_kib": (0,),
    "promotion_lag": (10_000,),
    "reads_by_lease": (True,),
    "segment_kib": (1,),
    "snapshot_entries": (20,),
    "spread": (False,),
    "window_entries": (1, 8),
}
"""Settings that storms draw, beside the defaults."""
PACES: Mapping[str, tuple[SettingValue, ...]] = {
    "election_s": (0.3, 0.5, 1.0),
    "election_spread": (2.0, 4.0),
    "patience_s": (0.3, 0.5),
}
"""The wider elections are spread, the longer a deposed leader takes itself for one. Clients that wait as long for it
see nothing of that: each of them has asked it for something before another one leads."""


class Cmq:
    """`System`."""

    name, settings_type, workloads = "cmq", CmqSettings, ("queue", "pop")
    mutants: Mapping[str, str] = {name: find_mutant(mutants, name).breaks for name in mutant_names(mutants)}

    def nodes(self, settings: CmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return nodes.nodes(settings, mutant)

    def cluster(self, settings: CmqSettings) -> Declaration:
        within_s = RECOVERS_WITHIN_S + ELECTIONS * settings.longest_election_s
        return Declaration(
            groups=(NODES,),
            data=(NODES,),
            voters=(NODES,),
            elastic=(NODES,),
            elastic_at_once=settings.nodes // 2,
            roles={leader_role(group): NODES for group in range(1, settings.groups + 1)},
            points=POINTS,
            invariants=INVARIANTS,
            deployments=DEPLOYMENTS,
            explored=EXPLORED,
            paces=PACES,
            recovers_within_s=within_s,
            progresses_within_s=within_s,
            serves_within_s=serves_within_s(settings),
            may_panic=(*DAMAGE, *CANNOT_WRITE),
            lasting_damage=DAMAGE,
        )

    def require_fitting(self, settings: CmqSettings, workload_settings: Any) -> None:
        """`Particular`: queues are created before the storm, keep no order, and nobody's invisible time is changed."""
        for workload in self.workloads:
            settings.queue_names(workload)
        if isinstance(workload_settings, QueueSettings) and workload_settings.order is not Order.NONE:
            order = workload_settings.order.value
            raise UsageError(f"setting order of queue takes none on cmq, whose messages come again later, got {order}")
        if isinstance(workload_settings, PopSettings):
            if workload_settings.changed_share > 0:
                share = workload_settings.changed_share
                raise UsageError(
                    f"setting changed_share of pop takes 0 on cmq, where no invisible time is changed, got {share:g}"
                )
            if workload_settings.orderly:
                raise UsageError("setting orderly of pop takes false on cmq, whose messages come again later, got true")

    def advised(self, settings: CmqSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`: a message that is acknowledged comes no more, and a dequeue is ok only if it acknowledged one."""
        return {"delivery": "exactly-once"} if workload == "queue" else {"changed_share": 0.0}

    def client(self, workload: str, settings: CmqSettings, host: Any, process: int) -> Client:
        return (QueueClient if workload == "queue" else PopClient)(host, settings, process)

    async def ready(self, settings: CmqSettings, host: Any, workload: str) -> None:
        """Each queue is there, and each group has a leader."""
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            for queue in settings.queue_names(workload):
                while not await _created(access, queue):
                    await host.clock.sleep(AGAIN_S)
            while len(leaders_of(await access.statuses(settings.names))) < settings.groups:
                await host.clock.sleep(AGAIN_S)
        finally:
            access.close()

    async def resumed(self, settings: CmqSettings, host: Any, workload: str) -> None:
        """`Resuming`: every node that answers follows the leader of each group. One whose disk is harmed need not."""
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            while not all_follow(statuses := await access.statuses(settings.names), tuple(statuses), settings.groups):
                await host.clock.sleep(AGAIN_S)
        finally:
            access.close()

    async def serves_without(self, settings: CmqSettings, host: Any, workload: str, damaged: frozenset[str]) -> bool:
        """`Separable`: the others are enough where they are a majority, and lead each group."""
        others = tuple(name for name in settings.names if name not in damaged)
        if 2 * len(others) <= settings.nodes:
            return False
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            while True:
                statuses = await access.statuses(settings.names)
                if not damaged.isdisjoint(leaders_of(statuses).values()):
                    return False
                if all_follow(statuses, others, settings.groups):
                    return True
                await host.clock.sleep(AGAIN_S)
        finally:
            access.close()

    def must_serve(self, settings: CmqSettings, workload: str, span: SteadySpan, reports: NodeReports) -> bool:
        """`Quorate`: any majority of nodes, whatever they reported."""
        return elects(settings.names, span)

    async def roles(self, settings: CmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            return roles_in(settings, leaders_of(await access.statuses(settings.names)))
        finally:
            access.close()

    async def shrink(self, settings: CmqSettings, host: Any, node: str) -> str:
        """`Elastic`."""
        return await let_go(settings, host, node)

    async def grow(self, settings: CmqSettings, host: Any, node: NodeSpec, start: Start) -> str:
        """`Elastic`."""
        return await let_in(settings, host, node, start)

    def shared(self, settings: CmqSettings, workloads: tuple[str, ...]) -> CmqSettings:
        """`Shared`: queues are named by their workload."""
        return settings

    def invariants(self, settings: CmqSettings, breaches: Breaches) -> CmqInvariants:
        return CmqInvariants(settings.groups, settings.names, settings.invisible_ms, breaches)

    def watch(self, settings: CmqSettings) -> CmqWatch:
        return CmqWatch(settings)

    def narrator(self, settings: CmqSettings) -> CmqNarrator:
        return CmqNarrator()

    def legal_loss(self, settings: CmqSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        return LegalLoss() if settings.strict else legal_loss(settings, struck, reports)


async def _created(access: GroupsClient, queue: str) -> bool:
    try:
        await access.ask(queue, wire.create(queue), bytes, PATIENCE_S)
    except OperationError:
        return False
    return True


SYSTEM = Cmq()
