"""What a completion may only repeat: a history whose completions say otherwise is none.

An operation asks for something, and its completion says what came of it. Of what was asked for, the completion may
repeat what it likes, and change nothing: a client that invokes `write 1` and gets ok of `write 2` has recorded two
operations as one, and which of them happened is unknown. What the answer itself is (a read's value, a send's offset)
is free. A model and a workload declare which is which beside their functions; it is looked at here, for every checker,
before any has looked.

A completion that leaves out what was asked (null) repeats it. One that names what its invocation left out says
otherwise, unless that is free: null is a value as well.

Cost: columns of the history once, sorted by process a batch at a time; memory for a batch, and a row for each operation
that is open at its end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.history_batches import Source, batches
from checkers.kernels.columns import INVOKE, NONE, TYPES, Bool, Int32, Int64, codes, integers, member, sized_elements
from harness.compiled import compiled
from harness.record.history import MalformedHistory, by_process

COLUMNS = ("process", "type", "f")

Differs = Callable[[pa.Table, Int64, Int64], Bool]
"""(rows, positions of invocations, positions of their completions) -> of which pairs they say different things."""

SHOWN = 200
"""Characters of a value in a reason."""

ANY_COMPLETION = ("ok", "fail", "info")


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Some functions whose completions repeat what was asked."""

    functions: tuple[str, ...]
    differs: Differs
    columns: tuple[str, ...]
    """What `differs` looks at, as `history_batches` names it."""
    types: tuple[str, ...] = ANY_COMPLETION
    """Of these completions; the others may answer anything."""


def members(*functions: str, of: tuple[str, ...] = ("value",)) -> Repeats:
    """These members of the value, all of them integers."""
    columns = tuple(f"value.{name}" for name in of)
    return Repeats(functions=functions, differs=partial(members_differ, of=of), columns=columns)


def parts(*functions: str, written: tuple[str, ...], among: tuple[str, ...] = (), value: str = "value") -> Repeats:
    """The parts of a transaction: their functions and keys in order, and the `value` of those that are `written`.

    `among` are the functions of parts that are looked at; none for all.
    """
    columns = ("value.txn.f", "value.txn.key", f"value.txn.{value}")
    differs = partial(_parts_differ, written=written, among=among, value=value)
    return Repeats(functions=functions, differs=differs, columns=columns)


def members_differ(rows: pa.Table, asked: Int64, completed: Int64, *, of: Sequence[str]) -> Bool:
    """Where the completion gives one of these members of the value, and not as it was asked."""
    found = np.zeros(len(asked), dtype=np.bool_)
    for name in of:
        column = member(rows["value"], name)
        if pa.types.is_signed_integer(column.type):
            numbers = integers(column)
            answers = numbers[completed]
            found |= (answers != numbers[asked]) & (answers != NONE)
        elif not pa.types.is_null(column.type):
            answered = column.take(pa.array(completed))
            same = pc.fill_null(pc.equal(column.take(pa.array(asked)), answered), False)
            found |= pc.and_not(answered.is_valid(), same).to_numpy(zero_copy_only=False)
    return found


def _parts_differ(
    rows: pa.Table, asked: Int64, completed: Int64, *, written: Sequence[str], among: Sequence[str], value: str
) -> Bool:
    lists = member(rows["value"], "txn")
    if pa.types.is_null(lists.type):
        return np.zeros(len(asked), dtype=np.bool_)
    said = _Said.of(lists, written, among, value)
    if not lists.null_count:
        return _differing(said, asked, completed)
    is_given = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.asarray(is_given[completed] & _differing(said, asked, completed), dtype=np.bool_)


class _Said(NamedTuple):
    """What transactions do, part by part."""

    first: Int64
    """Parts of row i are first[i]:first[i + 1]."""
    f: Int32
    """Of each part a number for its function;"""
    key: Int32
    """one for its key;"""
    value: Int64
    """and its value."""
    is_looked_at: Bool
    """Of each number of a function, whether such parts are looked at;"""
    is_written: Bool
    """and whether their values are part of what they do."""

    @classmethod
    def of(cls, lists: pa.Array, written: Sequence[str], among: Sequence[str], value: str) -> _Said:
        sizes, found = sized_elements(lists)
        functions, f = _numbered(member(found, "f"))
        return cls(
            first=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes))),
            f=f,
            key=_numbered(member(found, "key"))[1],
            value=integers(member(found, value)),
            is_looked_at=np.array([not among or name in among for name in functions], dtype=np.bool_),
            is_written=np.array([name in written for name in functions], dtype=np.bool_),
        )


