"""How a system shows itself to the harness. Adapters live in `workloads/systems` or in other people's packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness import path_name
from harness.client import Client
from harness.errors import UsageError
from harness.program import Program
from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.record.meaning import Meaning
from harness.record.scenario import SettingValue

if TYPE_CHECKING:
    # It brings pyarrow along, which `stormproof --help` does without.
    from harness.record.node_reports import NodeReports

Settings = TypeVar("Settings")


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One process of the system: the same description starts it in every environment that can run its program.

    Raises UsageError for a name that cannot be a folder's: its logs lie under it.
    """

    name: str
    groups: tuple[str, ...]
    """The groups it belongs to, among those that the system declares."""
    program: Program
    ports: tuple[int, ...] = ()
    """Ports that clients (not only other nodes) reach."""
    upgraded: Program | None = None
    """What it runs from its upgrade on; None where there is no other version of it."""
    machine: str = ""
    """The machine on which it runs, with all other nodes of the same; empty where it has one of its own."""
    replica: bool = False
    """Whether it holds a copy of the data that the final reads compare."""

    def __post_init__(self) -> None:
        path_name.checked(self.name, "a node")


@dataclass(frozen=True, kw_only=True)
class LegalLoss:
    """What this configuration may legally do under the faults that were applied (empty: nothing)."""

    anomalies: tuple[str, ...] = ()
    """Names of anomalies that are reported, but throughout the run do not make the verdict invalid."""
    reason: str = ""
    in_workloads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Workload -> further names, where another workload's anomaly of that name would not be legal."""
    anything: str = ""
    """Why nothing is promised at all in this run: a fault broke what every promise rests on. Empty where it did not."""
    anything_from_ns: int = 0
    """When it broke: what was seen in the run itself before that, at some moment, is not legal for its sake."""
    excuses: tuple[Excuse, ...] = ()
    """What is legal only of what was written in some spans of time; the fewer, the more a storm can show."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """At what faults can be aimed in a system: its groups and roles, the most important first.

    A node belongs to the groups that its `NodeSpec` names; the group `all` is everywhere. Packages of faults are made
    from this, and sentences may use its names. Raises UsageError where it names a group that it does not declare.
    """

    groups: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """Groups whose nodes hold copies of what clients write."""
    voters: tuple[str, ...] = ()
    """Groups that decide by majority."""
    elastic: tuple[str, ...] = ()
    """Groups of which one node may leave and be let in again while the cluster serves; the system is `Elastic` then."""
    elastic_at_once: int = 1
    """So many may be out at once."""
    shares_machines: bool = False
    """Whether some nodes run on one machine, which fails as a whole."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role -> the group whose nodes play it; `System.roles` finds out who does."""
    serving: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Workload -> the groups whose nodes serve it, where these are not all: searches aim faults at them alone."""
    unserved: Mapping[str, str] = field(default_factory=dict)
    """Workload of the system's -> why it cannot be run with these settings."""
    points: Mapping[str, str] = field(default_factory=dict)
    """Point -> what it means that a node reached it (`host.reached`), in kebab-case: moments at which faults may
    strike."""
    acts: Mapping[str, str] = field(default_factory=dict)
    """Act -> what administrators do by it while the system serves, in kebab-case; the system is `Administered` then."""
    invariants: Mapping[str, Meaning] = field(default_factory=dict)
    """What holds at every moment of a run, in kebab-case -> what it means that it did not; the system is `Guarded`
    then."""
    restores: Mapping[str, Meaning] = field(default_factory=dict)
    """What the system gives back by itself after a storm, beside serving again, in kebab-case -> what it means that it
    did not; the system is `Restoring` then."""
    recovers_within_s: float | None = None
    """So long after everything was healed the system serves again, all its replicas included, and has given back what
    it restores, or it is INVALID; None where it promises nothing."""
    progresses_within_s: float = 25.0
    """So long after a quorum was healed, the rest being broken, operations of every kind succeed; demanded of some of
    the storms that `stormproof explore` draws."""
    serves_within_s: float | None = None
    """While faults stay the same that leave enough nodes healthy and connected, operations of every kind succeed so
    long after they began; in which spans that is so, the system says itself (`Quorate`). None: it promises nothing."""
    may_panic: tuple[str, ...] = ()
    """Kinds of faults under which a node that they strike may end by itself."""
    contagious: tuple[str, ...] = ()
    """Kinds of faults whose damage a node may hand on: a node that took it over may end by itself as well."""
    verifies_reads: tuple[str, ...] = ()
    """Groups, of those that hold data, whose nodes find out whether what they read from a disk is what they look for,
    also where it is whole and another record: writes of theirs may be misdirected."""
    lasting_damage: tuple[str, ...] = ()
    """Kinds of faults that leave a disk damaged for ever: a node that they struck need not be whole again. Nor need the
    others, unless the system is `Separable`."""
    spare: str = "spare"
    """The role of nodes without which the system must go on, where `System.roles` reports any: `--liveness` keeps them
    down while it demands progress."""
    deployments: tuple[Mapping[str, SettingValue], ...] = ()
    """Sets of settings that make another cluster of the system: where `stormproof explore` searches, a storm draws one
    of them before anything else, each as likely as it is often here; what the cluster so set declares is drawn then.
    Empty: it is always the given one."""
    explored: Mapping[str, tuple[SettingValue, ...]] = field(default_factory=dict)
    """Setting -> values beside the given one that such storms draw."""
    explored_together: tuple[Mapping[str, SettingValue], ...] = ()
    """Sets of settings that are possible, or mean something, only together: such a storm draws each as a whole."""
    explored_seldom: tuple[Mapping[str, SettingValue], ...] = ()
    """Sets of settings of which few such storms draw one, beside all else that they draw."""
    paces: Mapping[str, tuple[SettingValue, ...]] = field(default_factory=dict)
    """Setting -> values of which such a storm draws one where hosts are near each other: how long the system itself
    waits before it acts. The less, the more of what can happen does so within a storm."""
    own_pace: Mapping[str, SettingValue] = field(default_factory=dict)
    """The settings with which the system waits as long as it does for its users: some storms have these, and last
    longer. Empty: it has no other pace."""

    def serving_alone(self, workload: str) -> Declaration:
        """The same without the groups that have no part in this workload, and without their roles."""
        return replace(self.of_groups(self.serving.get(workload, self.groups)), serving={})

    def of_groups(self, groups: Sequence[str]) -> Declaration:
        """The same without all other groups, and without their roles."""
        return replace(
            self,
            groups=tuple(groups),
            data=tuple(group for group in self.data if group in groups),
            voters=tuple(group for group in self.voters if group in groups),
            elastic=tuple(group for group in self.elastic if group in groups),
            verifies_reads=tuple(group for group in self.verifies_reads if group in groups),
            roles={role: group for role, group in self.roles.items() if group in groups},
            serving={},
        )

    def __post_init__(self) -> None:
        serving = [group for groups in self.serving.values() for group in groups]
        for group in (
            *self.data,
            *self.voters,
            *self.elastic,
            *self.verifies_reads,
            *self.roles.values(),
            *serving,
        ):
            if group not in self.groups:
                raise UsageError(f"the system declares no group {group!r}; it declares: {', '.join(self.groups)}")


