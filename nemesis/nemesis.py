"""The nemesis: carries a schedule out, one step an operation of process -1, and leaves the world healed.

It finds out which nodes a shape strikes when it strikes (who plays which role now?), keeps packages from colliding
(nothing is sent to a process that another fault holds down), and reports every fault with the effect read back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from harness.environments.environment import Effect, Environment, Link
from harness.errors import HarnessError
from harness.operation import Operation
from harness.record.fault_row import FaultRow
from harness.seed import Seed
from nemesis.cluster import Cluster
from nemesis.fault import Compound, Fault, Kill, Partition, Pause, PowerLoss
from nemesis.schedule import Due, Entry

ROLES_TIMEOUT_S = 4.0
NOTHING = Effect(False, "no node fits: it is not known who plays the role, or all are down already")


def _parts(fault: Fault) -> tuple[Fault, ...]:
    return fault.faults if isinstance(fault, Compound) else (fault,)


def _links(fault: Fault) -> tuple[Link, ...]:
    return tuple(link for part in _parts(fault) if isinstance(part, Partition) for link in part.links)


def _without(fault: Fault, held: set[Link]) -> Fault:
    """The fault without the links that others hold cut, so that stopping it does not open them."""
    if isinstance(fault, Compound):
        return Compound(tuple(_without(part, held) for part in fault.faults))
    if isinstance(fault, Partition):
        return Partition(tuple(link for link in fault.links if link not in held), fault.shape)
    return fault


def _held_down(fault: Fault) -> tuple[str, ...]:
    """The nodes whose process a fault stops for as long as it is active."""
    return tuple(node for part in _parts(fault) if isinstance(part, Kill | PowerLoss | Pause) for node in part.nodes)


@dataclass(kw_only=True)
class Nemesis:
    """A `harness.client.Client` whose operations are the starts and stops of one schedule."""

    environment: Environment
    groups: Mapping[str, tuple[str, ...]]
    roles: Callable[[], Awaitable[Mapping[str, tuple[str, ...]]]]
    """Asks the system which nodes play which role; those that are known."""
    due: tuple[Due, ...]
    seed: Seed
    record: Callable[[FaultRow], None]
    """Takes one row of the fault log for every start and stop."""
    active: dict[tuple[str, int], Fault] = field(default_factory=dict)
    last_roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def invoke(self, operation: Operation) -> Operation:
        if operation.value is None:
            raise ValueError("a nemesis operation carries the number of what is due")
        due = self.due[operation.value["due"]]
        entry = due.entry
        fault, effect = await (self._start(entry) if due.starts else self._stop(entry))
        self._record(entry.package, entry.number, str(entry.shape), fault, effect, starts=due.starts)
        return operation._replace(type="info", value=None)

    async def heal(self) -> None:
        """Stop every fault still active. Called after the storm, however it ended.

        Raises the first HarnessError after all faults were tried.
        """
        failures: list[HarnessError] = []
        for package, number in sorted(self.active):
            fault = self.active[package, number]
            try:
                effect = await self._undo((package, number))
            except HarnessError as error:
                failures.append(error)
                continue
            self._record(package, number, "final healing", fault, effect, starts=False)
        if failures:
            raise failures[0]

    def _record(
        self, package: str, number: int, shape: str, fault: Fault | None, effect: Effect, *, starts: bool
    ) -> None:
        self.record(
            FaultRow(
                time_ns=self.environment.timeline.now_ns(),
                package=package,
                number=number,
                starts=starts,
                kind=fault.kind if fault else package,
                shape=shape,
                nodes=fault.nodes if fault else (),
                fault=fault.to_json() if fault else None,
                happened=effect.happened,
                evidence=effect.evidence,
            )
        )

    async def _start(self, entry: Entry) -> tuple[Fault | None, Effect]:
        draw = self.seed.child(entry.package, str(entry.number), "strike").stream()
        fault = entry.shape.strike(await self._cluster(), draw)
        if fault is None:
            return None, NOTHING
        # Before it starts: what a start that fails half-way has done is healed in the end as well.
        self.active[entry.package, entry.number] = fault
        return fault, await fault.start(self.environment)

    async def _stop(self, entry: Entry) -> tuple[Fault | None, Effect]:
        key = (entry.package, entry.number)
        fault = self.active.get(key)
        return (None, NOTHING) if fault is None else (fault, await self._undo(key))

    async def _undo(self, key: tuple[str, int]) -> Effect:
        held = {link for other, fault in self.active.items() if other != key for link in _links(fault)}
        effect = await _without(self.active[key], held).stop(self.environment)
        del self.active[key]
        return effect

    async def _cluster(self) -> Cluster:
        try:
            reported = await self.environment.timeline.within(ROLES_TIMEOUT_S, self.roles())
        except TimeoutError:
            reported = {}
        # Of roles that cannot be found out now, the nodes last seen in them are the best guess.
        roles = self.last_roles = {**self.last_roles, **reported}
        out = {node for fault in self.active.values() for node in _held_down(fault)}
        return Cluster(groups=self.groups, roles=roles, unavailable=frozenset(out))
