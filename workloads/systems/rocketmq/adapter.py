"""RocketMQ, shown to the harness, in each of its deployments (`RocketmqSettings.deployment`).

Nodes: controllers c1…, in a NameServer each or alone; NameServers n1… without a controller; brokers b1… of one group or
several. Workloads: those in `ON_BROKERS` on the brokers, all others on the key-value store that the controllers
replicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.administration import Act
from harness.client import Client
from harness.errors import UsageError
from harness.invariants import Breaches, Invariants
from harness.membership import Start
from harness.record.fault_log import FaultWindow
from harness.record.node_reports import NoReports
from harness.record.steady_spans import SteadySpan
from harness.reporting import Reporting
from harness.system import Declaration, LegalLoss, NodeSpec
from harness.watch import Watch
from system_under_test.node.mutant import find_mutant, mutant_names
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq import mutants
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.controller.protocol import GroupState
from system_under_test.rocketmq.nameserver.route import GroupRoute
from system_under_test.runtime.host import ConnectFailed
from system_under_test.runtime.real import RealHost
from workloads.systems.dledger.adapter import SYSTEM as DLEDGER
from workloads.systems.dledger.invariants import INVARIANTS as OF_GROUPS
from workloads.systems.rocketmq.administration import act, acts, until_masters_serve
from workloads.systems.rocketmq.clients.appended_first import AppendedFirst
from workloads.systems.rocketmq.clients.borders import BorderingClient
from workloads.systems.rocketmq.clients.connect import message_client, request_timeout_s
from workloads.systems.rocketmq.clients.consumption import ConsumptionClient
from workloads.systems.rocketmq.clients.delayed import DelayedClient
from workloads.systems.rocketmq.clients.log import LogClient
from workloads.systems.rocketmq.clients.moving_log import MovingLogClient
from workloads.systems.rocketmq.clients.pop import PopWorkloadClient
from workloads.systems.rocketmq.clients.pop_by_proxy import PopByProxyClient
from workloads.systems.rocketmq.clients.public.pop import PopByPublicClient, until_reached
from workloads.systems.rocketmq.clients.public.process import require_installed
from workloads.systems.rocketmq.clients.queue import QueueClient
from workloads.systems.rocketmq.clients.register import RegisterClient
from workloads.systems.rocketmq.clients.slaves import follows
from workloads.systems.rocketmq.clients.store import REQUESTS, StoreClient
from workloads.systems.rocketmq.clients.transactional import TransactionalClient
from workloads.systems.rocketmq.controller_membership import let_go, let_in
from workloads.systems.rocketmq.dledger_watch import BrokersInvariants, BrokersWatch, brokers_roles
from workloads.systems.rocketmq.invariants import RocketmqInvariants
from workloads.systems.rocketmq.legal_loss import legal_loss
from workloads.systems.rocketmq.meanings import MEANINGS
from workloads.systems.rocketmq.narrator import RocketmqNarrator
from workloads.systems.rocketmq.nodes import node_specs
from workloads.systems.rocketmq.original import original_node, until_topics_are_made
from workloads.systems.rocketmq.original_members import OriginalMembers
from workloads.systems.rocketmq.original_reporting import OriginalReporting
from workloads.systems.rocketmq.points import OF_DLEDGER, POINTS
from workloads.systems.rocketmq.quorum import is_part_for_s, must_serve, serves_within_s
from workloads.systems.rocketmq.roles import dispensable_broker, original_roles
from workloads.systems.rocketmq.search_space import DEPLOYMENTS, OWN_PACE, PACES, SELDOM, explored, explored_together
from workloads.systems.rocketmq.settings import (
    BROKER_PORT,
    CONTROLLER_PORT,
    NAMESERVER_PORT,
    ON_BROKERS,
    TOPIC,
    BrokerGroup,
    RocketmqSettings,
    addresses,
    broker_groups,
    controller_names,
    lone_name_servers,
    name_server_names,
    node_of,
    proxy_names,
    runs_apaches,
)
from workloads.systems.rocketmq.static_readiness import until_led
from workloads.systems.rocketmq.static_settings import require_fitting_moves
from workloads.systems.rocketmq.watch import QUORUM_OF_THREE, RocketmqWatch

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

BY_PROXY = ("pop",)
RECOVERS_S, RECOVERS_SCALED_S = 10.0, 50.0
"""Four times what healthy storms took at most, of which most passes in periods that scale."""
PROGRESSES_S, PROGRESSES_SCALED_S = 10.0, 25.0
"""Time to find out who is dead, to elect, and to take the dead out of the SyncStateSet; the first part is for slow
links."""
ORIGINALS_ELECT_S = 30.0
"""RocketMQ's own brokers give DLedger no times: 6 s until no heartbeat is heard any more, 6 s more where a candidate
hears that the others still have a leader, some rounds of votes, and the start of a virtual machine on a busy one."""
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
    workloads: tuple[str, ...] = ("register", *ON_BROKERS, *sorted(REQUESTS))
    usual_workload: str = "log"

    @property
    def mutants(self) -> Mapping[str, str]:
        return {name: find_mutant(mutants, name).breaks for name in mutant_names(mutants)}

    def mutants_beneath(self, settings: RocketmqSettings) -> Mapping[str, str]:
        """`Layered`."""
        return DLEDGER.mutants if settings.has_dledger else {}

    def nodes(self, settings: RocketmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        if mutant is not None and settings.is_original:
            raise UsageError(
                f"nothing is planted in Apache RocketMQ itself; leave mutant {mutant} out, or what names a release"
            )
        nodes = node_specs(settings, {"mutant": mutant} if mutant else {})
        return tuple(original_node(node, settings) if runs_apaches(settings, node.name) else node for node in nodes)

    def cluster(self, settings: RocketmqSettings) -> Declaration:
        own_s = ORIGINALS_ELECT_S if settings.has_dledger and settings.is_original else 0.0
        return Declaration(
            **_groups_and_roles(settings, self.workloads),
            points=OF_DLEDGER if settings.has_dledger else POINTS,
            acts=acts(settings),
            invariants=OF_GROUPS if settings.has_dledger else MEANINGS,
            recovers_within_s=RECOVERS_S + own_s + (RECOVERS_SCALED_S + is_part_for_s(settings)) * settings.time_scale,
            progresses_within_s=PROGRESSES_S
            + own_s
            + (PROGRESSES_SCALED_S + is_part_for_s(settings)) * settings.time_scale,
            serves_within_s=serves_within_s(settings) + own_s,
            may_panic=MAY_PANIC,
            contagious=CONTAGIOUS,
            lasting_damage=LASTING_DAMAGE,
            spare="dispensable",
            deployments=DEPLOYMENTS,
            explored=explored(settings),
            explored_together=explored_together(settings),
            explored_seldom=SELDOM,
            paces=PACES,
            own_pace=OWN_PACE,
        )

    def require_fitting(self, settings: RocketmqSettings, workload_settings: Any) -> None:
        queues, groups = getattr(workload_settings, "queues", 0), len(broker_groups(settings))
        require_fitting_moves(settings, workload_settings)
        if settings.static_queues:
            return
        if queues > settings.topic_queues * groups:
            raise UsageError(
                f"the workload uses {queues} queues of a topic that has {settings.topic_queues * groups}; "
                f"set queues to at most {settings.topic_queues * groups}, or topic_queues to at least "
                f"{-(-queues // groups)}"
            )
        if settings.client == "grpc" and getattr(workload_settings, "orderly", False):
            raise UsageError(
                "client=grpc with orderly: expected client=remoting, for messages say through proxies only by their "
                "group of consumers whether they come in order, and a master that is new may not know the group yet"
            )

    def shared(self, settings: RocketmqSettings, workloads: tuple[str, ...]) -> RocketmqSettings:
        if settings.client == "grpc" and not set(workloads) & set(BY_PROXY):
            raise UsageError(f"client=grpc means nothing here: of {', '.join(workloads)} none can go through proxies")
        in_store = [workload for workload in workloads if workload not in ON_BROKERS]
        if len(in_store) > 1:
            raise UsageError(
                f"workloads {' and '.join(in_store)} cannot run at once: they use the same keys of the controllers' "
                "store; leave out all but one"
            )
        if settings.static_queues:
            raise UsageError(
                f"static_queues={settings.static_queues} is for the workload log alone, got "
                f"{' and '.join(workloads)}; leave it out, or run log by itself"
            )
        return replace(settings, topic_each=True)

    def require_clients(self, settings: RocketmqSettings, environment: str) -> None:
        """In the simulator clients that speak gRPC are our own: sockets and threads are impossible there."""
        if settings.client == "remoting" or environment == "simulated":
            return
        require_installed()
        if environment == "docker" and settings.release.startswith("5.1."):
            raise UsageError(
                f"client=grpc with release={settings.release} in environment 'docker': its proxies name their own port "
                "to clients, whatever port these came by; leave client=grpc out, or choose 5.2.0 or a later release"
            )
        if len(broker_groups(settings)) > 1:
            raise UsageError(
                f"client=grpc in environment {environment!r} takes one group of brokers, got "
                f"{len(broker_groups(settings))}: the public client does not say which it asks, so nobody knows when "
                "all are empty; leave groups out, choose another deployment, or run in the simulator"
            )

    def client(self, workload: str, settings: RocketmqSettings, host: Any, process: int) -> Client:
        client = self._client(workload, settings, host, process)
        if settings.is_original and settings.has_dledger:
            client = AppendedFirst(client)
        if settings.values == "ordinary" or workload not in ON_BROKERS:
            return client
        return BorderingClient(client, message_client(host, replace(settings, values="ordinary")), host, settings)

    def _client(self, workload: str, settings: RocketmqSettings, host: Any, process: int) -> Client:
        if workload == "log":
            return MovingLogClient(host, settings) if settings.static_queues else LogClient(host, settings)
        if workload == "queue":
            return QueueClient(host, settings)
        if workload == "consumption":
            return ConsumptionClient(host, settings, process)
        if workload == "pop":
            if settings.client == "remoting":
                return PopWorkloadClient(host, settings)
            by_grpc = PopByPublicClient if _is_public(settings, host) else PopByProxyClient
            return by_grpc(host, settings, process)
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
        if settings.has_controllers:
            await _until_elected(settings, host, workload)
        if workload in ON_BROKERS:
            if settings.is_original:
                await until_topics_are_made(settings, host)
            await _until_serving(settings, host)
        if workload in BY_PROXY and _is_public(settings, host):
            await until_reached(host, settings)

    async def resumed(self, settings: RocketmqSettings, host: Any, workload: str) -> None:
        """`Resuming`: NameServers know for a while longer of a master that has given its mastership up."""
        if settings.has_controllers and not settings.is_original and workload in ON_BROKERS:
            await until_masters_serve(settings, host)

    async def serves_without(
        self, settings: RocketmqSettings, host: Any, workload: str, damaged: frozenset[str]
    ) -> bool:
        if not settings.has_controllers:
            if _is_needed(settings, damaged):
                return False
            await _until_serving(settings, host, damaged)
            return True
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
                    break
                await host.clock.sleep(0.1)
        finally:
            controllers.close()
        if serves and settings.static_queues and workload in ON_BROKERS:
            await until_led(settings, host)
        return serves

    def must_serve(self, settings: RocketmqSettings, workload: str, span: SteadySpan, reports: NodeReports) -> bool:
        """`Quorate`."""
        return not _says_too_little(settings) and must_serve(settings, workload, span, reports)

    def act(self, settings: RocketmqSettings, host: Any, name: str) -> Act:
        """`Administered`."""
        return act(settings, host, name)

    async def shrink(self, settings: RocketmqSettings, host: Any, node: str) -> str:
        """`Elastic`."""
        return await let_go(settings, host, node)

    async def grow(self, settings: RocketmqSettings, host: Any, node: NodeSpec, start: Start) -> str:
        """`Elastic`."""
        return await let_in(settings, host, node, start)

    async def roles(self, settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        if settings.has_dledger:
            return await brokers_roles(settings, host)
        if not settings.has_controllers:
            return await _configured_roles(settings, host)
        if settings.is_original:
            return await original_roles(settings, host)
        controllers = ControllerClient(host, addresses(controller_names(settings), CONTROLLER_PORT), 1.5)
        roles: dict[str, tuple[str, ...]] = {}
        try:
            active = node_of(await controllers.find_active())
            roles["active-controller"] = (active,)
            if settings.controllers >= QUORUM_OF_THREE:
                roles["dispensable"] = (active,)
            names = [group.name for group in broker_groups(settings)]
            for _, group in sorted((await controllers.sync_state_data(names)).items()):
                if group.info.master_address:
                    roles["primary"] = (*roles.get("primary", ()), node_of(group.info.master_address))
                    roles["dispensable"] = (*roles.get("dispensable", ()), *dispensable_broker(settings, group))
        except ClientError:
            pass
        finally:
            controllers.close()
        return roles

    def watch(self, settings: RocketmqSettings) -> Watch:
        return BrokersWatch(settings) if settings.has_dledger else RocketmqWatch(settings)

    def reporting(self, settings: RocketmqSettings) -> Reporting | None:
        """`Reported`: nodes of our own report themselves."""
        if not settings.is_original:
            return None
        if settings.has_dledger:
            return OriginalMembers(settings)
        return OriginalReporting(settings) if settings.has_controllers else None

    def invariants(self, settings: RocketmqSettings, breaches: Breaches) -> Invariants:
        return (BrokersInvariants if settings.has_dledger else RocketmqInvariants)(settings, breaches)

    def narrator(self, settings: RocketmqSettings) -> RocketmqNarrator:
        return RocketmqNarrator()

    def legal_loss(
        self, settings: RocketmqSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        return legal_loss(settings, struck, NoReports() if _says_too_little(settings) else reports)


def _says_too_little(settings: RocketmqSettings) -> bool:
    """What a release says of its log is too little to tell what it may have lost; of a group of DLedger nothing that is
    judged depends on it."""
    return not settings.has_dledger and (settings.requests == "public" or settings.is_original)


def _is_public(settings: RocketmqSettings, host: Any) -> bool:
    """Whether clients on this host are RocketMQ's own."""
    return settings.client == "grpc" and isinstance(host, RealHost)


