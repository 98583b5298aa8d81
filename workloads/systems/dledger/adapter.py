"""DLedger on trial: a group of members that replicate a log, of which the public library is the pattern.

It promises that what a majority has acknowledged stays at its index, and that nobody sees anything before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.client import Client
from harness.errors import UsageError
from harness.invariants import Breaches
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.record.steady_spans import SteadySpan
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.dledger import mutants
from system_under_test.node.mutant import find_mutant, mutant_names
from workloads.systems.dledger.client import PATIENCE_S, LogClient, MemberClient
from workloads.systems.dledger.invariants import INVARIANTS, DledgerInvariants
from workloads.systems.dledger.legal_loss import DAMAGE, legal_loss
from workloads.systems.dledger.narrator import DledgerNarrator
from workloads.systems.dledger.nodes import MEMBERS, members
from workloads.systems.dledger.original_loss import original_loss
from workloads.systems.dledger.original_reporting import OriginalReporting
from workloads.systems.dledger.points import POINTS
from workloads.systems.dledger.quorum import elects, serves_within_s
from workloads.systems.dledger.settings import OURS_ALONE, DledgerSettings, roles_in
from workloads.systems.dledger.watch import DledgerWatch

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

STARTS_WITHIN_S = 15.0
"""How long a virtual machine may take on a busy machine before its member takes part."""
EXPLORED: Mapping[str, tuple[SettingValue, ...]] = {
    "ack_durable": (True,),
    "batch_push": (True,),
    "members": (5,),
    "preferred": (2,),
    "store": ("memory",),
}
"""Settings that storms draw, beside the defaults."""
SELDOM: tuple[Mapping[str, SettingValue], ...] = ({"begins_as_version": 1, "batch_push": True},)
LASTING_DAMAGE = ("bit-rot", "short-files")
"""A member whose disk was lost, or went back to an older state, gets from its leader what it lacks."""
CANNOT_WRITE = ("full-disk", "failing-fsync", "disk-errors")
"""Faults under which a member ends itself rather than go on."""


class Dledger:
    """`System`."""

    name, settings_type, workloads = "dledger", DledgerSettings, ("log",)
    mutants: Mapping[str, str] = {name: find_mutant(mutants, name).breaks for name in mutant_names(mutants)}

    def nodes(self, settings: DledgerSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return members(settings, mutant)

    def cluster(self, settings: DledgerSettings) -> Declaration:
        left_out = OURS_ALONE if settings.release else ()
        starts_s = STARTS_WITHIN_S if settings.release else 0
        within_s = 10 + 20 * settings.time_scale + starts_s
        return Declaration(
            groups=(MEMBERS,),
            data=(MEMBERS,),
            voters=(MEMBERS,),
            roles={"leader": MEMBERS, **({"preferred": MEMBERS} if settings.preferred else {})},
            points=POINTS,
            invariants=INVARIANTS,
            explored={name: values for name, values in EXPLORED.items() if name not in left_out},
            explored_seldom=() if settings.release else SELDOM,
            recovers_within_s=within_s,
            progresses_within_s=within_s,
            serves_within_s=serves_within_s(settings) + starts_s,
            may_panic=(*DAMAGE, *CANNOT_WRITE),
            lasting_damage=LASTING_DAMAGE,
        )

    def require_fitting(self, settings: DledgerSettings, workload_settings: Any) -> None:
        """`Particular`: a group is one queue."""
        for name, most in {"queues": 1, "batch_share": 0, "tags": 0, "move_share": 0}.items():
            if (given := getattr(workload_settings, name)) > most:
                raise UsageError(f"setting {name} of log takes {most} on dledger, got {given}")

    def advised(self, settings: DledgerSettings, workload: str) -> Mapping[str, int]:
        return {"queues": 1}

    def client(self, workload: str, settings: DledgerSettings, host: Any, process: int) -> Client:
        return LogClient(host, settings.names, process, PATIENCE_S, settings.public)

    async def ready(self, settings: DledgerSettings, host: Any, workload: str) -> None:
        asking = MemberClient(host, PATIENCE_S)
        while await asking.leader(settings.names) is None:
            await host.clock.sleep(0.1)
        asking.close()

    async def resumed(self, settings: DledgerSettings, host: Any, workload: str) -> None:
        """`Resuming`: a member that stays a candidate is not repaired, and those of the public library show nobody what
        they hold."""
        asking = MemberClient(host, PATIENCE_S)
        while settings.release and not await asking.agreed(settings.names):
            await host.clock.sleep(0.1)
        asking.close()

    async def serves_without(
        self, settings: DledgerSettings, host: Any, workload: str, damaged: frozenset[str]
    ) -> bool:
        """`Separable`: the others are enough where they are a majority and follow one of them."""
        others = tuple(name for name in settings.names if name not in damaged)
        if 2 * len(others) <= settings.members:
            return False
        asking = MemberClient(host, PATIENCE_S)
        try:
            while True:
                leaders = await asking.leaders(others)
                if not damaged.isdisjoint(leaders.values()):
                    return False
                if len(leaders) == len(others) and len(set(leaders.values())) == 1 and None not in leaders.values():
                    return True
                await host.clock.sleep(0.1)
        finally:
            asking.close()

    def must_serve(self, settings: DledgerSettings, workload: str, span: SteadySpan, reports: NodeReports) -> bool:
        """`Quorate`: any majority of members, whatever they reported."""
        return elects(settings.names, span)

    async def roles(self, settings: DledgerSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        asking = MemberClient(host, PATIENCE_S)
        leader = await asking.leader(settings.names)
        asking.close()
        return roles_in(settings, leader)

    def reporting(self, settings: DledgerSettings) -> OriginalReporting | None:
        """`Reported`: members of our own report themselves."""
        return OriginalReporting(settings.public) if settings.public else None

    def watch(self, settings: DledgerSettings) -> DledgerWatch:
        return DledgerWatch(settings)

    def invariants(self, settings: DledgerSettings, breaches: Breaches) -> DledgerInvariants:
        return DledgerInvariants(settings, breaches)

    def narrator(self, settings: DledgerSettings) -> DledgerNarrator:
        return DledgerNarrator()

    def legal_loss(self, settings: DledgerSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        return original_loss(settings, struck) if settings.release else legal_loss(settings, struck, reports)


SYSTEM = Dledger()
