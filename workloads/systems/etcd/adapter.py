"""etcd 3.4 on trial: three members, which promise that every key is linearizable.

The vendor's page on the guarantees of its API (https://etcd.io/docs/v3.4/learning/api_guarantees/) says that operations
on keys are strictly serializable, whatever happens to fewer than half of the members, but for reads that are
asked for as serializable: these may show what was true before. Its notes on locks and leases
(https://etcd.io/docs/v3.4/learning/why/) say that a lease cannot keep two processes apart by itself, and that what is
done under a lock must be checked against the lock's version where it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from harness.bounds import Bounds
from harness.client import Client
from harness.client_package import require_package
from harness.errors import OperationError, UsageError
from harness.membership import SHRINK, WIPE, Start
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.systems.etcd.client import EtcdClient
from workloads.systems.etcd.gateway import ANSWER_TIMEOUT_S, Gateway
from workloads.systems.etcd.lock import LockClient
from workloads.systems.etcd.membership import add, let_go, until_it_follows
from workloads.systems.etcd.nodes import CLIENT_PORT, MEMBERS, member
from workloads.systems.etcd.watch import WatchLogClient

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

STALE = "reads that are asked for as serializable may show the past (the vendor's page on the guarantees of its API)"
LEASED = (
    "a lease may end while the holder of its lock does not know, so that only tokens keep others out (the vendor's "
    "notes on locks and leases); --set fencing=true judges by them"
)

HELD_FOR = 2
"""Times the life of a lease: so long locks are held on average."""
ADMINISTRATOR_TIMEOUT_S = 2.0
"""How long the administrator waits for each answer about members."""


@dataclass(frozen=True, kw_only=True)
class EtcdSettings:
    serializable_reads: bool = False
    """Members answer reads from what they have, without asking the others."""
    heartbeat_ms: Annotated[int, Bounds(10, 10_000)] = 100
    election_ms: Annotated[int, Bounds(50, 50_000)] = 1000
    lease_s: Annotated[int, Bounds(1, 60)] = 2
    """Locks last so long without being kept alive; etcd makes it no shorter than one and a half elections."""
    fencing: bool = False
    """Locks are released by their tokens. The workload `lock` has this setting as well."""
    strict: bool = False
    """Judge as if no read might show the past, and no lock be lost."""

    def __post_init__(self) -> None:
        if self.election_ms < 5 * self.heartbeat_ms:
            raise UsageError(
                f"election_ms takes at least 5 times heartbeat_ms ({self.heartbeat_ms}), got {self.election_ms}"
            )


class Etcd:
    """`System`."""

    name, settings_type, workloads = "etcd", EtcdSettings, ("register", "set", "list-append", "log", "lock")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: EtcdSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return tuple(_member(name, settings) for name in MEMBERS)

    def cluster(self, settings: EtcdSettings) -> Declaration:
        members = ("members",)
        return Declaration(
            groups=members,
            data=members,
            voters=members,
            elastic=members,
            roles={"leader": "members"},
            # Who is told that it belongs to the others no more ends itself, and who cannot reach them when it joins.
            may_panic=(SHRINK, WIPE),
        )

    def advised(self, settings: EtcdSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`: every read of a set shows all that was there before; locks are held for longer than their leases
        last by themselves."""
        if workload == "lock":
            return {"hold_s": float(HELD_FOR * settings.lease_s)}
        return {"reads": "current"} if workload == "set" else {}

    def require_clients(self, settings: EtcdSettings, environment: str) -> None:
        require_package("aiohttp", system=self.name)

    def client(self, workload: str, settings: EtcdSettings, host: Any, process: int) -> Client:
        name = MEMBERS[process % len(MEMBERS)]
        if workload == "log":
            return WatchLogClient(name, partial(_gateway, host), f"consumers-{host.name}")
        gateway = _gateway(host, name)
        if workload == "lock":
            keeper = _gateway(host, name)
            return LockClient(gateway, keeper, lease_s=settings.lease_s, fencing=settings.fencing)
        return EtcdClient(gateway, serializable_reads=settings.serializable_reads)

    async def ready(self, settings: EtcdSettings, host: Any, workload: str) -> None:
        """All members follow one leader, and answer."""
        while True:
            known = [await _status(host, name) for name in MEMBERS]
            leaders = {status.get("leader") for status in known}
            if leaders != {None} and len(leaders) == 1 and None not in leaders:
                return
            await host.clock.sleep(0.2)

    async def roles(self, settings: EtcdSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        """Of members that are cut off from each other the one with the newest term is believed."""
        known = {name: await _status(host, name) for name in MEMBERS}
        term = max((int(status["raftTerm"]) for status in known.values() if "leader" in status), default=0)
        leading = (
            name
            for name, status in known.items()
            if int(status.get("raftTerm", -1)) == term and status.get("leader") == status["header"]["member_id"]
        )
        return {"leader": tuple(leading)}

    async def shrink(self, settings: EtcdSettings, host: Any, node: str) -> str:
        """`Elastic`."""
        return await let_go(_others(host, node), node)

    async def grow(self, settings: EtcdSettings, host: Any, node: NodeSpec, start: Start) -> str:
        """`Elastic`."""
        added = await add(_others(host, node.name), node.name)
        await start(_member(node.name, settings, joins=True).program)
        return await until_it_follows(_gateway(host, node.name), _others(host, node.name), added, host.clock.sleep)

    def legal_loss(self, settings: EtcdSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        reasons: list[str] = []
        in_workloads: dict[str, tuple[str, ...]] = {}
        if settings.serializable_reads:
            reasons.append(STALE)
            in_workloads |= {"register": ("nonlinearizable",), "set": ("stale",)}
        if not settings.fencing:
            reasons.append(LEASED)
            in_workloads["lock"] = ("nonlinearizable",)
        return LegalLoss(reason="; ".join(reasons), in_workloads=in_workloads)


def _member(name: str, settings: EtcdSettings, *, joins: bool = False) -> NodeSpec:
    return member(name, heartbeat_ms=settings.heartbeat_ms, election_ms=settings.election_ms, joins=joins)


def _gateway(host: Any, name: str, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> Gateway:
    return Gateway(name, host.network.reached_at(f"{name}:{CLIENT_PORT}"), answer_timeout_s=answer_timeout_s)


def _others(host: Any, node: str) -> tuple[Gateway, ...]:
    """To be asked about the node, and to be closed."""
    return tuple(_gateway(host, name, answer_timeout_s=ADMINISTRATOR_TIMEOUT_S) for name in MEMBERS if name != node)


async def _status(host: Any, name: str) -> Mapping[str, Any]:
    """What a member says of itself; nothing where it does not answer."""
    gateway = _gateway(host, name)
    try:
        answer: Mapping[str, Any] = await gateway.ask("maintenance/status", {})
        return answer
    except OperationError:
        return {}
    finally:
        await gateway.close()


SYSTEM = Etcd()
