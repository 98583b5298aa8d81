"""CMQ on trial: queues on Raft groups, of which each node has a part.

It promises that a message which was confirmed is given out until it is acknowledged, and never after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.client import Client
from harness.errors import OperationError
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.cmq import mutants, wire
from system_under_test.node.mutant import find_mutant, mutant_names
from workloads.systems.cmq import nodes
from workloads.systems.cmq.access import GroupsClient, leaders_of
from workloads.systems.cmq.points import POINTS
from workloads.systems.cmq.queue_client import PATIENCE_S, QueueClient
from workloads.systems.cmq.settings import NODES, CmqSettings, leader_role, roles_in
from workloads.systems.cmq.watch import CmqWatch

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

RECOVERS_WITHIN_S, ELECTIONS = 15.0, 10
"""A cluster needs so long to start, and so many election time-outs until all follow a leader of each group."""
STATUS_PATIENCE_S = 1.0
AGAIN_S = 0.1
DAMAGE = ("bit-rot", "short-files", "lost-disk", "old-disk")
"""Faults by which a disk loses what was synced."""
CANNOT_WRITE = ("full-disk", "failing-fsync", "disk-errors")
"""Faults under which a node ends itself rather than go on."""
DEPLOYMENTS: tuple[Mapping[str, SettingValue], ...] = (
    {},
    {"groups": 1},
    {"groups": 2},
    {"groups": 4, "nodes": 5},
    {"groups": 1, "nodes": 5},
)
EXPLORED: Mapping[str, tuple[SettingValue, ...]] = {
    "batch_entries": (1,),
    "file_bytes": (256,),
    "gathered_entries": (1,),
    "log_kept_kib": (0,),
    "snapshot_entries": (20,),
    "spread": (False,),
    "window_entries": (1, 8),
}
"""Settings that storms draw, beside the defaults."""
PACES: Mapping[str, tuple[SettingValue, ...]] = {"election_s": (0.3, 0.5, 1.0)}


class Cmq:
    """`System`."""

    name, settings_type, workloads = "cmq", CmqSettings, ("queue",)
    mutants: Mapping[str, str] = {name: find_mutant(mutants, name).breaks for name in mutant_names(mutants)}

    def nodes(self, settings: CmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return nodes.nodes(settings, mutant)

    def cluster(self, settings: CmqSettings) -> Declaration:
        within_s = RECOVERS_WITHIN_S + ELECTIONS * settings.election_s
        return Declaration(
            groups=(NODES,),
            data=(NODES,),
            voters=(NODES,),
            roles={leader_role(group): NODES for group in range(1, settings.groups + 1)},
            points=POINTS,
            deployments=DEPLOYMENTS,
            explored=EXPLORED,
            paces=PACES,
            recovers_within_s=within_s,
            progresses_within_s=within_s,
            may_panic=(*DAMAGE, *CANNOT_WRITE),
            lasting_damage=DAMAGE,
        )

    def require_fitting(self, settings: CmqSettings, workload_settings: Any) -> None:
        """`Particular`: queues are created before the storm."""
        for workload in self.workloads:
            settings.queue_names(workload)

    def advised(self, settings: CmqSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`."""
        return {"delivery": "exactly-once"} if workload == "queue" else {}

    def client(self, workload: str, settings: CmqSettings, host: Any, process: int) -> Client:
        return QueueClient(host, settings, process)

    async def ready(self, settings: CmqSettings, host: Any, workload: str) -> None:
        """Each queue is there, and each group has a leader."""
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            for queue in settings.queue_names(workload):
                while not await _created(access, queue):
                    await host.clock.sleep(AGAIN_S)
            while len(leaders_of(await _statuses(access, settings))) < settings.groups:
                await host.clock.sleep(AGAIN_S)
        finally:
            access.close()

    async def resumed(self, settings: CmqSettings, host: Any, workload: str) -> None:
        """`Resuming`: every node follows the leader of each group."""
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            while not _all_follow(settings, await _statuses(access, settings)):
                await host.clock.sleep(AGAIN_S)
        finally:
            access.close()

    async def roles(self, settings: CmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        access = GroupsClient(host, settings.names, settings.groups)
        try:
            return roles_in(settings, leaders_of(await _statuses(access, settings)))
        finally:
            access.close()

    def watch(self, settings: CmqSettings) -> CmqWatch:
        return CmqWatch(settings)

    def legal_loss(self, settings: CmqSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        return LegalLoss()


async def _created(access: GroupsClient, queue: str) -> bool:
    try:
        await access.ask(queue, wire.create(queue), bytes, PATIENCE_S)
    except OperationError:
        return False
    return True


async def _statuses(access: GroupsClient, settings: CmqSettings) -> dict[str, list[dict[str, Any]]]:
    """Of the nodes that answer."""
    statuses = {}
    for node in settings.names:
        try:
            statuses[node] = await access.status(node, STATUS_PATIENCE_S)
        except OperationError:
            continue
    return statuses


def _all_follow(settings: CmqSettings, statuses: Mapping[str, list[dict[str, Any]]]) -> bool:
    """Whether every node takes for the leader of each group who leads it."""
    leaders = leaders_of(statuses)
    return (
        len(statuses) == settings.nodes
        and len(leaders) == settings.groups
        and all(group["leader"] == leaders[group["group"]] for groups in statuses.values() for group in groups)
    )


SYSTEM = Cmq()
