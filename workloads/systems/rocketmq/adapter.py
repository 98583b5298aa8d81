"""RocketMQ in controller mode, shown to the harness.

Nodes: `controllers` NameServers c1… with an embedded controller each, `brokers` brokers b1… of one group.
Workloads: those in `ON_BROKERS` on the brokers, all others on the key-value store that the controllers replicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.client import Client
from harness.errors import UsageError
from harness.invariants import Breaches
from harness.record.fault_log import FaultWindow
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.controller.protocol import GroupState
from system_under_test.rocketmq.mutants import mutant as find_mutant
from system_under_test.rocketmq.mutants import mutant_names
from workloads.systems.rocketmq.clients.connect import message_client
from workloads.systems.rocketmq.clients.delayed import DelayedClient
from workloads.systems.rocketmq.clients.log import LogClient
from workloads.systems.rocketmq.clients.queue import QueueClient
from workloads.systems.rocketmq.clients.register import RegisterClient
from workloads.systems.rocketmq.clients.store import REQUESTS, StoreClient
from workloads.systems.rocketmq.clients.transactional import TransactionalClient
from workloads.systems.rocketmq.invariants import RocketmqInvariants
from workloads.systems.rocketmq.legal_loss import legal_loss
from workloads.systems.rocketmq.narrator import RocketmqNarrator
from workloads.systems.rocketmq.nodes import node_specs
from workloads.systems.rocketmq.points import POINTS
from workloads.systems.rocketmq.settings import (
    BROKER_GROUP,
    CONTROLLER_PORT,
    EXPLORED,
    PACES,
    TOPIC,
    RocketmqSettings,
    addresses,
    broker_names,
    controller_names,
    node_of,
)
from workloads.systems.rocketmq.watch import QUORUM_OF_THREE, RocketmqWatch

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

ON_BROKERS = ("log", "queue", "delayed", "transactional")
RECOVERS_S, RECOVERS_SCALED_S = 10.0, 50.0
"""Four times what healthy storms took at most, of which most passes in periods that scale."""
PROGRESSES_S, PROGRESSES_SCALED_S = 10.0, 25.0
"""To find out who is dead, to elect, and to take the dead out of the SyncStateSet; the first part is for slow links."""
LASTING_DAMAGE = ("bit-rot", "short-files", "lost-disk")
"""A broker whose disk was lost comes back as another replica: where the whole SyncStateSet was, nobody may lead."""
MAY_PANIC = ("full-disk", "failing-fsync", "disk-errors", "old-disk", "bit-rot", "short-files")
"""A broker that cannot write, or reads what it did not write, ends itself rather than go on."""
CONTAGIOUS = ("bit-rot",)
"""A slave finds rotten bytes that its master sent it only when it starts again, or becomes master."""


@dataclass(frozen=True)
class Rocketmq:
    name: str = "rocketmq"
    settings_type: type = RocketmqSettings
    workloads: tuple[str, ...] = ("log", "register", "queue", "delayed", "transactional", *sorted(REQUESTS))

    @property
    def mutants(self) -> Mapping[str, str]:
        return {name: find_mutant(name).breaks for name in mutant_names()}

    def nodes(self, settings: RocketmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        if mutant is not None:
            find_mutant(mutant)
        return node_specs(settings, {"mutant": mutant} if mutant else {})

    def cluster(self, settings: RocketmqSettings) -> Declaration:
        return Declaration(
            groups=("brokers", "controllers"),
            data=("brokers",),
            voters=("controllers",),
            roles={"primary": "brokers", "active-controller": "controllers"},
            serving={workload: ("controllers",) for workload in self.workloads if workload not in ON_BROKERS},
            points=POINTS,
            recovers_within_s=RECOVERS_S + RECOVERS_SCALED_S * settings.time_scale,
            progresses_within_s=PROGRESSES_S + PROGRESSES_SCALED_S * settings.time_scale,
            may_panic=MAY_PANIC,
            contagious=CONTAGIOUS,
            lasting_damage=LASTING_DAMAGE,
            spare="dispensable",
            explored=EXPLORED,
            paces=PACES,
        )

    def require_fitting(self, settings: RocketmqSettings, workload_settings: Any) -> None:
        queues = getattr(workload_settings, "queues", 0)
        if queues > settings.topic_queues:
            raise UsageError(
                f"the workload uses {queues} queues of a topic that has {settings.topic_queues}; "
                f"set queues to at most {settings.topic_queues}, or topic_queues to at least {queues}"
            )

    def client(self, workload: str, settings: RocketmqSettings, host: Any, process: int) -> Client:
        if workload == "log":
            return LogClient(host, settings)
        if workload == "queue":
            return QueueClient(host, settings)
        if workload == "delayed":
            return DelayedClient(host, settings)
        if workload == "transactional":
            return TransactionalClient(host, settings)
        if workload == "register":
            return RegisterClient(host, settings, process)
        if workload in REQUESTS:
            return StoreClient(host, settings, process, REQUESTS[workload])
        raise UsageError(f"rocketmq has no client for workload {workload!r}; it has {', '.join(self.workloads)}")

    async def ready(self, settings: RocketmqSettings, host: Any, workload: str) -> None:
        controllers = ControllerClient(host, addresses(controller_names(settings), CONTROLLER_PORT), 1.0)
        try:
            while True:
                try:
                    if workload not in ON_BROKERS:
                        await controllers.find_active()
                        return
                    group = (await controllers.sync_state_data([BROKER_GROUP])).get(BROKER_GROUP)
                    if group is not None and _is_whole(group, settings.brokers - settings.learners):
                        break
                except ClientError:
                    pass
                await host.clock.sleep(0.1)
        finally:
            controllers.close()
        client = message_client(host, settings)
        try:
            while True:
                try:
                    if any(group.master for group in (await client.route(TOPIC)).groups):
                        return
                except ClientError:
                    pass
                await host.clock.sleep(0.1)
        finally:
            client.close()

    async def serves_without(
        self, settings: RocketmqSettings, host: Any, workload: str, damaged: frozenset[str]
    ) -> bool:
        if len(damaged.intersection(controller_names(settings))) > (settings.controllers - 1) // 2:
            return False
        controllers = ControllerClient(host, addresses(controller_names(settings), CONTROLLER_PORT), 1.0)
        try:
            while True:
                try:
                    serves = await _serves_without(controllers, settings, workload, damaged)
                except ClientError:
                    serves = None
                if serves is not None:
                    return serves
                await host.clock.sleep(0.1)
        finally:
            controllers.close()

    async def roles(self, settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        controllers = ControllerClient(host, addresses(controller_names(settings), CONTROLLER_PORT), 1.5)
        roles: dict[str, tuple[str, ...]] = {}
        try:
            active = node_of(await controllers.find_active())
            roles["active-controller"] = (active,)
            if settings.controllers >= QUORUM_OF_THREE:
                roles["dispensable"] = (active,)
            group = (await controllers.sync_state_data([BROKER_GROUP])).get(BROKER_GROUP)
            if group is not None and group.info.master_address:
                roles["primary"] = (node_of(group.info.master_address),)
                roles["dispensable"] = (*roles.get("dispensable", ()), *_dispensable_broker(settings, group))
        except ClientError:
            pass
        finally:
            controllers.close()
        return roles

    def watch(self, settings: RocketmqSettings) -> RocketmqWatch:
        return RocketmqWatch(settings)

    def invariants(self, settings: RocketmqSettings, breaches: Breaches) -> RocketmqInvariants:
        return RocketmqInvariants(settings, breaches)

    def narrator(self, settings: RocketmqSettings) -> RocketmqNarrator:
        return RocketmqNarrator()

    def legal_loss(
        self, settings: RocketmqSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        return legal_loss(settings, struck, reports)


def _is_whole(group: GroupState, voters: int) -> bool:
    """Whether it has a master, and all who may become master are in the SyncStateSet and count as living: one that is
    taken for dead is not elected."""
    alive = [replica for replica in group.in_sync if replica.is_alive]
    return group.info.master_id is not None and len(alive) == len(group.in_sync) == voters


async def _serves_without(
    controllers: ControllerClient, settings: RocketmqSettings, workload: str, damaged: frozenset[str]
) -> bool | None:
    """None where that is not known yet. Raises ClientError."""
    if node_of(await controllers.find_active()) in damaged:
        return False
    if workload not in ON_BROKERS:
        return True
    whole = set(broker_names(settings)[: settings.brokers - settings.learners]) - damaged
    if len(whole) < max(settings.min_in_sync_replicas, 1 if settings.all_ack else settings.in_sync_replicas):
        return False
    group = (await controllers.sync_state_data([BROKER_GROUP])).get(BROKER_GROUP)
    if group is None:
        return None
    members = {node_of(replica.address) for replica in group.in_sync}
    if members <= damaged:
        return False  # whoever holds all that was acknowledged may hold it no more
    if not group.info.master_address or not whole <= members:
        return None
    return node_of(group.info.master_address) not in damaged


def _dispensable_broker(settings: RocketmqSettings, group: GroupState) -> tuple[str, ...]:
    """A broker without which the group must go on: the master, where another member of the SyncStateSet lives."""
    needed = max(settings.min_in_sync_replicas, 1 if settings.all_ack else settings.in_sync_replicas)
    if settings.brokers - settings.learners - 1 < needed:
        return ()
    heirs = [replica for replica in group.in_sync if replica.is_alive and replica.broker_id != group.info.master_id]
    if heirs and group.info.master_address:
        return (node_of(group.info.master_address),)
    return tuple(node_of(replica.address) for replica in group.not_in_sync[:1])


SYSTEM = Rocketmq()
