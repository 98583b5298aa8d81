"""ZooKeeper on trial: an ensemble of three, of Debian's 3.8 or a release.

The vendor's pages on its guarantees (https://zookeeper.apache.org/doc/r3.8.0/zookeeperInternals.html,
https://zookeeper.apache.org/doc/r3.8.0/zookeeperProgrammers.html) say that writes are linearizable, and that a server
answers reads from what it has: one client may not see yet what another one has written, unless it asks for `sync`
before. With `forceSync` off (https://zookeeper.apache.org/doc/r3.8.0/zookeeperAdmin.html, unsafe options) writes are
acknowledged before they are on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from harness.bounds import Bounds
from harness.client import Client
from harness.client_package import require_package
from harness.membership import Start
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.systems.java import require_release
from workloads.systems.zookeeper.client import ZookeeperClient
from workloads.systems.zookeeper.lock import LockClient
from workloads.systems.zookeeper.membership import let_go, let_in
from workloads.systems.zookeeper.mode import mode
from workloads.systems.zookeeper.nodes import SERVERS, dynamic_server, server

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

STALE = "a server answers plain reads from what it has (the vendor's pages on its guarantees); --set sync=true mends it"
UNSAFE = "with forceSync off writes are acknowledged before they are on the disk (the vendor's page on unsafe options)"

UNFENCED = (
    "a session may end while its client does not know, and with it a lock (the vendor's programmer's guide on "
    "sessions); --set fencing=true judges by tokens"
)
HELD_FOR = 2
"""Times a session lasts unheard of: so long locks are held on average."""


@dataclass(frozen=True, kw_only=True)
class ZookeeperSettings:
    release: str = ""
    """The number of the release, as Maven has it, such as 3.9.5; empty: Debian's 3.8."""
    sync: bool = False
    """A read of a register asks its server to catch up with the leader first."""
    force_sync: bool = True
    """Writes are on the disk before they are acknowledged."""
    trust_empty: bool = False
    """A server that finds a log and no snapshot starts all the same (`snapshot.trust.empty`)."""
    session_s: Annotated[float, Bounds(1, 10)] = 2.0
    """How long a server keeps the session of a client that locks without hearing of it."""
    fencing: bool = False
    """The client that releases a lock learns if it was lost. The workload `lock` has this setting as well."""
    reconfig: bool = False
    """Servers can be taken out of the ensemble, and let in again, while it serves."""
    strict: bool = False
    """Judge as if no read might show the past, and nothing might be lost."""

    def __post_init__(self) -> None:
        if self.release:
            require_release(self.release, of="ZooKeeper", such_as="3.9.5")


class Zookeeper:
    """`System`."""

    name, settings_type, workloads = "zookeeper", ZookeeperSettings, ("register", "set", "queue", "lock")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: ZookeeperSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        made = dynamic_server if settings.reconfig else server
        return tuple(
            made(name, force_sync=settings.force_sync, trust_empty=settings.trust_empty, release=settings.release)
            for name in SERVERS
        )

    def cluster(self, settings: ZookeeperSettings) -> Declaration:
        servers = ("servers",)
        elastic = servers if settings.reconfig else ()
        return Declaration(groups=servers, data=servers, voters=servers, elastic=elastic, roles={"leader": "servers"})

    def advised(self, settings: ZookeeperSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`: locks are held for longer than a session lasts unheard of."""
        return {"hold_s": HELD_FOR * settings.session_s} if workload == "lock" else {}

    def require_clients(self, settings: ZookeeperSettings, environment: str) -> None:
        require_package("kazoo", system=self.name)

    def client(self, workload: str, settings: ZookeeperSettings, host: Any, process: int) -> Client:
        name = SERVERS[process % len(SERVERS)]
        if workload == "lock":
            return LockClient(host, name, session_s=settings.session_s, fencing=settings.fencing)
        return ZookeeperClient(host, name, sync=settings.sync)

    async def ready(self, settings: ZookeeperSettings, host: Any, workload: str) -> None:
        """One leads, and the others follow it."""
        while sorted([await mode(host, name) for name in SERVERS]) != ["follower", "follower", "leader"]:
            await host.clock.sleep(0.3)

    async def roles(self, settings: ZookeeperSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        return {"leader": tuple([name for name in SERVERS if await mode(host, name) == "leader"])}

    async def shrink(self, settings: ZookeeperSettings, host: Any, node: str) -> str:
        """`Elastic`."""
        return await let_go(host, node)

    async def grow(self, settings: ZookeeperSettings, host: Any, node: NodeSpec, start: Start) -> str:
        """`Elastic`."""
        await start(
            dynamic_server(
                node.name,
                force_sync=settings.force_sync,
                trust_empty=settings.trust_empty,
                joins=True,
                release=settings.release,
            ).program
        )
        return await let_in(host, node.name, lambda: mode(host, node.name))

    def legal_loss(
        self, settings: ZookeeperSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        reasons, in_workloads = [], {}
        if not settings.sync:
            reasons.append(STALE)
            in_workloads["register"] = ("nonlinearizable",)
        if not settings.fencing:
            reasons.append(UNFENCED)
            in_workloads["lock"] = ("nonlinearizable",)
        if not settings.force_sync and any("power" in window.kinds for window in struck):
            reasons.append(UNSAFE)
            in_workloads |= {"register": ("nonlinearizable",), "set": ("lost",), "queue": ("lost",)}
        return LegalLoss(reason="; ".join(reasons), in_workloads=in_workloads)


SYSTEM = Zookeeper()