def _groups_and_roles(settings: RocketmqSettings, workloads: tuple[str, ...]) -> dict[str, Any]:
    optional = {"name-servers": lone_name_servers(settings), "proxies": proxy_names(settings)}
    others = [group for group, names in optional.items() if names]
    on_controllers = [workload for workload in workloads if workload not in ON_BROKERS]
    if settings.has_controllers:
        ours = "its requests are those of the controllers that come with Stormproof; leave out what names a release"
        return {
            "groups": ("brokers", "controllers", *others),
            "data": ("brokers",),
            "voters": ("controllers",),
            "shares_machines": settings.machines > 0,
            "elastic": () if settings.is_original or settings.controllers < QUORUM_OF_THREE else ("controllers",),
            "roles": {"primary": "brokers", "active-controller": "controllers"},
            "serving": {workload: ("controllers",) for workload in on_controllers},
            "unserved": {
                **_not_by_proxies(settings, workloads),
                **_not_public(settings, on_controllers),
                **(dict.fromkeys(on_controllers, ours) if settings.is_original else {}),
            },
        }
    why = f"it runs on the controllers' key-value store, and deployment={settings.deployment} has no controllers"
    return {
        "groups": ("brokers", *others),
        "data": ("brokers",),
        "shares_machines": settings.machines > 0,
        "voters": ("brokers",) if settings.has_dledger else (),
        "roles": {"primary": "brokers", **({"preferred": "brokers"} if settings.preferred else {})},
        "unserved": {**_not_by_proxies(settings, workloads), **dict.fromkeys(on_controllers, why)},
    }