class System(Protocol[Settings]):
    """A system on trial. `Settings` is the system's own frozen dataclass, made by the registry from `--set`.

    What it may be able to do beside this is in `harness.abilities`.
    """

    @property
    def name(self) -> str: ...

    @property
    def settings_type(self) -> type[Settings]: ...

    @property
    def workloads(self) -> tuple[str, ...]: ...

    @property
    def mutants(self) -> Mapping[str, str]:
        """Planted bugs that `--mutant` chooses -> the promise that each breaks."""

    def nodes(self, settings: Settings, mutant: str | None) -> tuple[NodeSpec, ...]: ...

    def cluster(self, settings: Settings) -> Declaration:
        """The groups of the nodes and the roles that they may play."""

    def client(self, workload: str, settings: Settings, host: Any, process: int) -> Client:
        """A client for one logical process that reaches the nodes through `host`."""

    async def ready(self, settings: Settings, host: Any, workload: str) -> None:
        """Return once the system serves the workload (the caller bounds the wait)."""

    async def roles(self, settings: Settings, host: Any) -> Mapping[str, tuple[str, ...]]:
        """Role -> the nodes that play it now, for the roles of `cluster` and its spare one; those that are known."""

    def legal_loss(self, settings: Settings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        """What this configuration may lose under the faults that had an effect, given what the nodes reported."""
