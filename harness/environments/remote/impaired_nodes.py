"""What is wrong with nodes that run somewhere else: each impairment is treated from its beginning to its end.

Turns (restarts) are taken here, by tasks of the harness; clocks and processors are changed where the node runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.environments.environment import Timeline
from harness.environments.impairment import (
    KERNEL_IMPAIRMENTS,
    BitRot,
    Corruption,
    KilledProcesses,
    NodeImpairment,
    PausedProcesses,
    RestartLoop,
    RollingRestart,
    ScarceMemory,
    SlowedProcesses,
    SlowNode,
    Strobe,
)
from harness.environments.remote.impaired_disks import DiskWorld, OnDisk, disk_treatment
from harness.environments.remote.machines import Squeezed
from harness.environments.remote.struck_processes import (
    KillingProcesses,
    NodeOfProcesses,
    OneProcess,
    OnNodes,
    PausingProcesses,
    ProcessWorld,
    SlowingProcesses,
)

LEAST_PROCESSOR = 0.01
CALLBACK_OF_NO_LOAD_US = 250.0
"""Callbacks that take so long take half of a processor from the rest."""


@dataclass(frozen=True, kw_only=True)
class World:
    """What impairments need of the environment; verbs are given several nodes and wait until they are done."""

    timeline: Timeline
    kill: Callable[[Sequence[str]], Awaitable[Any]]
    boot: Callable[[Sequence[str]], Awaitable[Any]]
    strobe: Callable[[Sequence[str], Sequence[Strobe]], Awaitable[str]]
    """Let the clocks of nodes flip by all of these; why they do not, or empty."""
    limit_processor: Callable[[Sequence[str], float], Awaitable[str]]
    """Give each node no more than so much of one processor, or as much as there is where it is 0; what is so now."""
    squeeze: Callable[[Sequence[str], float | None], Awaitable[dict[str, Squeezed]]]
    """Leave each node so many MB more; None: as much as there is."""
    throttle: Callable[[str, int, Sequence[int], float], Awaitable[None]]
    unthrottle: Callable[[Sequence[str], int], Awaitable[dict[str, int]]]
    """Both as in `ProcessWorld`."""
    on_disks: Callable[[Sequence[str], OnDisk], Awaitable[dict[str, str]]]
    """The same as in `DiskWorld`."""
    on_nodes: OnNodes


class Treatment(Protocol):
    async def begin(self) -> tuple[bool, str]:
        """Whether anything happened, and what."""

    async def end(self) -> str:
        """Undo it; returns what came of it. Raises HarnessError, also for what failed meanwhile."""

    async def cancel(self) -> None:
        """End what still runs of it, if anything does; nothing is undone."""


class RemoteImpairedNodes:
    def __init__(self, world: World) -> None:
        self._world = world
        self._processes = ProcessWorld(
            kill=world.kill,
            boot=world.boot,
            on_nodes=world.on_nodes,
            throttle=world.throttle,
            unthrottle=world.unthrottle,
        )
        self._numbers = itertools.count(1)
        self._active: list[tuple[NodeImpairment, tuple[str, ...], Treatment]] = []

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(impairment.kind for impairment in TREATED)

    async def impair(self, nodes: Sequence[str], impairment: NodeImpairment) -> tuple[bool, str]:
        treatment = self._treatment(tuple(nodes), impairment)
        if not isinstance(impairment, BitRot | Corruption):
            self._active.append((impairment, tuple(nodes), treatment))
        return await treatment.begin()

    async def relieve(self, nodes: Sequence[str], impairment: NodeImpairment) -> str:
        """What came of one such impairment of just these nodes, which is over now; empty where there was none."""
        for one in self._active:
            if one[:2] == (impairment, tuple(nodes)):
                self._active.remove(one)
                return await one[2].end()
        return ""

    async def stop(self) -> None:
        """End the turns that are still taken; nothing is undone."""
        for _, _, treatment in self._active:
            await treatment.cancel()
        self._active.clear()

    def all_of(self, kind: type[NodeImpairment], node: str) -> list[Any]:
        return [one for one, nodes, _ in self._active if isinstance(one, kind) and node in nodes]

    def _paused(self, node: str) -> set[OneProcess]:
        """The processes of a node that are paused by their names."""
        treatments = [treatment for _, _, treatment in self._active if isinstance(treatment, PausingProcesses)]
        return {process for treatment in treatments for process in treatment.paused(node)}

    def _treatment(self, nodes: tuple[str, ...], impairment: NodeImpairment) -> Treatment:
        world = self._world
        match impairment:
            case RestartLoop():
                return _Turns(nodes, "killed {} times", lambda turns: _restart_loop(world, nodes, impairment, turns))
            case RollingRestart():
                return _Turns(nodes, "restarted {} nodes", lambda turns: _rolling(world, nodes, impairment, turns))
            case Strobe():
                return _Strobing(self, nodes, world)
            case SlowNode():
                return _Slow(self, nodes, world)
            case ScarceMemory():
                return _Scarce(self, nodes, world)
            case KilledProcesses():
                return KillingProcesses(self._processes, nodes, impairment)
            case SlowedProcesses():
                return SlowingProcesses(self._processes, nodes, impairment, next(self._numbers))
            case PausedProcesses():
                return PausingProcesses(self._processes, nodes, impairment, self._paused)
        disks = DiskWorld(timeline=world.timeline, kill=world.kill, boot=world.boot, on_disks=world.on_disks)
        return disk_treatment(disks, nodes, impairment)


TREATED: tuple[type[NodeImpairment], ...] = (RestartLoop, RollingRestart, SlowNode, Strobe, *KERNEL_IMPAIRMENTS)
"""Those that nodes in containers and on machines can have; those of disks, where these are ours, come on top."""


# Restarts


class _Turns:
    """Something done by turns in a task, until the end."""

    def __init__(
        self, nodes: tuple[str, ...], summary: str, course: Callable[[_Turns], Coroutine[Any, Any, None]]
    ) -> None:
        """`summary`: what came of it, with a place for how often."""
        self.count = 0
        self.down: tuple[str, ...] = ()
        self._nodes, self._summary, self._course = nodes, summary, course
        self._begun = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> tuple[bool, str]:
        self._task = asyncio.create_task(self._course(self))
        begun = asyncio.create_task(self._begun.wait())
        await asyncio.wait((self._task, begun), return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if self._task.done():
            self._task.result()
        return bool(self._nodes), f"{', '.join(self._nodes)}, by turns"

    async def struck(self, world: World, nodes: tuple[str, ...]) -> None:
        self.down = nodes
        await world.kill(nodes)
        self.count += 1
        self._begun.set()

    async def mended(self, world: World) -> None:
        await world.boot(self.down)
        self.down = ()

    async def over_within(self, world: World, milliseconds: float) -> bool:
        """Wait for so long, or until the end; whether it has come."""
        with contextlib.suppress(TimeoutError):
            await world.timeline.within(milliseconds / 1e3, self._ending.wait())
        return self._ending.is_set()

    async def end(self) -> str:
        assert self._task is not None, "begun before"
        self._ending.set()
        await self._task
        return f"{', '.join(self._nodes)} ({self._summary.format(self.count)})"

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


async def _restart_loop(world: World, nodes: tuple[str, ...], loop: RestartLoop, turns: _Turns) -> None:
    while True:
        await turns.struck(world, nodes)
        is_over = await turns.over_within(world, loop.down_ms)
        await turns.mended(world)
        if is_over or await turns.over_within(world, loop.up_ms):
            return


async def _rolling(world: World, nodes: tuple[str, ...], rolling: RollingRestart, turns: _Turns) -> None:
    for node in nodes:
        await turns.struck(world, (node,))
        is_over = await turns.over_within(world, rolling.down_ms)
        await turns.mended(world)
        if is_over or await turns.over_within(world, rolling.gap_ms):
            return


# Clocks, processors and memory


class _Strobing:
    """All strobes of a node add up in its clock."""

    def __init__(self, impaired: RemoteImpairedNodes, nodes: tuple[str, ...], world: World) -> None:
        self._impaired, self._nodes, self._world = impaired, nodes, world

    async def begin(self) -> tuple[bool, str]:
        why_not = await self._apply()
        return not why_not, why_not or f"{', '.join(self._nodes)}: wall clocks flip"

    async def end(self) -> str:
        await self._apply()
        return ", ".join(self._nodes)

    async def cancel(self) -> None:
        """The clock goes with the node."""

    async def _apply(self) -> str:
        words = [await self._world.strobe((node,), self._impaired.all_of(Strobe, node)) for node in self._nodes]
        return "; ".join(filter(None, words))


class _Slow:
    """A real program's callbacks and sleeps cannot be stretched one by one: it gets the less of a processor."""

    def __init__(self, impaired: RemoteImpairedNodes, nodes: tuple[str, ...], world: World) -> None:
        self._impaired, self._nodes, self._world = impaired, nodes, world

    async def begin(self) -> tuple[bool, str]:
        return True, await self._apply()

    async def end(self) -> str:
        return await self._apply()

    async def cancel(self) -> None:
        """The limit goes with the node."""

    async def _apply(self) -> str:
        words = []
        for node in self._nodes:
            share = processor_share(self._impaired.all_of(SlowNode, node))
            words.append(f"{node}: {await self._world.limit_processor((node,), share)}")
        return ", ".join(words)


