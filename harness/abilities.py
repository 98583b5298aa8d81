"""What a system may be able to do beside what every one does (`harness.system.System`).

Each ability is a protocol: a system that has its methods has the ability, and `isinstance` finds that out. An adapter
names no base class and registers nothing. The functions below give what a system brings, or what stands in for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from harness.administration import Act, Acts
from harness.errors import HarnessError
from harness.invariants import Breaches, Invariants
from harness.membership import Membership, Start
from harness.narrator import Narrator, PlainNarrator
from harness.record.facts import Lack
from harness.record.scenario import SettingValue
from harness.record.steady_spans import SteadySpan
from harness.reporting import Reporting
from harness.system import NodeSpec, System
from harness.watch import LastEvents, Watch

if TYPE_CHECKING:
    # It brings pyarrow along, which `stormproof --help` does without.
    from harness.record.node_reports import NodeReports

Settings = TypeVar("Settings", contravariant=True)


@runtime_checkable
class Watched(Protocol[Settings]):
    """A system that brings a watch of its own."""

    def watch(self, settings: Settings) -> Watch: ...


@runtime_checkable
class Guarded(Protocol[Settings]):
    """A system that brings invariants, which it declares with their meanings."""

    def invariants(self, settings: Settings, breaches: Breaches) -> Invariants:
        """That say to `breaches` what they find broken."""


@runtime_checkable
class Narrated(Protocol[Settings]):
    """A system that has words of its own for what its nodes report."""

    def narrator(self, settings: Settings) -> Narrator: ...


@runtime_checkable
class Reported(Protocol[Settings]):
    """A system that may put programs on trial which report no events themselves."""

    def reporting(self, settings: Settings) -> Reporting | None:
        """None where its nodes report themselves."""


@runtime_checkable
class Particular(Protocol[Settings]):
    """A system whose settings do not go with all those of a workload."""

    def require_fitting(self, settings: Settings, workload_settings: Settings) -> None:
        """Raises UsageError for settings of a workload that a run with these settings cannot make true."""


@runtime_checkable
class Preferring(Protocol):
    """A system that is put on trial with another workload than its first one where a run names none."""

    usual_workload: str


@runtime_checkable
class Advising(Protocol[Settings]):
    """A system whose settings say what those of a workload should be."""

    def advised(self, settings: Settings, workload: str) -> Mapping[str, SettingValue]:
        """Settings of the workload that hold where the run gives none: the consistency model that a system promises as
        it is set, or how many keys make its transactions meet."""


@runtime_checkable
class Separable(Protocol[Settings]):
    """A system that knows whether it depends on nodes whose disks are damaged for good."""

    async def serves_without(self, settings: Settings, host: Any, workload: str, damaged: frozenset[str]) -> bool:
        """True once the system serves by its other nodes alone, all of which are whole and follow none of these. False
        as soon as it is known that it need not: too few others are left, or one of these leads.

        It is waited for with a bound; a system that reaches neither by then is stuck.
        """


@runtime_checkable
class Resuming(Protocol[Settings]):
    """A system that serves again later than it can be known by what `ready` waits for."""

    async def resumed(self, settings: Settings, host: Any, workload: str) -> None:
        """Return once the nodes that have to serve the workload after a storm do so (the caller bounds the wait)."""


@runtime_checkable
class Restoring(Protocol[Settings]):
    """A system that gives back by itself what faults took, beside serving again; it declares what."""

    async def lacking(self, settings: Settings, host: Any, workload: str) -> Lack | None:
        """What it has not given back yet, by a name that it declares (`Declaration.restores`); None if nothing lacks.
        It is asked again and again with a bound, once it serves after a storm, and waits itself while it cannot
        know."""


@runtime_checkable
class Quorate(Protocol[Settings]):
    """A system that knows which of its nodes are enough to serve while others are broken; it declares
    `serves_within_s`."""

    def must_serve(self, settings: Settings, workload: str, span: SteadySpan, reports: NodeReports) -> bool:
        """Whether the healthy nodes of a span have to serve the workload in it by themselves, given who else can reach
        them and what all nodes reported. False wherever that is not certain."""


@runtime_checkable
class Elastic(Protocol[Settings]):
    """A system whose nodes come and go while it serves. It declares the groups whose nodes may. Both raise
    OperationError where it was refused, definite where certainly nothing was changed nor will be; they are called again
    until they succeed, and may be cancelled.
    """

    async def shrink(self, settings: Settings, host: Any, node: str) -> str:
        """The others let the node go, which may run or be gone for good. Return what was done, in words, once it
        certainly belongs to them no more, or did not any more."""

    async def grow(self, settings: Settings, host: Any, node: NodeSpec, start: Start) -> str:
        """Let a node in again that was let go, and which is down with an empty disk, or was started by a call before;
        `node` is what the run began with. `start` starts it, as the program that it is from now on; the system decides
        what comes before and after. Return what was done, in words, once it takes part in all that it did before."""


@runtime_checkable
class Administered(Protocol[Settings]):
    """A system that administrators change while it serves; it declares the acts. What clients are promised holds
    whatever administrators do."""

    def act(self, settings: Settings, host: Any, name: str) -> Act:
        """One of the declared acts, anew for each time it is done, which asks the system from this host."""


@runtime_checkable
class Shared(Protocol[Settings]):
    """A system that several workloads can use at once."""

    def shared(self, settings: Settings, workloads: tuple[str, ...]) -> Any:
        """The settings with which each of these workloads has places of its own (topics, keys). Raises UsageError for
        workloads that cannot be told apart."""


@runtime_checkable
class Layered(Protocol[Settings]):
    """A system that runs above another one with some of its settings, whose bugs can be planted there as well."""

    def mutants_beneath(self, settings: Settings) -> Mapping[str, str]:
        """Name -> what it breaks, beside the system's own."""


