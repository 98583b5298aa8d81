"""Which findings are legal losses, decided for each by the time at which the thing that it is about was written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.api.plan import Engine
from checkers.history_batches import Source
from checkers.kernels.columns import Int64
from harness.record.excuse import ANY, Excuse

COUNTS = pa.schema([pa.field("bound", pa.int32()), pa.field("rows", pa.int64())])
BOUNDS_LIMIT = 1_000_000
NO_BOUNDS: Int64 = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Excuses:
    """Excuses with numbers; small, passed to every kernel. The span of each is one of operations, or of times, with
    both ends included."""

    of: tuple[Excuse, ...] = ()
    first: Int64 = field(default_factory=NO_BOUNDS.copy)
    last: Int64 = field(default_factory=NO_BOUNDS.copy)
    seen_from: Int64 = field(default_factory=NO_BOUNDS.copy)

    @classmethod
    def by_time(cls, of: Sequence[Excuse]) -> Excuses:
        """The excuses for findings that are placed by their times, in ns."""
        first, last, seen_from = (
            np.array([getattr(one, name) for one in of], dtype=np.int64)
            for name in ("from_ns", "until_ns", "seen_from_ns")
        )
        return cls(of=tuple(of), first=first, last=last, seen_from=seen_from)

    @classmethod
    def by_operation(cls, of: Sequence[Excuse], engine: Engine, history: Source) -> Excuses:
        """The excuses for findings that are placed by the indices of operations."""
        of = [replace(one, anomalies=()) if one.anomalies == (ANY,) else one for one in of]
        if not of:
            return cls()
        bounds = np.array(
            [bound for one in of for bound in (one.from_ns, one.until_ns + 1, one.seen_from_ns)], dtype=np.int64
        )
        rows = engine.mapped(engine.history(history, ("time",)), partial(rows_before, bounds=bounds), COUNTS)
        counted = engine.gather(engine.grouped(rows, ("bound",), total, COUNTS), BOUNDS_LIMIT)
        before = np.zeros(len(bounds), dtype=np.int64)
        before[counted["bound"].to_numpy()] = counted["rows"].to_numpy()
        return cls(of=tuple(of), first=before[::3], last=before[1::3] - 1, seen_from=before[2::3])

    @property
    def keys(self) -> tuple[str, ...]:
        """All that any of them names, in their order."""
        return tuple(sorted({key for one in self.of for key in one.keys}))

    def about(self, *anomalies: str) -> bool:
        """Whether any excuse is for one of these anomalies."""
        return any(name in one.anomalies for one in self.of for name in anomalies)

    def split(
        self,
        anomaly: str,
        begun: Int64,
        ended: Int64,
        at: Sequence[Collection[str]] | None = None,
        seen: Int64 | None = None,
        keys: Sequence[str | None] | None = None,
    ) -> Iterator[tuple[int | None, Int64]]:
        """(number of an excuse, positions of findings for which it is the first that holds); None for findings without
        one. Each finding is about something that began and ended at these times. `at`: the nodes at which each shows,
        if they are known. `seen`: when each has shown, if that is later than its end. `keys`: of what each is about,
        None where that is not known."""
        left = np.arange(len(begun))
        seen = ended if seen is None else seen
        for number, one in enumerate(self.of):
            if (anomaly in one.anomalies or one.anomalies == (ANY,)) and len(left):
                meets = (begun[left] <= self.last[number]) & (ended[left] >= self.first[number])
                meets &= seen[left] >= self.seen_from[number]
                if one.nodes and at is not None:
                    meets &= np.array([not set(one.nodes).isdisjoint(at[place]) for place in left.tolist()], dtype=bool)
                if one.keys and keys is not None:
                    meets &= np.array([keys[place] in (None, *one.keys) for place in left.tolist()], dtype=bool)
                if meets.any():
                    yield number, left[meets]
                    left = left[~meets]
        yield None, left


NO_EXCUSES = Excuses()


def rows_before(batch: pa.Table, *, bounds: Int64) -> pa.Table:
    """Kernel: how many rows of a batch are earlier than each bound."""
    time = np.sort(batch["time"].to_numpy())
    rows = np.searchsorted(time, bounds)
    return pa.table({"bound": np.arange(len(bounds), dtype=np.int32), "rows": rows.astype(np.int64)}, schema=COUNTS)


def total(counts: pa.Table) -> pa.Table:
    """Kernel over the counts of one bound."""
    rows = int(counts["rows"].to_numpy().sum())
    return pa.table({"bound": counts["bound"].slice(0, 1), "rows": pa.array([rows])}, schema=COUNTS)