@compiled
def _differing(said: _Said, asked: Int64, completed: Int64) -> Bool:
    """Of which of these pairs of rows the parts that are looked at are not the same ones, in the same order."""
    differs = np.zeros(len(asked), dtype=np.bool_)
    for i in range(len(asked)):
        a, a_end = said.first[asked[i]], said.first[asked[i] + 1]
        c, c_end = said.first[completed[i]], said.first[completed[i] + 1]
        while True:
            while a < a_end and not said.is_looked_at[said.f[a]]:
                a += 1
            while c < c_end and not said.is_looked_at[said.f[c]]:
                c += 1
            if a == a_end or c == c_end or said.f[a] != said.f[c] or said.key[a] != said.key[c]:
                break
            if said.is_written[said.f[a]] and said.value[a] != said.value[c]:
                break
            a += 1
            c += 1
        differs[i] = a < a_end or c < c_end
    return differs


def _numbered(texts: pa.Array) -> tuple[list[str | None], Int32]:
    """The distinct texts of the column, null behind them, and the place of each there."""
    encoded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
    words = encoded.dictionary.to_pylist() if not pa.types.is_null(texts.type) else []
    indices = pc.fill_null(encoded.indices, len(words)) if encoded.null_count else encoded.indices
    return [*words, None], np.asarray(indices.to_numpy(), dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Operations that completed: of each the row of its invocation and that of its completion, in `rows`."""

    rows: pa.Table
    asked: Int64
    completed: Int64
    at: Int64
    """The index in the history of each completion."""
    f: Int32
    """Of each operation, its place in the functions that are looked at."""
    ended: Int32
    """Of each completion, its place in TYPES."""

    def contradictions(self, repeats: Sequence[Repeats], functions: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """The first of each kind, by its index, with the reason; `functions` are those that `f` numbers."""
        for one in repeats:
            is_looked_at = np.array([f in one.functions for f in functions], dtype=np.bool_)
            counts = np.array([name in one.types for name in TYPES], dtype=np.bool_)
            mine = np.flatnonzero(is_looked_at[self.f] & counts[self.ended])
            if len(mine):
                wrong = mine[one.differs(self.rows, self.asked[mine], self.completed[mine])]
                if len(wrong):
                    first = wrong[np.argmin(self.at[wrong])]
                    yield int(self.at[first]), self._reason(int(self.asked[first]), int(self.completed[first]))

    def _reason(self, asked: int, completed: int) -> str:
        f = self.rows["f"][asked].as_py()
        return (
            f"{f} completes with {_written(self.rows, completed)}, but was invoked with {_written(self.rows, asked)}: "
            "a completion may repeat what was asked or leave it out, not change it"
        )


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
    """A history, batch by batch, and what is open from one to the next; only operations of these functions."""

    functions: tuple[str, ...]
    rows: int = 0
    open_process: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Sorted."""
    open_rows: pa.Table | None = None
    """The invocation of each of these processes."""

    def completed_in(self, batch: pa.Table) -> Iterator[_Pairs]:
        """The operations that completed in the next batch: those that began before it, and those that began in it."""
        process, kind = batch["process"].to_numpy(), codes(batch["type"], TYPES)
        f = codes(batch["f"], self.functions)
        # An operation has one f from end to end, so that those of others can be left out before anything is sorted.
        mine = np.flatnonzero(f >= 0)
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
        asked, completed = self.open_rows.take(pa.array(place)), _in_plain_words(batch.take(pa.array(late)))
        at = np.arange(len(late))
        rows = _joined([asked, completed])
        yield _Pairs(rows=rows, asked=at, completed=at + len(late), at=late + self.rows, f=f[late], ended=kind[late])

    def _keep(self, batch: pa.Table, seen: Int64, opened: Int64) -> None:
        """Those still open without a completion since, and those that were opened."""
        new = _in_plain_words(batch.take(pa.array(opened)))
        process = new["process"].to_numpy().astype(np.int64)
        if self.open_rows is not None:
            still = np.flatnonzero(~np.isin(self.open_process, seen))
            process = np.concatenate((self.open_process[still], process))
            new = _joined([self.open_rows.take(pa.array(still)), new])
        order = np.argsort(process, kind="stable")
        self.open_process, self.open_rows = process[order], new.take(pa.array(order))


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _in_plain_words(rows: pa.Table) -> pa.Table:
    """Few rows without the dictionaries of the batch that they come from: those of all batches together grow with the
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


def require_repeated(history: Source, repeats: Sequence[Repeats]) -> None:
    """Raises MalformedHistory at the first completion that says what its invocation did not ask."""
    if not repeats:
        return
    columns = dict.fromkeys((*COLUMNS, *(name for one in repeats for name in one.columns)))
    functions = tuple(dict.fromkeys(f for one in repeats for f in one.functions))
    reading = _Reading(functions=functions)
    for batch in batches(history, tuple(columns)):
        found = [one for pairs in reading.completed_in(batch) for one in pairs.contradictions(repeats, functions)]
        if found:
            index, reason = min(found)
            raise MalformedHistory(index, reason, path=history if isinstance(history, Path) else None)
