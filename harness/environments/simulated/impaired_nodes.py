"""Impairments of disks, processes and clocks in the simulator: each is applied, read back and removed independently."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.environments.disk.damage import cut_files_short, rot
from harness.environments.disk.disk_faults import DiskImpairment, in_words
from harness.environments.impairment import (
    BitRot,
    Corruption,
    DiskErrors,
    FailingFsync,
    FullDisk,
    HostImpairment,
    LostDisk,
    MisdirectedWrites,
    OldDisk,
    RestartLoop,
    RollingRestart,
    ShortFiles,
    SlowDisk,
    SlowNode,
    Strobe,
)
from harness.environments.simulated.loop import NANOSECONDS, TimerHandle, VirtualTimeLoop
from harness.environments.simulated.process import Machine
from harness.environments.simulated.toggle import Turns


class Node(Protocol):
    """What is done to a node, by the environment."""

    machine: Machine
    life_mended_in: int

    def is_running(self) -> bool: ...

    def is_down_for_its_disk(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class World:
    """What impairments need of the environment."""

    loop: VirtualTimeLoop
    boot: Callable[[Any], None]
    kill: Callable[[Any], None]


class Treatment(Protocol):
    """One impairment of some nodes, from when it is made until its end."""

    words: str
    """What was done."""

    def end(self) -> str:
        """Undo it; returns what came of it, in words."""


class ImpairedNodes:
    """What is wrong with nodes now."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._active: list[tuple[HostImpairment, tuple[str, ...], Treatment]] = []

    def impair(self, nodes: Sequence[Node], impairment: HostImpairment) -> str:
        """What was done to which nodes, in words; empty where nothing was."""
        if not nodes:
            return ""
        if isinstance(impairment, BitRot | Corruption):
            return _rot(nodes, impairment)
        treatment = _treatment(self._world, nodes, impairment)
        self._active.append((impairment, _names(nodes), treatment))
        return treatment.words

    def relieve(self, nodes: Sequence[Node], impairment: HostImpairment) -> str:
        """What came of one such impairment of just these nodes, which is over now; empty where there was none."""
        for one in self._active:
            if one[:2] == (impairment, _names(nodes)):
                self._active.remove(one)
                return one[2].end()
        return ""


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.machine.name for node in nodes)


def _rot(nodes: Sequence[Node], how: BitRot | Corruption) -> str:
    draw = random.Random(how.draw)
    done = [(node.machine.name, rot(node.machine.disk, how, draw)) for node in nodes]
    return ", ".join(f"{name}: {words}" for name, words in done if words)


def _treatment(world: World, nodes: Sequence[Node], impairment: HostImpairment) -> Treatment:
    match impairment:
        case SlowDisk() | FailingFsync() | DiskErrors() | FullDisk() | MisdirectedWrites():
            return _DiskTrouble(world, nodes, impairment)
        case ShortFiles():
            return _Damage(world, nodes, _short_files(impairment))
        case LostDisk():
            return _Damage(world, nodes, _wiped)
        case OldDisk():
            return _OldDisk(world, nodes, impairment)
        case SlowNode():
            return _Slow(nodes, impairment)
        case RestartLoop():
            return _RestartLoop(world, nodes, impairment)
        case RollingRestart():
            return _RollingRestart(world, nodes, impairment)
        case Strobe():
            return _Strobe(world, nodes, impairment)
        case BitRot() | Corruption():
            raise TypeError("bits rot once")


class _DiskTrouble:
    def __init__(self, world: World, nodes: Sequence[Node], impairment: DiskImpairment) -> None:
        self._world, self._nodes, self._impairment = world, nodes, impairment
        for node in nodes:
            node.machine.disk.troubles.add(impairment, node.machine.disk.used_bytes)
        self.words = f"{', '.join(_names(nodes))}: {in_words(impairment)}"

    def end(self) -> str:
        """Boot the nodes that ended because of their disk, as an operator does who has mended it."""
        words = []
        for node in self._nodes:
            trouble = node.machine.disk.troubles.take(self._impairment)
            said = node.machine.name + (trouble.words() if trouble else "")
            node.life_mended_in = node.machine.lives
            if node.is_down_for_its_disk():
                self._world.boot(node)
                said += ", booted"
            words.append(said)
        return ", ".join(words)


class _Damage:
    """Nodes are killed, their disks are damaged, and in the end they are booted."""

    def __init__(self, world: World, nodes: Sequence[Node], damage: Callable[[Machine], str]) -> None:
        self._world, self._nodes = world, nodes
        for node in nodes:
            world.kill(node)
        self.words = ", ".join(f"{node.machine.name}: {damage(node.machine)}" for node in nodes)

    def end(self) -> str:
        return _booted(self._world, self._nodes)


def _booted(world: World, nodes: Sequence[Node]) -> str:
    down = [node for node in nodes if not node.is_running()]
    for node in down:
        world.boot(node)
    return f"booted {', '.join(_names(down))}" if down else "no node was down"


def _short_files(short: ShortFiles) -> Callable[[Machine], str]:
    draw = random.Random(short.draw)
    return lambda machine: cut_files_short(machine.disk, short.files, draw) or "no file to cut short"


