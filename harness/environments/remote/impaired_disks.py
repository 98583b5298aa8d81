"""What is wrong with the disks of nodes that run somewhere else, where these are disks of ours.

Files that the harness itself writes before each boot are spared by damage: they are no data of the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.environments.disk.disk_faults import DISK_IMPAIRMENTS, DiskImpairment, in_words
from harness.environments.environment import Timeline
from harness.environments.impairment import BitRot, Corruption, LostDisk, NodeImpairment, OldDisk, ShortFiles
from harness.environments.remote.machines import NodeDisk

DAMAGE = (BitRot, Corruption, ShortFiles, LostDisk, OldDisk)
OF_DISKS: tuple[type[NodeImpairment], ...] = (*DISK_IMPAIRMENTS, *DAMAGE)


class NodeWithDisk(Protocol):
    """A node as disks' faults see it. Everything blocks."""

    name: str

    @property
    def spared(self) -> Sequence[str]:
        """The files that are no data of the node, by their paths on its disk."""

    def begin_trouble(self) -> None:
        """From now on it is no panic if the program ends by itself."""

    def end_trouble(self) -> bool:
        """As it was; whether the program has ended meanwhile, and is to be booted."""


OnDisk = Callable[[NodeWithDisk, NodeDisk], str]


@dataclass(frozen=True, kw_only=True)
class DiskWorld:
    """What these impairments need of the environment; verbs are given several nodes and wait until they are done."""

    timeline: Timeline
    kill: Callable[[Sequence[str]], Awaitable[Any]]
    boot: Callable[[Sequence[str]], Awaitable[Any]]
    on_disks: Callable[[Sequence[str], OnDisk], Awaitable[dict[str, str]]]
    """Do something to the disk of each of these nodes; what, in words."""


class DiskTreatment(Protocol):
    async def begin(self) -> tuple[bool, str]: ...

    async def end(self) -> str: ...

    async def cancel(self) -> None:
        """End what still runs of it; nothing is undone."""


def disk_treatment(world: DiskWorld, nodes: tuple[str, ...], impairment: NodeImpairment) -> DiskTreatment:
    match impairment:
        case BitRot() | Corruption():
            return _Rot(world, nodes, impairment)
        case ShortFiles():
            return _Damage(world, nodes, _short_files(impairment))
        case LostDisk():
            return _Damage(world, nodes, lambda node, disk: disk.put_back("", node.spared))
        case OldDisk():
            return _OldDisk(world, nodes, impairment)
    assert isinstance(impairment, DISK_IMPAIRMENTS)
    return _Trouble(world, nodes, impairment)


def _listed(words: dict[str, str]) -> str:
    return ", ".join(f"{name}: {said}" for name, said in words.items() if said)


def _short_files(short: ShortFiles) -> OnDisk:
    def cut(node: NodeWithDisk, disk: NodeDisk) -> str:
        draw = random.Random(f"{short.draw} {node.name}").getrandbits(32)
        return disk.cut_short(short.files, draw, node.spared) or "no file to cut short"

    return cut


class _Trouble:
    """Calls fail or take long, while the program runs."""

    def __init__(self, world: DiskWorld, nodes: tuple[str, ...], impairment: DiskImpairment) -> None:
        self._world, self._nodes, self._impairment = world, nodes, impairment

    async def begin(self) -> tuple[bool, str]:
        def impair(node: NodeWithDisk, disk: NodeDisk) -> str:
            node.begin_trouble()
            disk.impair(self._impairment)
            return ""

        await self._world.on_disks(self._nodes, impair)
        return bool(self._nodes), f"{', '.join(self._nodes)}: {in_words(self._impairment)}"

    async def end(self) -> str:
        """Boot the nodes that ended by themselves meanwhile, as an operator does who has mended a disk."""
        down: list[str] = []

        def relieve(node: NodeWithDisk, disk: NodeDisk) -> str:
            words = disk.relieve(self._impairment)
            if node.end_trouble():
                down.append(node.name)
                words += ", booted"
            return f"{node.name}{words}"

        words = await self._world.on_disks(self._nodes, relieve)
        if down:
            await self._world.boot(sorted(down))
        return ", ".join(words.values())

    async def cancel(self) -> None:
        pass


class _Rot:
    """Once, and for good."""

    def __init__(self, world: DiskWorld, nodes: tuple[str, ...], how: BitRot | Corruption) -> None:
        self._world, self._nodes, self._how = world, nodes, how

    async def begin(self) -> tuple[bool, str]:
        words = _listed(await self._world.on_disks(self._nodes, lambda node, disk: disk.rot(self._how, node.spared)))
        return bool(words), words or "there was nothing to impair"

    async def end(self) -> str:
        return ", ".join(self._nodes)

    async def cancel(self) -> None:
        pass


class _Damage:
    """Nodes are killed, their disks are damaged, and in the end they are booted."""

    def __init__(self, world: DiskWorld, nodes: tuple[str, ...], damage: OnDisk) -> None:
        self._world, self._nodes, self._damage = world, nodes, damage

    async def begin(self) -> tuple[bool, str]:
        await self._world.kill(self._nodes)
        return bool(self._nodes), _listed(await self._world.on_disks(self._nodes, self._damage))

    async def end(self) -> str:
        await self._world.boot(self._nodes)
        return f"booted {', '.join(self._nodes)}"

    async def cancel(self) -> None:
        pass


class _OldDisk:
    """Copies at first, which are put back later."""

    def __init__(self, world: DiskWorld, nodes: tuple[str, ...], old: OldDisk) -> None:
        self._world, self._nodes, self._old = world, nodes, old
        self._name = f"copy {id(self)}"
        self._ending = asyncio.Event()
        self._task: asyncio.Task[str] | None = None

    async def begin(self) -> tuple[bool, str]:
        copied = await self._world.on_disks(self._nodes, lambda _, disk: f"{disk.copy(self._name)} files copied")
        self._task = asyncio.create_task(self._put_back())
        return bool(self._nodes), f"{_listed(copied)}, to be put back after {self._old.after_s:g} s"

    async def _put_back(self) -> str:
        since_ns = self._world.timeline.now_ns()
        with contextlib.suppress(TimeoutError):
            await self._world.timeline.within(self._old.after_s, self._ending.wait())
        await self._world.kill(self._nodes)
        words = _listed(
            await self._world.on_disks(self._nodes, lambda node, disk: disk.put_back(self._name, node.spared))
        )
        return f"{words}, as {(self._world.timeline.now_ns() - since_ns) / 1e9:.1f} s before"

    async def end(self) -> str:
        assert self._task is not None, "begun before"
        self._ending.set()
        words = await self._task
        await self._world.boot(self._nodes)
        return f"{words}; booted {', '.join(self._nodes)}"

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
