"""The nemesis: carries a schedule out, one step an operation of process -1, and leaves the world healed.

It resolves each shape when it strikes (who is primary now?), keeps packages from colliding (nothing is
sent to a process that another fault holds down), and reports every fault with the effect read back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.environments.environment import Effect, Environment
from harness.operation import Operation
from harness.seed import Seed
from harness.system import NodeSpec, Storm
from nemesis.cluster import Cluster
from nemesis.fault import Fault, Partition
from nemesis.schedule import Step

ROLES_TIMEOUT_S = 1.0
NOTHING = Effect(False, "nobody fits: no such role or node is there to be hit")


def groups_of(nodes: Sequence[NodeSpec]) -> dict[str, tuple[str, ...]]:
    """Group -> nodes, both sorted, with the group `all`."""
    names = {group for node in nodes for group in node.groups}
    groups = {group: tuple(sorted(node.name for node in nodes if group in node.groups)) for group in sorted(names)}
    return {**groups, "all": tuple(sorted(node.name for node in nodes))}


@dataclass(kw_only=True)
class Nemesis:
    """A `harness.client.Client` whose operations are the steps of one schedule."""

    environment: Environment
    groups: Mapping[str, tuple[str, ...]]
    roles: Callable[[], Awaitable[Mapping[str, tuple[str, ...]]]]
    """Asks the system who plays which part; best effort."""
    schedule: tuple[Step, ...]
    seed: Seed
    record: Callable[[dict[str, Any]], None]
    """Takes one JSON-able row of `nemesis.jsonl` for every step."""
    active: dict[tuple[str, int], Fault] = field(default_factory=dict)
    windows: list[tuple[int, int | None, Fault]] = field(default_factory=list)
    """(start ns, stop ns or None, fault) of faults that had an effect."""

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def invoke(self, operation: Operation) -> Operation:
        if operation.value is None:
            raise ValueError("a nemesis operation carries the number of its step")
        step = self.schedule[operation.value["step"]]
        fault, effect = await (self._start(step) if step.starts else self._stop(step))
        self.record(
            {
                "time": self.environment.timeline.now_ns(),
                "type": "info",
                "f": step.f,
                "kind": fault.kind if fault else step.package,
                "phase": "start" if step.starts else "stop",
                "number": step.number,
                "shape": str(step.shape),
                "targets": list(fault.nodes) if fault else [],
                "fault": fault.to_json() if fault else None,
                "happened": effect.happened,
                "evidence": effect.evidence,
            }
        )
        return operation._replace(type="info", value=None)

    async def heal(self) -> None:
        """Stop every fault still active. Called after the storm, however it ended."""
        for package, number in sorted(self.active):
            fault = self.active[package, number]
            effect = await self._undo((package, number))
            self.record(
                {
                    "time": self.environment.timeline.now_ns(),
                    "type": "info",
                    "f": f"stop-{package}",
                    "kind": fault.kind,
                    "phase": "stop",
                    "number": number,
                    "shape": "final healing",
                    "targets": list(fault.nodes),
                    "fault": fault.to_json(),
                    "happened": effect.happened,
                    "evidence": effect.evidence,
                }
            )

    def storm(self, *, aftermath_s: float) -> Storm:
        """What struck, for the judgement of legal losses; a power loss is at risk until `aftermath_s` later."""
        power = [(start, stop, fault) for start, stop, fault in self.windows if fault.kind == "power"]
        end = self.environment.timeline.now_ns()
        overlapped = any(
            other is not fault
            and other_start <= (stop or end) + aftermath_s * 1e9
            and start - aftermath_s * 1e9 <= (other_stop or end)
            for start, stop, fault in power
            for other_start, other_stop, other in self.windows
            if other.kind != "clock"
        )
        return Storm(
            kinds=tuple(sorted({fault.kind for _, _, fault in self.windows})),
            power_several=any(len(fault.nodes) > 1 for _, _, fault in power),
            power_overlapped=overlapped,
        )

    async def _start(self, step: Step) -> tuple[Fault | None, Effect]:
        draw = self.seed.child(step.package, str(step.number), "strike").stream()
        fault = step.shape.strike(await self._cluster(), draw)
        if fault is None:
            return None, NOTHING
        effect = await fault.start(self.environment)
        self.active[step.package, step.number] = fault
        if effect.happened:
            self.windows.append((self.environment.timeline.now_ns(), None, fault))
        return fault, effect

    async def _stop(self, step: Step) -> tuple[Fault | None, Effect]:
        key = (step.package, step.number)
        fault = self.active.get(key)
        return (None, NOTHING) if fault is None else (fault, await self._undo(key))

    async def _undo(self, key: tuple[str, int]) -> Effect:
        fault = self.active.pop(key)
        now = self.environment.timeline.now_ns()
        self.windows = [(start, now if other is fault else stop, other) for start, stop, other in self.windows]
        if isinstance(fault, Partition):
            held = {link for other in self.active.values() if isinstance(other, Partition) for link in other.links}
            fault = Partition(tuple(link for link in fault.links if link not in held), fault.shape)
        return await fault.stop(self.environment)

    async def _cluster(self) -> Cluster:
        try:
            roles = await self.environment.timeline.within(ROLES_TIMEOUT_S, self.roles())
        except TimeoutError:
            roles = {}
        out = {
            node for fault in self.active.values() if fault.kind in ("kill", "power", "pause") for node in fault.nodes
        }
        return Cluster(groups=self.groups, roles=roles, unavailable=frozenset(out))
