"""What of a disk survives a loss of power: written is not durable.

A file has the content that processes see and the content that is on the platter. Every write is put down as
an operation until an fsync carries it over, so an fsync costs what was written since the last one and nothing
more. A killed process leaves what it wrote. A loss of power leaves the platter and, of every operation that
was not carried over, whatever the draw says: all, nothing, or pieces torn at any byte; lost pieces in the
middle read as zeros. Names are operations of the directory and fare the same way.

Simulated disks and those of containers follow these rules. Nothing here knows of time but what it is given, and
nothing of processes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

JOURNAL_COMMIT_NS: Final = 30 * 10**9
"""Names older than this have reached the journal by themselves."""
MAX_PENDING_NAMES: Final = 10_000
MAX_PENDING_WRITES: Final = 100_000
"""A file with more unsynced writes than this has half of them written back by the kernel."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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

    @property
    def written(self) -> int:
        """The number of the next operation."""
        return self.carried + len(self.operations)

    def change(self, offset: int, data: bytes | None) -> None:
        """One more operation, seen at once."""
        apply(self.content, offset, data)
        self.operations.append((offset, data))
        if len(self.operations) > MAX_PENDING_WRITES:
            self.carry(self.carried + MAX_PENDING_WRITES // 2)

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

    def flip(self, offset: int, mask: int) -> bool:
        """Flip bits of one byte, on the platter and in what is seen; returns whether there was such a byte."""
        if not 0 <= offset < len(self.content) or not mask:
            return False
        self.content[offset] ^= mask
        if offset < len(self.durable):
            self.durable[offset] ^= mask
        return True

    def cut_short(self, size: int) -> None:
        """It ends after so many bytes, on the platter as well."""
        self.drop(self.written)
        del self.content[size:]
        self.durable = bytearray(self.content)

    def lose_power(self, draw: random.Random, survival: float) -> int:
        """Become what the platter holds after the loss of power; returns how many bytes were lost."""
        lost = 0
        durable = self.durable
        for offset, data in self.operations:
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
        self.carried = self.written
        self.operations.clear()
        self.content = bytearray(durable)
        return lost


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


def _pieces(length: int, draw: random.Random) -> list[tuple[int, int]]:
    """A write as the device may take it: whole, or torn at up to three places, at any byte."""
    tears = draw.choice((0, 1, 1, 2, 3)) if length > 1 else 0
    cuts = sorted({draw.randrange(1, length) for _ in range(tears)})
    edges = [0, *cuts, length]
    return list(itertools.pairwise(edges))


def survival(draw: random.Random) -> float:
    """With what probability each operation survives one loss of power."""
    return draw.choice((0.0, 1.0, draw.random(), draw.random()))


@dataclass(frozen=True, slots=True, eq=False)
class NameChange(Generic[K, V]):
    """An operation of a directory that is not durable yet: `name` now means `inode` (None: nothing)."""

    time_ns: int
    name: K
    inode: V | None
    renamed_from: K | None = None
    removed: V | None = None
    """What had the name until then; that it has others is to be durable before this is."""

    def names(self) -> set[K]:
        return {self.name} if self.renamed_from is None else {self.name, self.renamed_from}


class NameOrder(Enum):
    """In which order changes of names reach the platter."""

    JOURNALLED = "journalled"
    """Their own, as in the journals of ext4 and xfs: none survives without all before it."""
    ANY = "any"
    """Independently of each other, but for what an entry depends on, as POSIX allows."""


class NameJournal(Generic[K, V]):
    """What files are called on the platter, and the changes of that which have not reached it."""

    __slots__ = ("_holder", "_order", "changes", "durable")

    def __init__(self, holder: Callable[[K], V | None] = lambda _: None, *, order: NameOrder = NameOrder.ANY) -> None:
        """`holder`: the directory that a name is in, where directories are kept by this journal as well."""
        self._holder, self._order = holder, order
        self.durable: dict[K, V] = {}
        self.changes: list[NameChange[K, V]] = []

    def changed(
        self, now_ns: int, name: K, inode: V | None, *, renamed_from: K | None = None, removed: V | None = None
    ) -> NameChange[K, V]:
        """Put down what processes see from now on. What is old has reached the platter."""
        change = NameChange(now_ns, name, inode, renamed_from, removed)
        changes = self.changes
        changes.append(change)
        old = 0
        while old < len(changes) and (
            changes[old].time_ns < now_ns - JOURNAL_COMMIT_NS or len(changes) - old > MAX_PENDING_NAMES
        ):
            self._commit(changes[old])
            old += 1
        del changes[:old]
        return change

    def _commit(self, change: NameChange[K, V]) -> None:
        if change.renamed_from is not None:
            self.durable.pop(change.renamed_from, None)
        if change.inode is None:
            self.durable.pop(change.name, None)
        else:
            self.durable[change.name] = change.inode

    def sync_until(self, change: NameChange[K, V]) -> None:
        """Make one change durable, and with it those before it on which it rests."""
        if change not in self.changes:
            return
        index = self.changes.index(change)
        wanted = [False] * index + [True]
        self._with_foundations(wanted)
        earlier = self.changes[: index + 1]
        for pending, is_wanted in zip(earlier, wanted, strict=True):
            if is_wanted:
                self._commit(pending)
        self.changes[: index + 1] = [one for one, is_wanted in zip(earlier, wanted, strict=True) if not is_wanted]

    def _with_foundations(self, wanted: list[bool]) -> None:
        """Mark, of the oldest changes, also those on which the marked ones rest: of the same names; which gave other
        names to what loses one; which gave a name to the directory that something moves to; which emptied a directory
        that goes. In a journal each rests on all before it."""
        if self._order is NameOrder.JOURNALLED:
            newest = max((place for place, is_wanted in enumerate(wanted) if is_wanted), default=-1)
            wanted[: newest + 1] = [True] * (newest + 1)
            return
        names: set[K] = set()
        named: set[int] = set()
        emptied: set[int] = set()
        for place in reversed(range(len(wanted))):
            change = self.changes[place]
            holders = {id(self._holder(name)) for name in change.names()}
            if (
                wanted[place]
                or id(change.inode) in named
                or not names.isdisjoint(change.names())
                or not emptied.isdisjoint(holders)
            ):
                wanted[place] = True
                names |= change.names()
                if change.inode is not None and (holder := self._holder(change.name)) is not None:
                    named.add(id(holder))
                if change.removed is not None:
                    named.add(id(change.removed))
                    emptied.add(id(change.removed))

    def sync(self, inode: V) -> None:
        """Make the newest name of this file durable."""
        for change in reversed(self.changes):
            if change.inode is inode:
                self.sync_until(change)
                return

    def lose_power(self, draw: random.Random, survival: float, now_ns: int) -> int:
        """Keep what is durable, what is old, and of the rest what the draw says; returns how many changes were lost."""
        old = now_ns - JOURNAL_COMMIT_NS
        kept = [change.time_ns < old for change in self.changes]
        if self._order is NameOrder.JOURNALLED:
            reached = draw.randint(0, len(kept))
            if survival in (0.0, 1.0):
                reached = round(survival * len(kept))
            kept[:reached] = [True] * reached
        else:
            kept = [is_old or draw.random() < survival for is_old in kept]
        self._with_foundations(kept)
        for change, is_kept in zip(self.changes, kept, strict=True):
            if is_kept:
                self._commit(change)
        self.changes.clear()
        return kept.count(False)

    def settle(self) -> None:
        """Make all changes durable."""
        for change in self.changes:
            self._commit(change)
        self.changes.clear()

    def clear(self) -> None:
        """Nothing has a name."""
        self.changes.clear()
        self.durable.clear()