def _not_public(settings: RocketmqSettings, in_store: list[str]) -> dict[str, str]:
    """Workloads that need requests which only the RocketMQ that comes with Stormproof knows, with the reason."""
    if settings.requests != "public":
        return {}
    why = "it is about the controllers' key-value store, which no public request reaches; leave requests out"
    return dict.fromkeys(in_store, why)


def _not_by_proxies(settings: RocketmqSettings, workloads: tuple[str, ...]) -> dict[str, str]:
    """Workloads that ask for what proxies do not do, as sending to a queue by its number, with the reason. Beside
    others that do not, they go to the brokers themselves."""
    if settings.client != "grpc" or settings.topic_each:
        return {}
    why = "client=grpc goes through proxies, which do not let clients choose queues; leave client out"
    return {workload: why for workload in workloads if workload not in BY_PROXY}


async def _until_elected(settings: RocketmqSettings, host: Any, workload: str) -> None:
    """Every group has a master, and all of it that stay voters are in sync; or the controllers serve, where it is about
    them alone."""
    controllers = ControllerClient(host, addresses(controller_names(settings), CONTROLLER_PORT), 1.0)
    expected = {group.name: len(group.lasting) for group in broker_groups(settings)}
    try:
        while True:
            try:
                if workload not in ON_BROKERS:
                    await controllers.find_active()
                    return
                known = await controllers.sync_state_data(expected)
                if all(name in known and _is_whole(known[name], voters) for name, voters in expected.items()):
                    return
            except ClientError:
                pass
            await host.clock.sleep(0.1)
    finally:
        controllers.close()


