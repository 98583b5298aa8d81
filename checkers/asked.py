"""Completes the completions of a history with what their invocations asked, once for all checkers.

An operation asks for something and is answered. Its completion may leave out what was asked; if it failed or has an
unknown outcome, it may have something else in that place (`checkers.completions`). Checkers need not know this: each
gets a history in which a completion has, besides its answer, what its invocation asked and its key.

    invoke send {message: 1} on q · fail send null
    becomes
    invoke send {message: 1} on q · fail send {message: 1} on q

A history that is complete already stays as it is. To find that out, some of its columns are read once and sorted by
process, a batch at a time; that takes memory for a batch, and a row for each operation open at its end. Otherwise a
completed copy is written for as long as it is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.completions import CompletionEchoes
from checkers.history_batches import Source, batches, encoded, history_rows, nulls_in
from checkers.kernels.columns import INVOKE, OK, TYPES, Bool, Int32, Int64, codes, whole
from harness.lifetime import scratch
from harness.operation import NEMESIS
from harness.record.history import COLUMNS, MalformedHistory, by_process
from harness.record.history.parquet import parquet_file

PAIRED = ("process", "type", "f")

SHOWN = 200
"""How many characters of a value a reason shows."""


@contextmanager
def in_full(history: Source, repeats: Sequence[CompletionEchoes]) -> Iterator[Source]:
    """The history with completions that have what was asked. Raises MalformedHistory at the first one that contradicts
    its invocation."""
    if not leaves_out(history, repeats):
        yield history
    elif isinstance(history, pa.Table):
        yield encoded(pa.concat_tables(_batches_in_full(history, repeats)).combine_chunks())
    else:
        # Beside the history, where workers of Spark can read it as well.
        beside = history.parent if os.access(history.parent, os.W_OK) else None
        with scratch.directory(beside=beside) as folder:
            path = folder / history.name
            found = _batches_in_full(history, repeats)
            first = next(found)
            with parquet_file(path, first.schema) as writer:
                writer.write_table(first)
                for batch in found:
                    writer.write_table(batch)
            yield path


def leaves_out(history: Source, repeats: Sequence[CompletionEchoes]) -> bool:
    """Whether some completion leaves out what was asked. Raises MalformedHistory, as `in_full` does."""
    by_key = _may_leave_out_keys(history)
    if not repeats and not by_key:
        return False
    columns = dict.fromkeys(
        (*PAIRED, *(("key",) if by_key else ()), *(name for one in repeats for name in one.columns))
    )
    reading = _Reading(functions=_functions(repeats), everything=by_key)
    found = False
    for batch in batches(history, tuple(columns)):
        wrong: list[tuple[int, str]] = []
        for pairs in reading.completed_in(batch):
            wrong += pairs.contradictions(repeats, reading.functions)
            found = found or pairs.leave_out(repeats, reading.functions)
        if wrong:
            index, reason = min(wrong)
            raise MalformedHistory(index, reason, path=history if isinstance(history, Path) else None)
    return found


def _may_leave_out_keys(history: Source) -> bool:
    nulls = nulls_in(history, "key")
    return nulls is None or 0 < nulls < history_rows(history)


def _functions(repeats: Sequence[CompletionEchoes]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f for one in repeats for f in one.functions))


def _batches_in_full(history: Source, repeats: Sequence[CompletionEchoes]) -> Iterator[pa.Table]:
    reading = _Reading(functions=_functions(repeats), everything=True)
    for batch in batches(history, COLUMNS):
        rows, before = in_plain_words(batch), reading.rows
        place = np.arange(rows.num_rows)
        parts: list[pa.Table] = []
        for pairs in reading.completed_in(rows):
            filled = pairs.in_full(repeats, reading.functions)
            if pairs.rows is rows:
                parts.insert(0, filled)
            else:
                place[pairs.at - before] = rows.num_rows + np.arange(len(pairs.at))
                parts.append(filled.take(pa.array(pairs.completed)))
        yield pa.concat_tables(parts).combine_chunks().take(pa.array(place))


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Operations that completed: for each the row of its invocation and that of its completion, in `rows`."""

    rows: pa.Table
    asked: Int64
    completed: Int64
    at: Int64
    """The index in the history of each completion."""
    f: Int32
    """By operation: its place in the functions that are looked at; -1 for others."""
    ended: Int32
    """By completion: its place in TYPES."""

    def contradictions(
        self, repeats: Sequence[CompletionEchoes], functions: tuple[str, ...]
    ) -> Iterator[tuple[int, str]]:
        """(index, reason) of the first contradiction of each kind; `functions` are those that `f` numbers."""
        for one in repeats:
            mine = self._of(one, functions, one.types)
            if len(mine):
                wrong = mine[one.differs(self.rows, self.asked[mine], self.completed[mine])]
                if len(wrong):
                    first = wrong[np.argmin(self.at[wrong])]
                    yield int(self.at[first]), self._reason(int(self.asked[first]), int(self.completed[first]))
        if "key" in self.rows.column_names:
            wanted, said = self._keys()
            other = pc.fill_null(pc.not_equal(wanted, said), False).to_numpy(zero_copy_only=False)
            wrong = np.flatnonzero(other & (self.ended == OK))
            if len(wrong):
                first = wrong[np.argmin(self.at[wrong])]
                f = self.rows["f"][int(self.asked[first])].as_py()
                yield int(self.at[first]), f"{f} completes with key {said[first]}, but was invoked with {wanted[first]}"

    def leave_out(self, repeats: Sequence[CompletionEchoes], functions: tuple[str, ...]) -> bool:
        """Whether a completion leaves out what was asked."""
        if "key" in self.rows.column_names:
            wanted, said = self._keys()
            if np.any(wanted.is_valid().to_numpy(zero_copy_only=False) & ~_equal(wanted, said)):
                return True
        for one in repeats:
            if one.leaves_out is not None:
                mine = self._of(one, functions)
                if len(mine) and one.leaves_out(self.rows, self.asked[mine], self.completed[mine]).any():
                    return True
        return False

    def in_full(self, repeats: Sequence[CompletionEchoes], functions: tuple[str, ...]) -> pa.Table:
        """The rows with completions that have what was asked."""
        itself = np.arange(self.rows.num_rows)
        is_ok = np.zeros(len(itself), dtype=np.bool_)
        is_ok[self.completed[self.ended == OK]] = True
        value, key = whole(self.rows["value"]), whole(self.rows["key"])
        for one in repeats:
            mine = self._of(one, functions)
            if one.fills is not None and len(mine):
                source = itself.copy()
                source[self.completed[mine]] = self.asked[mine]
                value = one.fills(value, source, is_ok)
        source = itself.copy()
        source[self.completed] = self.asked
        key = pc.coalesce(key.take(pa.array(source)), key)
        rows = self.rows
        for name, column in (("value", value), ("key", key)):
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
        return rows

    def _of(self, one: CompletionEchoes, functions: tuple[str, ...], types: Sequence[str] = TYPES) -> Int64:
        is_looked_at = np.array([*(f in one.functions for f in functions), False], dtype=np.bool_)
        counts = np.array([name in types for name in TYPES], dtype=np.bool_)
        return np.flatnonzero(is_looked_at[self.f] & counts[self.ended])

    def _keys(self) -> tuple[pa.Array, pa.Array]:
        key = whole(self.rows["key"])
        return tuple(key.take(pa.array(at)).cast(pa.string()) for at in (self.asked, self.completed))

    def _reason(self, asked: int, completed: int) -> str:
        f = self.rows["f"][asked].as_py()
        return (
            f"{f} completes with {_written(self.rows, completed)}, but was invoked with {_written(self.rows, asked)}: "
            "a completion may repeat what was asked or leave it out, not change it"
        )


