"""Simulated disks: written is not durable.

A file has the content that processes see and the content that is on the platter. Every write is put down as
an operation until an fsync carries it over, so an fsync costs what was written since the last one and nothing
more. A killed process leaves what it wrote. A loss of power leaves the platter and, of every operation that
was not carried over, whatever the seed says: all, nothing, or pieces torn at any byte; lost pieces in the
middle read as zeros. Names are operations of the directory and fare the same way.

fsync takes time, and may fail (then its bytes never become durable, as on Linux) or lie. `DiskFaults` are the
knobs; they start at none, and impairments turn them (`disk_troubles`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from harness.environments.simulated.disk_troubles import DiskFaults, DiskTroubles
from harness.environments.simulated.loop import NANOSECONDS, VirtualTimeLoop
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.slow_timers import USUAL, SlowTimers
from harness.seed import Seed
from harness.trace import Trace

JOURNAL_COMMIT_NS: Final = 30 * NANOSECONDS
"""Names older than this have reached the journal by themselves."""
MAX_PENDING_NAMES: Final = 10_000
MAX_PENDING_WRITES: Final = 100_000
"""A file with more unsynced writes than this has half of them written back by the kernel."""


class Inode:
    """A file's bytes, seen and durable, and the operations between the two."""

    __slots__ = ("carried", "content", "durable", "linked", "operations")

    def __init__(self) -> None:
        self.content = bytearray()
        self.linked = True
        """It has a name, so it takes room."""
        self.durable = bytearray()
        self.operations: list[tuple[int, bytes | None]] = []
        """(offset, data) for a write, (size, None) for a truncation, oldest first."""
        self.carried = 0
        """How many operations were carried over or dropped so far, so that positions in the list can be named."""

    def carry(self, upto: int) -> None:
        """Make durable what came before operation number `upto`."""
        count = upto - self.carried
        if count <= 0:
            return
        durable = self.durable
        for offset, data in self.operations[:count]:
            apply(durable, offset, data)
        del self.operations[:count]
        self.carried = upto

    def drop(self, upto: int) -> int:
        """Forget the operations before number `upto`; returns how many bytes they would have written."""
        count = upto - self.carried
        if count <= 0:
            return 0
        length = sum(len(data) for _, data in self.operations[:count] if data is not None)
        del self.operations[:count]
        self.carried = upto
        return length


def apply(content: bytearray, offset: int, data: bytes | None) -> None:
    size = len(content)
    if data is None:
        if offset < size:
            del content[offset:]
        elif offset > size:
            content.extend(bytes(offset - size))
    elif offset == size:
        content += data
    else:
        if offset > size:
            content.extend(bytes(offset - size))
        content[offset : offset + len(data)] = data


@dataclass(frozen=True, slots=True, eq=False)
class _NameChange:
    """An operation of the directory that is not durable yet: `path` now means `inode` (None: nothing)."""

    time_ns: int
    path: str
    inode: Inode | None
    renamed_from: str | None = None

    def names(self) -> set[str]:
        return {self.path} if self.renamed_from is None else {self.path, self.renamed_from}


