"""What is wrong with a disk of ours now, as knobs, and the impairments that turn them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from harness.environments.disk.durability import Inode
from harness.environments.impairment import DiskErrors, FailingFsync, FullDisk, MisdirectedWrites, SlowDisk

DiskImpairment = SlowDisk | FailingFsync | DiskErrors | FullDisk | MisdirectedWrites
DISK_IMPAIRMENTS: Final = (SlowDisk, FailingFsync, DiskErrors, FullDisk, MisdirectedWrites)
MOST_NAMED: Final = 20
"""So many of the calls that an impairment struck are named."""


def in_words(impairment: DiskImpairment) -> str:
    is_for_good = isinstance(impairment, FailingFsync) and impairment.most is None
    wrong = {
        SlowDisk: "an fsync takes {0.factor:g} times as long",
        FailingFsync: "every fsync fails" if is_for_good else "fsyncs that will fail: {0.most}",
        DiskErrors: "{0.reads:.1%} of reads and {0.writes:.1%} of writes fail",
        FullDisk: "room for {0.room_bytes} bytes more",
        MisdirectedWrites: "one write in {0.one_in} goes where the write before it went",
    }
    return wrong[type(impairment)].format(impairment)


@dataclass(slots=True, kw_only=True)
class DiskFaults:
    """What is wrong with a disk now. Mutable: the nemesis turns these while the test runs."""

    capacity_bytes: int | None = None
    fsync_slow_factor: float = 1.0
    fsync_error_probability: float = 0.0
    fsync_lie_probability: float = 0.0
    read_error_probability: float = 0.0
    write_error_probability: float = 0.0
    misdirects_writes: bool = False


@dataclass(slots=True, eq=False)
class DiskTrouble:
    """One impairment, and which calls it struck: let fail, or misdirected."""

    impairment: DiskImpairment
    draw: random.Random
    capacity_bytes: int | None = None
    struck: int = 0
    named: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return (
            isinstance(self.impairment, FailingFsync)
            and self.impairment.most is not None
            and self.struck >= self.impairment.most
        )

    def misdirects(self) -> bool:
        """Whether it strikes one more write that it can strike."""
        return isinstance(self.impairment, MisdirectedWrites) and self.draw.randrange(self.impairment.one_in) == 0

    def words(self) -> str:
        if isinstance(self.impairment, SlowDisk):
            return ""
        what = "writes misdirected" if isinstance(self.impairment, MisdirectedWrites) else "calls failed"
        more = f", and {self.struck - MOST_NAMED} more" if self.struck > MOST_NAMED else ""
        return f" ({self.struck} {what}{': ' if self.named else ''}{', '.join(self.named)}{more})"


class DiskTroubles:
    """Impairments of one disk, oldest first; together they turn its knobs."""

    def __init__(self, faults: DiskFaults, on_pace: Callable[[], None]) -> None:
        """`on_pace` runs when the disk has become slower or quicker."""
        self._faults = faults
        self._on_pace = on_pace
        self._active: list[DiskTrouble] = []
        self._went: dict[Inode, tuple[int, int]] = {}
        """Where the last write of each file went, and how long it was, while writes are misdirected."""

    def __bool__(self) -> bool:
        return bool(self._active)

    def add(self, impairment: DiskImpairment, used_bytes: int) -> None:
        trouble = DiskTrouble(impairment, random.Random(getattr(impairment, "draw", 0)))
        if isinstance(impairment, FullDisk):
            trouble.capacity_bytes = used_bytes + impairment.room_bytes
        self._active.append(trouble)
        self._turn(type(impairment))

    def take(self, impairment: DiskImpairment) -> DiskTrouble | None:
        """Take one such impairment away; None if there is none."""
        for trouble in self._active:
            if trouble.impairment == impairment:
                self._active.remove(trouble)
                self._turn(type(impairment))
                return trouble
        return None

    def place_of(self, inode: Inode, offset: int, length: int) -> int:
        """Where so many bytes go that are written at this offset of a file: within it, if it is another place."""
        if not self._faults.misdirects_writes:
            return offset
        place, before = self._went.get(inode, (offset, 0))
        may_strike = before == length and place != offset and place + length <= len(inode.content)
        # Each draws of every such write, so that taking one away leaves the others as they are.
        if not may_strike or not any([trouble.misdirects() for trouble in self._active]):
            place = offset
        self._went[inode] = place, length
        return place

    def struck(self, kind: type[DiskImpairment], call: str) -> None:
        """Impairments of this kind struck a call: that is put down to the oldest, of full disks to the fullest."""
        to_blame = [each for each in self._active if isinstance(each.impairment, kind) and not each.is_over]
        if to_blame:
            trouble = min(to_blame, key=lambda each: each.capacity_bytes or 0)
            trouble.struck += 1
            if len(trouble.named) < MOST_NAMED:
                trouble.named.append(call)
            self._turn(kind)

    def _turn(self, kind: type[DiskImpairment]) -> None:
        """Set the knobs of this kind to what its impairments come to."""
        faults = self._faults
        active = [trouble for trouble in self._active if not trouble.is_over]
        now = [trouble.impairment for trouble in active]
        if kind is SlowDisk:
            faults.fsync_slow_factor = math.prod(each.factor for each in now if isinstance(each, SlowDisk))
            self._on_pace()
        elif kind is FailingFsync:
            faults.fsync_error_probability = float(any(isinstance(each, FailingFsync) for each in now))
        elif kind is DiskErrors:
            errors = [each for each in now if isinstance(each, DiskErrors)]
            faults.read_error_probability = 1.0 - math.prod(1.0 - each.reads for each in errors)
            faults.write_error_probability = 1.0 - math.prod(1.0 - each.writes for each in errors)
        elif kind is MisdirectedWrites:
            faults.misdirects_writes = any(isinstance(each, MisdirectedWrites) for each in now)
            if not faults.misdirects_writes:
                self._went.clear()
        else:
            full = [trouble.capacity_bytes for trouble in active if trouble.capacity_bytes is not None]
            faults.capacity_bytes = min(full, default=None)