def _equal(one: pa.Array, other: pa.Array) -> Bool:
    return np.asarray(pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _written(rows: pa.Table, row: int) -> str:
    """What was looked at of a value, as JSON."""
    value = _without_nulls(rows["value"][row].as_py())
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
        if isinstance(value, str):
            return value
    text = "null" if value == {} else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@dataclass
class _Reading:
    """A history that is read batch by batch, and the operations, of these functions or of any, that are open between
    batches."""

    functions: tuple[str, ...]
    everything: bool
    rows: int = 0
    open_process: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The processes with an open operation, sorted."""
    open_rows: pa.Table | None = None
    """The open invocation of each of these processes."""

    def completed_in(self, batch: pa.Table) -> Iterator[_Pairs]:
        """The operations that completed in the next batch: first those that began before it, then those that began in
        it."""
        process, kind = batch["process"].to_numpy(), codes(batch["type"], TYPES)
        f = codes(batch["f"], self.functions)
        # Both rows of an operation have the same f, so others can be left out before anything is sorted.
        mine = np.flatnonzero(((f >= 0) | self.everything) & (process != NEMESIS))
        order = mine[by_process(process[mine])]
        p, invoked = process[order].astype(np.int64), kind[order] == INVOKE
        starts = np.concatenate(([True], p[1:] != p[:-1])) if len(p) else np.zeros(0, dtype=np.bool_)
        follows = ~starts[1:] & invoked[:-1] & ~invoked[1:]
        ends_open = np.concatenate((starts[1:], [True])) & invoked if len(p) else invoked

        first, late = order[starts], order[starts & ~invoked]
        yield from self._begun_before(batch, process, late, f, kind)
        completed = order[1:][follows]
        yield _Pairs(
            rows=batch,
            asked=order[:-1][follows],
            completed=completed,
            at=completed + self.rows,
            f=f[completed],
            ended=kind[completed],
        )
        self._keep(batch, process[first].astype(np.int64), order[ends_open])
        self.rows += batch.num_rows

    def _begun_before(self, batch: pa.Table, process: Int32, late: Int64, f: Int32, kind: Int32) -> Iterator[_Pairs]:
        if self.open_rows is None or not len(self.open_process) or not len(late):
            return
        place = np.minimum(np.searchsorted(self.open_process, process[late]), len(self.open_process) - 1)
        is_known = self.open_process[place] == process[late]
        place, late = place[is_known], late[is_known]
        asked, completed = self.open_rows.take(pa.array(place)), in_plain_words(batch.take(pa.array(late)))
        at = np.arange(len(late))
        rows = _joined([asked, completed])
        yield _Pairs(rows=rows, asked=at, completed=at + len(late), at=late + self.rows, f=f[late], ended=kind[late])

    def _keep(self, batch: pa.Table, seen: Int64, opened: Int64) -> None:
        """Keeps the operations that are still open, and those that were opened."""
        new = in_plain_words(batch.take(pa.array(opened)))
        process = new["process"].to_numpy().astype(np.int64)
        if self.open_rows is not None:
            still = np.flatnonzero(~np.isin(self.open_process, seen))
            process = np.concatenate((self.open_process[still], process))
            new = _joined([self.open_rows.take(pa.array(still)), new])
        order = np.argsort(process, kind="stable")
        self.open_process, self.open_rows = process[order], new.take(pa.array(order))


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def in_plain_words(rows: pa.Table) -> pa.Table:
    """A few rows without the dictionaries of their batches, because the dictionaries of all batches grow with the
    history."""
    return rows.cast(pa.schema([field.with_type(_plain(field.type)) for field in rows.schema]))


def _plain(of: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(of):
        return of.value_type
    if pa.types.is_list(of):
        return pa.list_(of.value_field.with_type(_plain(of.value_type)))
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_plain(field.type)) for field in of])
    return of