@runtime_checkable
class Outfitted(Protocol[Settings]):
    """A system whose clients need more than the harness brings in some environments."""

    def require_clients(self, settings: Settings, environment: str) -> None:
        """Raises UsageError where the clients of a run with these settings cannot work in this environment."""


def mutants_of(system: System[Any], settings: Any) -> Mapping[str, str]:
    """All bugs that can be planted with these settings."""
    return {**system.mutants, **(system.mutants_beneath(settings) if isinstance(system, Layered) else {})}


def watch_of(system: object, settings: Any) -> Watch:
    """The system's own watch, otherwise one that knows the last event of each node."""
    return system.watch(settings) if isinstance(system, Watched) else LastEvents()


def invariants_of(system: System[Any], settings: Any, breaches: Breaches) -> Invariants | None:
    """The system's own; None where it brings none."""
    if isinstance(system, Guarded):
        return system.invariants(settings, breaches)
    if breaches.declared:
        raise HarnessError(f"{system.name} declares invariants, so it needs the method invariants")
    return None


def narrator_of(system: object, settings: Any) -> Narrator:
    """The system's own narrator, otherwise one that repeats what nodes reported."""
    return system.narrator(settings) if isinstance(system, Narrated) else PlainNarrator()


def reporting_of(system: object, settings: Any) -> Reporting | None:
    """The system's own; None where its nodes report themselves."""
    return system.reporting(settings) if isinstance(system, Reported) else None


def membership_of(system: System[Any], settings: Any, host: Any, nodes: Mapping[str, NodeSpec]) -> Membership | None:
    """The verbs by which the system's nodes leave and come back; None where none may leave, as it is set."""
    declared = system.cluster(settings)
    if not declared.elastic:
        return None
    if not isinstance(system, Elastic):
        raise HarnessError(f"{system.name} declares elastic groups, so it needs the methods shrink and grow")
    elastic: Elastic[Any] = system

    async def grow(node: str, start: Start) -> str:
        return await elastic.grow(settings, host, nodes[node], start)

    return Membership(partial(elastic.shrink, settings, host), grow, declared.elastic_at_once)


def acts_of(system: System[Any], settings: Any, host: Any) -> Acts | None:
    """None where the system, as it is set, declares no acts."""
    if not system.cluster(settings).acts:
        return None
    if not isinstance(system, Administered):
        raise HarnessError(f"{system.name} declares acts, so it needs the method act")
    return partial(system.act, settings, host)
