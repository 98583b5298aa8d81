"""BookKeeper on trial: ledgers on bookies, a store of their metadata, and brokers of partitions made of ledgers.

It promises that what a quorum of bookies has acknowledged is read for ever by everybody, that a ledger has one end, and
that two owners of a partition never both append.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.client import Client
from harness.errors import OperationError, UsageError
from harness.invariants import Breaches
from harness.membership import Start
from harness.record.facts import Lack
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.bookkeeper import mutants
from system_under_test.node.mutant import find_mutant, mutant_names
from workloads.log import LogSettings
from workloads.systems.bookkeeper import nodes
from workloads.systems.bookkeeper.client import LogClient, PartitionClient
from workloads.systems.bookkeeper.copies import RESTORES, Copies
from workloads.systems.bookkeeper.entry_losses import CANNOT_WRITE, DAMAGE
from workloads.systems.bookkeeper.invariants import INVARIANTS, BookkeeperInvariants
from workloads.systems.bookkeeper.legal_loss import legal_loss
from workloads.systems.bookkeeper.membership import Replacement
from workloads.systems.bookkeeper.narrator import BookkeeperNarrator
from workloads.systems.bookkeeper.nodes import PARTITION
from workloads.systems.bookkeeper.original.reporting import OriginalReporting
from workloads.systems.bookkeeper.original.trial import ORIGINAL, STARTS_WITHIN_S, UNSERVED
from workloads.systems.bookkeeper.points import POINTS
from workloads.systems.bookkeeper.register import RegisterClient
from workloads.systems.bookkeeper.settings import (
    BOOKIES,
    BROKERS,
    METADATA,
    METADATA_NODES,
    OURS_ALONE,
    BookkeeperSettings,
)
from workloads.systems.bookkeeper.watch import BookkeeperWatch

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

PATIENCE_S = 4.0
"""How long a client waits for an answer."""
RECOVERS_WITHIN_S = 40.0
DEPLOYMENTS: tuple[Mapping[str, SettingValue], ...] = (
    {},
    {"bookies": 3},
    {"ensemble": 4},
    {"ensemble": 5, "bookies": 7},
    {"ack_quorum": 3},
    {"ensemble": 2, "write_quorum": 2},
    {"ensemble": 2, "write_quorum": 2, "ack_quorum": 1},
)
"""Quorums, and how many bookies are there beside an ensemble: write sets are turned only where an ensemble has more
bookies than get an entry, and one that fails is replaced only where there is another one."""
EXPLORED: Mapping[str, tuple[SettingValue, ...]] = {
    "journal_sync": (False,),
    "placement": ("entry",),
    "roll_entries": (5, 20),
    "readers": ("bookies",),
    "explicit_lac_s": (0.1, 1.0),
    "check_entries_s": (2.0,),
}
"""Settings that storms draw, beside the defaults."""
PACES: Mapping[str, tuple[SettingValue, ...]] = {"session_timeout_s": (0.5, 1.0, 2.0), "time_scale": (0.25, 0.5, 1.0)}


class Bookkeeper:
    """`System`."""

    name, settings_type, workloads = "bookkeeper", BookkeeperSettings, ("log", "register")
    mutants: Mapping[str, str] = {name: find_mutant(mutants, name).breaks for name in mutant_names(mutants)}

    def nodes(self, settings: BookkeeperSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return ORIGINAL.nodes(settings, mutant) if settings.release else nodes.nodes(settings, mutant)

    def cluster(self, settings: BookkeeperSettings) -> Declaration:
        left_out = OURS_ALONE if settings.release else ()
        within_s = RECOVERS_WITHIN_S + (STARTS_WITHIN_S if settings.release else 0)
        return Declaration(
            groups=(BOOKIES, BROKERS, METADATA),
            data=(BOOKIES,),
            voters=(METADATA,),
            elastic=(BOOKIES,),
            roles={
                "owner": BROKERS,
                "metadata-leader": METADATA,
                **({} if settings.release else {"auditor": BOOKIES}),
            },
            serving={"register": (METADATA,)},
            unserved={"register": UNSERVED} if settings.release else {},
            points=POINTS,
            invariants=INVARIANTS,
            deployments=DEPLOYMENTS,
            explored={name: values for name, values in EXPLORED.items() if name not in left_out},
            paces=PACES,
            restores=RESTORES,
            recovers_within_s=within_s + settings.check_entries_s,
            progresses_within_s=within_s,
            may_panic=(*DAMAGE, *CANNOT_WRITE),
            verifies_reads=(BOOKIES,),
            lasting_damage=DAMAGE,
        )

    def require_fitting(self, settings: BookkeeperSettings, workload_settings: Any) -> None:
        """`Particular`: a partition is a queue, and messages have no tags."""
        if not isinstance(workload_settings, LogSettings):
            return
        limits = {"queues": settings.partitions, "tags": 0, "move_share": 0}
        for name, most in limits.items():
            if (given := getattr(workload_settings, name)) > most:
                raise UsageError(f"setting {name} of log takes {most} on bookkeeper, got {given}")

    def advised(self, settings: BookkeeperSettings, workload: str) -> Mapping[str, SettingValue]:
        return {"queues": settings.partitions} if workload == "log" else {}

    def client(self, workload: str, settings: BookkeeperSettings, host: Any, process: int) -> Client:
        if settings.release:
            return ORIGINAL.client(settings, host)
        return LogClient(host, settings, PATIENCE_S) if workload == "log" else RegisterClient(host, PATIENCE_S)

    async def ready(self, settings: BookkeeperSettings, host: Any, workload: str) -> None:
        if settings.release:
            return await ORIGINAL.ready(settings, host)
        asking = PartitionClient(host, PATIENCE_S)
        for number in range(settings.partitions):
            while await _owner(asking, PARTITION.format(number)) is None:
                await host.clock.sleep(0.1)
        await asking.close()

    async def lacking(self, settings: BookkeeperSettings, host: Any, workload: str) -> Lack | None:
        """`Restoring`: what was lost with a bookie's disk comes back on others."""
        if settings.release:
            return await ORIGINAL.lacking(settings, host)
        copies = Copies(host, PATIENCE_S, every_entry=settings.check_entries_s > 0)
        try:
            return await copies.lack()
        finally:
            await copies.close()

    async def serves_without(
        self, settings: BookkeeperSettings, host: Any, workload: str, damaged: frozenset[str]
    ) -> bool:
        """`Separable`: the other bookies are enough where they are as many as an ensemble."""
        if settings.release:
            return False
        others = [bookie for bookie in settings.bookie_names if bookie not in damaged]
        if not damaged.isdisjoint(METADATA_NODES) or len(others) < settings.ensemble:
            return False
        await self.ready(settings, host, workload)
        while await self.lacking(settings, host, workload) is not None:
            await host.clock.sleep(0.5)
        return True

    async def roles(self, settings: BookkeeperSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        if settings.release:
            return await ORIGINAL.roles(settings, host)
        asking = PartitionClient(host, PATIENCE_S)
        owner = await _owner(asking, PARTITION.format(0))
        await asking.close()
        return {} if owner is None else {"owner": (owner,)}

    async def shrink(self, settings: BookkeeperSettings, host: Any, node: str) -> str:
        """`Elastic`"""
        if settings.release:
            return await ORIGINAL.shrink(node)
        return await Replacement(host, node, PATIENCE_S).shrink()

    async def grow(self, settings: BookkeeperSettings, host: Any, node: NodeSpec, start: Start) -> str:
        if settings.release:
            return await ORIGINAL.grow(settings, host, node, start)
        return await Replacement(host, node.name, PATIENCE_S).grow(node, start)

    def reporting(self, settings: BookkeeperSettings) -> OriginalReporting | None:
        """`Reported`: nodes of our own report themselves."""
        return OriginalReporting() if settings.release else None

    def watch(self, settings: BookkeeperSettings) -> BookkeeperWatch:
        return BookkeeperWatch(settings)

    def invariants(self, settings: BookkeeperSettings, breaches: Breaches) -> BookkeeperInvariants:
        return BookkeeperInvariants(settings, breaches)

    def narrator(self, settings: BookkeeperSettings) -> BookkeeperNarrator:
        return BookkeeperNarrator()

    def legal_loss(
        self, settings: BookkeeperSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        return LegalLoss() if settings.strict else legal_loss(settings, struck, reports)


async def _owner(asking: PartitionClient, partition: str) -> str | None:
    try:
        return await asking.owner(partition)
    except OperationError:
        return None


SYSTEM = Bookkeeper()
