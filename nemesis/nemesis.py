"""The nemesis: carries a schedule out, one step an operation of process -1, and leaves the world healed.

It finds out which nodes a shape strikes when it strikes (who plays which role now?), keeps packages from colliding
(nothing is sent to a process that another fault holds down), and reports every fault with the effect read back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from harness.environments.environment import Effect, Environment, Link
from harness.operation import Operation
from harness.record.fault_row import FaultRow
from harness.seed import Seed
from nemesis.cluster import Cluster
from nemesis.fault import Compound, Fault, Kill, Partition, Pause, PowerLoss
from nemesis.schedule import Step

ROLES_TIMEOUT_S = 4.0
NOTHING = Effect(False, "nobody fits: no such role or node is there to be hit")


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
    """A `harness.client.Client` whose operations are the steps of one schedule."""

    environment: Environment
    groups: Mapping[str, tuple[str, ...]]
    roles: Callable[[], Awaitable[Mapping[str, tuple[str, ...]]]]
    """Asks the system who plays which part; best effort."""
    schedule: tuple[Step, ...]
    seed: Seed
    record: Callable[[FaultRow], None]
    """Takes one row of the fault log for every step."""
    active: dict[tuple[str, int], Fault] = field(default_factory=dict)
    last_roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def invoke(self, operation: Operation) -> Operation:
        if operation.value is None:
            raise ValueError("a nemesis operation carries the number of its step")
        step = self.schedule[operation.value["step"]]
        fault, effect = await (self._start(step) if step.starts else self._stop(step))
        self._record(step.package, step.number, str(step.shape), fault, effect, starts=step.starts)
        return operation._replace(type="info", value=None)

    async def heal(self) -> None:
        """Stop every fault still active. Called after the storm, however it ended."""
        for package, number in sorted(self.active):
            fault = self.active[package, number]
            effect = await self._undo((package, number))
            self._record(package, number, "final healing", fault, effect, starts=False)

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

    async def _start(self, step: Step) -> tuple[Fault | None, Effect]:
        draw = self.seed.child(step.package, str(step.number), "strike").stream()
        fault = step.shape.strike(await self._cluster(), draw)
        if fault is None:
            return None, NOTHING
        effect = await fault.start(self.environment)
        self.active[step.package, step.number] = fault
        return fault, effect

    async def _stop(self, step: Step) -> tuple[Fault | None, Effect]:
        key = (step.package, step.number)
        fault = self.active.get(key)
        return (None, NOTHING) if fault is None else (fault, await self._undo(key))

    async def _undo(self, key: tuple[str, int]) -> Effect:
        fault = self.active.pop(key)
        held = {link for other in self.active.values() for link in _links(other)}
        return await _without(fault, held).stop(self.environment)

    async def _cluster(self) -> Cluster:
        try:
            told = await self.environment.timeline.within(ROLES_TIMEOUT_S, self.roles())
        except TimeoutError:
            told = {}
        # Who cannot be asked now was last seen in the part it plays, which is the best guess there is.
        roles = self.last_roles = {**self.last_roles, **told}
        out = {node for fault in self.active.values() for node in _held_down(fault)}
        return Cluster(groups=self.groups, roles=roles, unavailable=frozenset(out))
