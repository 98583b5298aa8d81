"""Simulated disks: what is durable, and what a loss of power leaves, follows `harness.environments.disk.durability`.

fsync takes time, and may fail (then its bytes never become durable, as on Linux) or lie. `DiskFaults` are the
knobs; they start at none, and impairments turn them (`disk_troubles`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from zlib import crc32

from harness.environments.disk.disk_faults import DiskFaults, DiskTroubles
from harness.environments.disk.durability import Inode, NameChange, NameJournal, survival
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.slow_timers import USUAL, SlowTimers
from harness.seed import Seed
from harness.trace import Trace


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
        self._journal: NameJournal[str, Inode] = NameJournal()

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

    def rename(self, source: str, target: str) -> NameChange[str, Inode]:
        inode = self._names.pop(source)
        replaced = self._names.get(target)
        if replaced is not None and replaced is not inode:
            self._unlink(replaced)
        self._names[target] = inode
        return self._changed(target, inode, source)

    def _changed(self, path: str, inode: Inode | None, renamed_from: str | None = None) -> NameChange[str, Inode]:
        return self._journal.changed(self.loop.now_ns, path, inode, renamed_from=renamed_from)

    def sync_names_until(self, change: NameChange[str, Inode]) -> None:
        """Make one change durable, and with it those before it that concern the same names, but no others."""
        self._journal.sync_until(change)

    def sync_name(self, inode: Inode) -> None:
        """Make the newest name of this file durable."""
        self._journal.sync(inode)

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
        if inode is None or not inode.flip(offset, mask):
            return False
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
        inode.cut_short(size)
        self.trace.event(self.loop.now_ns, self.name, "cut-short", f"{path} {size}")

    def image(self) -> Mapping[str, bytes]:
        """A copy of all files, as processes see them."""
        return {path: bytes(inode.content) for path, inode in sorted(self._names.items())}

    def put_back(self, image: Mapping[str, bytes]) -> None:
        """The disk holds just these files, durably."""
        self._names.clear()
        self._journal.clear()
        for path, content in image.items():
            self._names[path] = inode = Inode()
            inode.content[:] = inode.durable[:] = content
        self._journal.durable.update(self._names)
        self.used_bytes = sum(map(len, image.values()))
        self.trace.event(self.loop.now_ns, self.name, "put-back", f"{len(image)} {self.used_bytes}")

    # Loss of power --------------------------------------------------------------------------------------------

    def lose_power(self) -> str:
        """Keep the platter and a seeded part of what had not reached it. Returns what happened, in words."""
        self._power_losses += 1
        draw = self._seed.child("disk", self.name, "power", str(self._power_losses)).stream()
        now_ns = self.loop.now_ns
        surviving = survival(draw)
        lost_names = self._journal.lose_power(draw, surviving, now_ns)
        lost_bytes = 0
        inodes: dict[Inode, None] = dict.fromkeys(inode for _, inode in sorted(self._journal.durable.items()))
        for inode in inodes:
            lost_bytes += inode.lose_power(draw, surviving)
            inode.linked = True
        self._names = dict(sorted(self._journal.durable.items()))
        self.used_bytes = sum(len(inode.content) for inode in inodes)
        image = 0
        for path, inode in self._names.items():
            image = crc32(inode.content, crc32(path.encode(), image))
        lost = f"{lost_bytes} unsynced bytes and {lost_names} names lost"
        self.trace.event(now_ns, self.name, "power-image", f"{lost} {image:08x}")
        return lost