def processor_share(slow: Sequence[SlowNode]) -> float:
    """How much of one processor a node gets that is slowed down so; 0 where it is not."""
    if not slow:
        return 0.0
    share = 1.0
    for one in slow:
        share /= one.stretch * (1.0 + one.callback_us / CALLBACK_OF_NO_LOAD_US)
    return max(LEAST_PROCESSOR, share)


class _Scarce:
    """Of several at once, the one that leaves least counts."""

    def __init__(self, impaired: RemoteImpairedNodes, nodes: tuple[str, ...], world: World) -> None:
        self._impaired, self._nodes, self._world = impaired, nodes, world
        self._names: dict[str, tuple[str, ...]] = {}

    async def begin(self) -> tuple[bool, str]:
        await self._world.on_nodes(self._nodes, _begin_trouble)
        squeezed = await self._apply()
        self._names = {node: one.names for node, one in squeezed.items() if one.names}
        words = (
            f"{node}: no more than {self._left_mb(node):g} MB for what {', '.join(names)} takes from now on"
            for node, names in self._names.items()
        )
        return bool(self._names), ", ".join(words) or "no process that was running"

    async def end(self) -> str:
        squeezed = await self._apply()

        def look(node: NodeOfProcesses) -> bool:
            """Whether it is to be booted."""
            has_ended, killed = node.end_trouble(), squeezed[node.name].killed
            names = self._names.get(node.name, ())
            return has_ended or (killed > 0 and any(node.lacks_process(glob.escape(name)) for name in names))

        down = [node for node, is_down in (await self._world.on_nodes(self._nodes, look)).items() if is_down]
        if down:
            await self._world.kill(down)
            await self._world.boot(down)
        told = (
            f"{node}: the kernel killed {one.killed} processes{', booted' if node in down else ''}"
            for node, one in squeezed.items()
            if node in self._names
        )
        return ", ".join(told)

    async def cancel(self) -> None:
        """The limit goes with the node."""

    async def _apply(self) -> dict[str, Squeezed]:
        squeezed: dict[str, Squeezed] = {}
        for node in self._nodes:
            squeezed |= await self._world.squeeze((node,), self._left_mb(node))
        return squeezed

    def _left_mb(self, node: str) -> float | None:
        return min((one.left_mb for one in self._impaired.all_of(ScarceMemory, node)), default=None)


def _begin_trouble(node: NodeOfProcesses) -> None:
    node.begin_trouble()
