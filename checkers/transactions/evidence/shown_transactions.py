"""The transactions that an explanation is about, with what they wrote and what their reads showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from checkers.api.plan import CheckRequest, Engine
from checkers.causal.spans import transactions
from checkers.kernels.columns import INFO, NONE
from checkers.transactions.history.micro_operations import APPEND, R, micro_operations

Value = int | tuple[int, ...] | None


@dataclass(frozen=True, kw_only=True)
class ShownTransaction:
    index: int
    """The history index of its invocation."""
    process: int
    indefinite: bool = False
    operations: tuple[tuple[int, str, Value], ...] = ()
    """(position in FUNCTIONS, key, value or list)."""

    def written(self, key: str) -> int | None:
        """Its last write of the key."""
        found = [value for f, of, value in self.operations if f != R and of == key]
        return found[-1] if found and isinstance(found[-1], int) else None

    def wrote(self, key: str) -> str:
        value = self.written(key)
        return f"appended {value} to {key}" if self.appends_to(key) else f"wrote {key} = {value}"

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for _, key, _ in self.operations)

    def appends_to(self, key: str | None) -> bool:
        return any(f == APPEND and of == key for f, of, _ in self.operations)

    def read(self, key: str, value: int | None) -> Value:
        """A read of the key by this transaction: one that shows this value, or ends in it, if there is one; else one in
        which it occurs; else the first."""
        reads = [shown for f, of, shown in self.operations if f == R and of == key]
        ending = (one for one in reads if (one[-1:] == (value,) if isinstance(one, tuple) else one == value))
        showing = (one for one in reads if isinstance(one, tuple) and value in one)
        return next(chain(ending, showing, reads), None)


def involved(request: CheckRequest, engine: Engine, indices: Iterable[int]) -> Mapping[int, ShownTransaction]:
    """Transactions by the history indices of their invocations."""
    begun = np.array(sorted(set(indices)), dtype=np.int64)
    if not len(begun):
        return {}
    rows = engine.gather(transactions(request, engine, begun=begun), len(begun))
    return {one.index: one for one in shown_transactions(rows)}


def shown_transactions(spans: pa.Table) -> Iterator[ShownTransaction]:
    """The transactions of a history's rows. The answer to a read that shows none is an empty list, or null."""
    parts = micro_operations(spans["txn"])
    operations: dict[int, list[tuple[int, str, Value]]] = {}
    columns = (parts.transaction.tolist(), parts.f.tolist(), parts.key.to_pylist(), parts.value.tolist())
    nothing = () if (parts.f == APPEND).any() else None
    for row, f, key, value, values in zip(*columns, parts.values.to_pylist(), strict=True):
        shown = tuple(values) if values is not None else nothing if value == NONE else value
        operations.setdefault(row, []).append((f, key, shown))
    for row, span in enumerate(spans.select(["start", "process", "type"]).to_pylist()):
        yield ShownTransaction(
            index=span["start"],
            process=span["process"],
            indefinite=span["type"] == INFO,
            operations=tuple(operations.get(row, ())),
        )