async def _until_serving(settings: RocketmqSettings, host: Any, without: frozenset[str] = frozenset()) -> None:
    if settings.static_queues:
        await until_led(settings, host)
    await _until_routed(settings, host, without)


async def _until_routed(settings: RocketmqSettings, host: Any, without: frozenset[str] = frozenset()) -> None:
    """Every NameServer that takes connections leads clients to every group, for brokers register with one that started
    again only after a while; and configured slaves follow their masters, or are parted from them for good. Nothing is
    asked of brokers that are left out."""
    limit_s = request_timeout_s(settings)
    for address in addresses(name_server_names(settings), NAMESERVER_PORT):
        client = MessageClient(host, [address], limit_s)
        try:
            while not await _is_routed(settings, client, without) and await _is_reached(host, address, limit_s):
                client.forget_routes()
                await host.clock.sleep(0.1)
        finally:
            client.close()
    client = message_client(host, settings)
    try:
        while not await _is_routed(settings, client, without):
            client.forget_routes()
            await host.clock.sleep(0.1)
    finally:
        client.close()


async def _is_reached(host: Any, address: str, limit_s: float) -> bool:
    try:
        connection = await host.network.connect(address, limit_s)
    except ConnectFailed:
        return False
    connection.close()
    return True


async def _is_routed(settings: RocketmqSettings, client: MessageClient, without: frozenset[str]) -> bool:
    try:
        found = await client.route(TOPIC)
        route = {group.broker_name: group for group in found.groups}
        if not all(group.name in route and route[group.name].master for group in broker_groups(settings)):
            return False
        if len(route) != len(broker_groups(settings)) or len(found.leaders()) != settings.static_queues:
            return False
        return not settings.has_slaves or await _slaves_follow(settings, client, route, without)
    except ClientError:
        return False