class DiskStore:
    """The disk of a machine: survives the processes that use it."""

    def __init__(self, name: str, loop: VirtualTimeLoop, seed: Seed, regime: Regime, trace: Trace) -> None:
        self.name = name
        self.loop = loop
        self.trace = trace
        self.faults = DiskFaults()
        self.troubles = DiskTroubles(self.faults, on_pace=self._change_pace)
        self.used_bytes = 0
        self._regime = regime
        self._seed = seed
        self._fsync_random = seed.child("disk", name, "fsync").stream()
        self._fault_random = seed.child("disk", name, "faults").stream()
        self._slow_syncs = SlowTimers(loop)
        self._power_losses = 0
        self._names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._changes: list[_NameChange] = []

    # Names ----------------------------------------------------------------------------------------------------

    def lookup(self, path: str) -> Inode | None:
        return self._names.get(path)

    def paths(self) -> Iterable[str]:
        return self._names.keys()

    def create(self, path: str) -> Inode:
        inode = Inode()
        self._names[path] = inode
        self._changed(path, inode)
        return inode

    def remove(self, path: str) -> None:
        self._unlink(self._names.pop(path))
        self._changed(path, None)

    def _unlink(self, inode: Inode) -> None:
        inode.linked = False
        self.used_bytes -= len(inode.content)

    def rename(self, source: str, target: str) -> _NameChange:
        inode = self._names.pop(source)
        replaced = self._names.get(target)
        if replaced is not None and replaced is not inode:
            self._unlink(replaced)
        self._names[target] = inode
        return self._changed(target, inode, source)

    def _changed(self, path: str, inode: Inode | None, renamed_from: str | None = None) -> _NameChange:
        now_ns = self.loop.now_ns
        change = _NameChange(now_ns, path, inode, renamed_from)
        changes = self._changes
        changes.append(change)
        old = 0
        while old < len(changes) and (
            changes[old].time_ns < now_ns - JOURNAL_COMMIT_NS or len(changes) - old > MAX_PENDING_NAMES
        ):
            self._commit(changes[old])
            old += 1
        del changes[:old]
        return change

    def _commit(self, change: _NameChange) -> None:
        if change.renamed_from is not None:
            self._durable_names.pop(change.renamed_from, None)
        if change.inode is None:
            self._durable_names.pop(change.path, None)
        else:
            self._durable_names[change.path] = change.inode

    def sync_names_until(self, change: _NameChange) -> None:
        """Make one change durable, and with it those before it that concern the same names, but no others."""
        if change not in self._changes:
            return
        index = self._changes.index(change)
        names = change.names()
        concerned: list[_NameChange] = []
        others: list[_NameChange] = []
        for pending in reversed(self._changes[: index + 1]):
            if names.isdisjoint(pending.names()):
                others.append(pending)
            else:
                names |= pending.names()
                concerned.append(pending)
        for pending in reversed(concerned):
            self._commit(pending)
        self._changes[: index + 1] = reversed(others)

    def sync_name(self, inode: Inode) -> None:
        """Make the newest name of this file durable."""
        for change in reversed(self._changes):
            if change.inode is inode:
                self.sync_names_until(change)
                return

    # Time and faults ------------------------------------------------------------------------------------------

    def after_fsync(self, done: Callable[[], None]) -> None:
        """Run `done` once the platter would have what was written until now: what a slow disk has under way becomes
        quicker with it."""
        work_ns, factor = self.fsync_ns(), self.faults.fsync_slow_factor
        timer = self.loop.kernel_at(self.loop.now_ns + max(1, int(work_ns * factor)), done)
        if factor != USUAL:
            self._slow_syncs.follow(timer, work_ns, factor)

    def _change_pace(self) -> None:
        self._slow_syncs.change_pace(self.faults.fsync_slow_factor)

    def fsync_ns(self) -> float:
        """What it takes where the disk is not slow."""
        draw = self._fsync_random
        duration_ns = self._regime.fsync_ms * 1e6 * (0.5 + draw.expovariate(2.0))
        if self._regime.fsync_slow_probability and draw.random() < self._regime.fsync_slow_probability:
            duration_ns *= self._regime.fsync_slow_factor
        return duration_ns

    def happens(self, probability: float) -> bool:
        return probability > 0.0 and self._fault_random.random() < probability

    def has_room(self, more: int) -> bool:
        capacity = self.faults.capacity_bytes
        return capacity is None or self.used_bytes + more <= capacity

    def rot(self, path: str, offset: int, mask: int = 1) -> bool:
        """Flip bits of one byte, on the platter and in what is seen; returns whether there was such a byte."""
        inode = self._names.get(path)
        if inode is None or not 0 <= offset < len(inode.content) or not mask:
            return False
        inode.content[offset] ^= mask
        if offset < len(inode.durable):
            inode.durable[offset] ^= mask
        self.trace.event(self.loop.now_ns, self.name, "rot", f"{path} {offset}")
        return True

    # Damage to what lies there --------------------------------------------------------------------------------

    def files(self) -> list[tuple[str, Inode]]:
        """Those that have content, by path."""
        return sorted((path, inode) for path, inode in self._names.items() if inode.content)

    def cut_short(self, path: str, size: int) -> None:
        """The file ends after so many bytes, on the platter as well."""
        inode = self._names[path]
        if inode.linked:
            self.used_bytes -= len(inode.content) - size
        inode.drop(inode.carried + len(inode.operations))
        del inode.content[size:]
        inode.durable = bytearray(inode.content)
        self.trace.event(self.loop.now_ns, self.name, "cut-short", f"{path} {size}")

    def image(self) -> Mapping[str, bytes]:
        """A copy of all files, as processes see them."""
        return {path: bytes(inode.content) for path, inode in sorted(self._names.items())}

    def put_back(self, image: Mapping[str, bytes]) -> None:
        """The disk holds just these files, durably."""
        self._changes.clear()
        self._names.clear()
        for path, content in image.items():
            self._names[path] = inode = Inode()
            inode.content[:] = inode.durable[:] = content
        self._durable_names = dict(self._names)
        self.used_bytes = sum(map(len, image.values()))
        self.trace.event(self.loop.now_ns, self.name, "put-back", f"{len(image)} {self.used_bytes}")

    # Loss of power --------------------------------------------------------------------------------------------

    def lose_power(self) -> str:
        """Keep the platter and a seeded part of what had not reached it. Returns what happened, in words."""
        self._power_losses += 1
        draw = self._seed.child("disk", self.name, "power", str(self._power_losses)).stream()
        now_ns = self.loop.now_ns
        survival = draw.choice((0.0, 1.0, draw.random(), draw.random()))
        lost_names = 0
        for change in self._changes:
            if change.time_ns < now_ns - JOURNAL_COMMIT_NS or draw.random() < survival:
                self._commit(change)
            else:
                lost_names += 1
        self._changes.clear()
        lost_bytes = 0
        inodes: dict[Inode, None] = dict.fromkeys(inode for _, inode in sorted(self._durable_names.items()))
        for inode in inodes:
            lost_bytes += _survive(inode, draw, survival)
            inode.linked = True
        self._names = dict(sorted(self._durable_names.items()))
        self.used_bytes = sum(len(inode.content) for inode in inodes)
        image = 0
        for path, inode in self._names.items():
            image = crc32(inode.content, crc32(path.encode(), image))
        lost = f"{lost_bytes} unsynced bytes and {lost_names} names lost"
        self.trace.event(now_ns, self.name, "power-image", f"{lost} {image:08x}")
        return lost


def _survive(inode: Inode, draw: random.Random, survival: float) -> int:
    """Turn a file into what the platter holds after the loss of power; returns how many bytes were lost."""
    lost = 0
    durable = inode.durable
    for offset, data in inode.operations:
        if data is None:
            if draw.random() < survival:
                apply(durable, offset, None)
            continue
        kept = 0
        for start, end in _pieces(len(data), draw):
            if draw.random() < survival:
                apply(durable, offset + start, data[start:end])
                kept += end - start
        lost += len(data) - kept
    inode.operations.clear()
    inode.content = bytearray(durable)
    return lost


def _pieces(length: int, draw: random.Random) -> list[tuple[int, int]]:
    """A write as the device may take it: whole, or torn at up to three places, at any byte."""
    tears = draw.choice((0, 1, 1, 2, 3)) if length > 1 else 0
    cuts = sorted({draw.randrange(1, length) for _ in range(tears)})
    edges = [0, *cuts, length]
    return list(itertools.pairwise(edges))