def _wiped(machine: Machine) -> str:
    lost = machine.disk.image()
    machine.disk.put_back({})
    return f"{len(lost)} files of {sum(map(len, lost.values()))} bytes lost"


class _OldDisk:
    """Copies at first, which are put back later."""

    def __init__(self, world: World, nodes: Sequence[Node], old: OldDisk) -> None:
        self._world, self._nodes = world, nodes
        self._from_ns = world.loop.now_ns
        self._images: Mapping[str, Mapping[str, bytes]] = {
            node.machine.name: node.machine.disk.image() for node in nodes
        }
        self._put_back = ""
        self._timer: TimerHandle = world.loop.kernel_at(
            self._from_ns + round(old.after_s * NANOSECONDS), self._put_all_back
        )
        copied = [f"{name}: {len(image)} files copied" for name, image in self._images.items()]
        self.words = f"{', '.join(copied)}, to be put back after {old.after_s:g} s"

    def _put_all_back(self) -> None:
        now_ns = self._world.loop.now_ns
        words = []
        for node in self._nodes:
            self._world.kill(node)
            disk = node.machine.disk
            new_bytes = disk.used_bytes
            disk.put_back(self._images[node.machine.name])
            words.append(f"{node.machine.name}: {disk.used_bytes} bytes in the place of {new_bytes}")
        age_s = (now_ns - self._from_ns) / NANOSECONDS
        self._put_back = f"{', '.join(words)}, as {age_s:g} s before, at {now_ns / NANOSECONDS:g} s"

    def end(self) -> str:
        self._timer.cancel()
        if not self._put_back:
            self._put_all_back()
        return f"{self._put_back}; {_booted(self._world, self._nodes)}"


class _Slow:
    def __init__(self, nodes: Sequence[Node], slow: SlowNode) -> None:
        self._nodes, self._slow = nodes, slow
        for node in nodes:
            node.machine.slower(round(slow.callback_us * 1000), slow.stretch)
        self.words = (
            f"{', '.join(_names(nodes))}: a callback takes {slow.callback_us:g} µs, "
            f"sleeps last {slow.stretch:g} times as long"
        )

    def end(self) -> str:
        for node in self._nodes:
            node.machine.faster(round(self._slow.callback_us * 1000), self._slow.stretch)
        return ", ".join(_names(self._nodes))


class _RestartLoop:
    def __init__(self, world: World, nodes: Sequence[Node], loop: RestartLoop) -> None:
        self._nodes = nodes

        def kill() -> None:
            for node in nodes:
                world.kill(node)

        def boot() -> None:
            _booted(world, nodes)

        self._turns = Turns(
            world.loop,
            kill,
            boot,
            on_ns=round(loop.down_ms * 1e6),
            off_ns=round(loop.up_ms * 1e6),
        )
        self.words = f"{', '.join(_names(nodes))}: down for {loop.down_ms:g} ms and up for {loop.up_ms:g} ms by turns"

    def end(self) -> str:
        self._turns.stop()
        return f"{', '.join(_names(self._nodes))} (killed {self._turns.count} times)"


class _RollingRestart:
    """Once through the nodes."""

    def __init__(self, world: World, nodes: Sequence[Node], rolling: RollingRestart) -> None:
        self._world, self._rolling = world, rolling
        self._down: Node | None = None
        self._next = iter(nodes)
        self._done: list[str] = []
        self._timer: TimerHandle | None = None
        self._kill_next()
        self.words = (
            f"{', '.join(_names(nodes))} in turn: down for {rolling.down_ms:g} ms, {rolling.gap_ms:g} ms between two"
        )

    def _after(self, milliseconds: float, step: Callable[[], None]) -> None:
        self._timer = self._world.loop.kernel_at(self._world.loop.now_ns + round(milliseconds * 1e6), step)

    def _kill_next(self) -> None:
        self._down = next(self._next, None)
        if self._down is not None:
            self._world.kill(self._down)
            self._done.append(self._down.machine.name)
            self._after(self._rolling.down_ms, self._boot)

    def _boot(self) -> None:
        if self._down is not None:
            _booted(self._world, (self._down,))
            self._down = None
        self._after(self._rolling.gap_ms, self._kill_next)

    def end(self) -> str:
        if self._timer is not None:
            self._timer.cancel()
        if self._down is not None:
            _booted(self._world, (self._down,))
        return f"restarted {', '.join(self._done)}"


class _Strobe:
    def __init__(self, world: World, nodes: Sequence[Node], strobe: Strobe) -> None:
        offset_ns, period_ns = round(strobe.offset_ms * 1e6), round(strobe.period_ms * 1e6)
        self._nodes = nodes

        def shift(by_ns: int) -> None:
            for node in nodes:
                node.machine.clock.shift(by_ns)

        self._turns = Turns(
            world.loop, lambda: shift(offset_ns), lambda: shift(-offset_ns), on_ns=period_ns, off_ns=period_ns
        )
        self.words = f"{', '.join(_names(nodes))}: {strobe.offset_ms:+g} ms by turns, every {strobe.period_ms:g} ms"

    def end(self) -> str:
        self._turns.stop()
        return f"{', '.join(_names(self._nodes))} (jumped {2 * self._turns.count} times)"