def _is_needed(settings: RocketmqSettings, damaged: frozenset[str]) -> bool:
    """Whether a configured master is among the damaged, whose place nobody takes, or too few others are not."""
    groups = broker_groups(settings)
    left = [set(group.brokers) - damaged for group in groups]
    masters = set() if settings.has_dledger else {group.brokers[0] for group in groups}
    return not masters.isdisjoint(damaged) or any(len(brokers) < settings.needed_replicas for brokers in left)


async def _slaves_follow(
    settings: RocketmqSettings, client: MessageClient, route: Mapping[str, GroupRoute], without: frozenset[str]
) -> bool:
    """Raises ClientError."""
    for group in broker_groups(settings):
        slaves = addresses([broker for broker in group.brokers[1:] if broker not in without], BROKER_PORT)
        if not set(slaves) <= set(route[group.name].brokers.values()):
            return False
        master = route[group.name].master
        assert master is not None
        for slave in slaves:
            if not await follows(client, slave, master, len(slaves)):
                return False
    return True


async def _configured_roles(settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
    """The masters that NameServers know of, and slaves that are not needed while the others are there."""
    client = message_client(host, settings, 1.5)
    try:
        route = await client.route(TOPIC)
    except ClientError:
        return {}
    finally:
        client.close()
    primaries = tuple(node_of(group.master) for group in route.groups if group.master)
    roles = {"primary": primaries} if primaries else {}
    spare = tuple(
        node_of(group.brokers[max(group.brokers)])
        for group in route.groups
        if group.master and len(group.brokers) > settings.needed_replicas
    )
    return {**roles, "dispensable": spare} if spare else roles


def _is_whole(group: GroupState, voters: int) -> bool:
    """Whether it has a master, and all who may become master are in the SyncStateSet and count as living: one that is
    taken for dead is not elected."""
    alive = [replica for replica in group.in_sync if replica.is_alive]
    return group.info.master_id is not None and len(alive) == len(group.in_sync) >= voters


async def _serves_without(
    controllers: ControllerClient, settings: RocketmqSettings, workload: str, damaged: frozenset[str]
) -> bool | None:
    """None where that is not known yet. Raises ClientError."""
    if node_of(await controllers.find_active()) in damaged:
        return False
    if workload not in ON_BROKERS:
        return True
    found = await controllers.sync_state_data([group.name for group in broker_groups(settings)])
    answers = [
        _group_serves_without(settings, group, found.get(group.name), damaged) for group in broker_groups(settings)
    ]
    if False in answers:
        return False
    return None if None in answers else True


def _group_serves_without(
    settings: RocketmqSettings, group: BrokerGroup, state: GroupState | None, damaged: frozenset[str]
) -> bool | None:
    whole = set(group.lasting) - damaged
    if len(whole) < settings.needed_replicas:
        return False
    if state is None:
        return None
    members = {node_of(replica.address) for replica in state.in_sync}
    if members <= damaged:
        return False  # a broker that held all that was acknowledged may hold it no more
    if not state.info.master_address or not whole <= members:
        return None
    return node_of(state.info.master_address) not in damaged


SYSTEM = Rocketmq()
