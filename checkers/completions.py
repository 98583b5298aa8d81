"""What a completion may only repeat from its invocation: a history in which they differ is malformed.

An operation asks for something, and its completion says what came of it. The completion may repeat what was asked or
leave it out, but not change it: a client that invokes `write 1` and gets ok of `write 2` has recorded two operations as
one, and it is unknown which of them happened. The answer itself (a read's value, a send's offset) is free. A model and
a workload declare which parts are which beside their functions, in terms of this module; `checkers.asked` checks it for
every checker, before any of them runs.

A completion that leaves out what was asked, or its key (null), repeats it. One that names what its invocation left out
differs from it, unless that part is free: null is a value as well. A completion with fail, or of unknown outcome, may
have anything in place of what was asked, such as the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import (
    NONE,
    OK,
    TYPES,
    Bool,
    Int32,
    Int64,
    codes,
    integers,
    member,
    sized_elements,
)
from harness.compiled import compiled

Differs = Callable[[pa.Table, Int64, Int64], Bool]
"""(rows, positions of invocations, positions of their completions) -> which pairs differ."""

Fills = Callable[[pa.Array, Int64, Bool], pa.Array]
"""(values, the position of each one's invocation, or its own, whether each is an ok answer) -> values that have what
was asked."""


@dataclass(frozen=True, kw_only=True)
class CompletionEchoes:
    """What completions of some functions repeat."""

    functions: tuple[str, ...]
    differs: Differs
    columns: tuple[str, ...]
    """The columns that `differs` looks at, as `history_batches` names them."""
    types: tuple[str, ...] = ("ok",)
    """The types of completions that are compared; the others may answer anything."""
    leaves_out: Differs | None = None
    """Finds the pairs whose completion leaves out what was asked. None: no checker looks for it there."""
    fills: Fills | None = None


def members(*functions: str, of: tuple[str, ...] = ("value",)) -> CompletionEchoes:
    """These members of the value."""
    return replace(remembered(*functions, of=of), differs=partial(members_differ, of=of))


def remembered(*functions: str, of: tuple[str, ...]) -> CompletionEchoes:
    """The same members, but an ok answer may have another value, which then counts."""
    return CompletionEchoes(
        functions=functions,
        differs=_nothing_differs,
        columns=tuple(f"value.{name}" for name in of),
        leaves_out=partial(members_left_out, of=of),
        fills=partial(members_filled, of=of),
    )


def parts(
    *functions: str, written: tuple[str, ...], among: tuple[str, ...] = (), value: str = "value"
) -> CompletionEchoes:
    """The parts of a transaction: their functions and keys in order, and the `value` of those that are `written`.

    `among` are the functions of parts that are looked at; none for all.
    """
    columns = ("value.txn.f", "value.txn.key", f"value.txn.{value}")
    of = _Of(written, among, value)
    return CompletionEchoes(
        functions=functions,
        differs=partial(_parts_differ, of=of),
        columns=columns,
        leaves_out=partial(_parts_left_out, of=of),
        fills=partial(_parts_filled, of=of),
    )


class _Of(NamedTuple):
    """What is asked in a transaction: the member `value` of parts whose functions are `written`, and the functions and
    keys of parts with functions `among` these, or of all parts."""

    written: Sequence[str]
    among: Sequence[str]
    value: str

    def looks_at(self, f: str | None) -> bool:
        return not self.among or f in self.among


def _nothing_differs(rows: pa.Table, asked: Int64, completed: Int64) -> Bool:
    return np.zeros(len(asked), dtype=np.bool_)


def members_differ(rows: pa.Table, asked: Int64, completed: Int64, *, of: Sequence[str]) -> Bool:
    """The pairs whose completion has one of these members with another value than was asked."""
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


def members_left_out(rows: pa.Table, asked: Int64, completed: Int64, *, of: Sequence[str]) -> Bool:
    """The pairs whose completion lacks one of these members that was asked; other ones than ok may have something else
    there."""
    is_ok = codes(rows["type"], TYPES)[completed] == OK
    found = np.zeros(len(asked), dtype=np.bool_)
    for name in of:
        column = member(rows["value"], name)
        if pa.types.is_signed_integer(column.type):
            numbers = integers(column)
            wants, says = numbers[asked], numbers[completed]
            found |= (wants != NONE) & np.where(is_ok, says == NONE, says != wants)
        elif not pa.types.is_null(column.type):
            wanted, said = column.take(pa.array(asked)), column.take(pa.array(completed))
            same = pc.fill_null(pc.equal(wanted, said), False).to_numpy(zero_copy_only=False)
            is_asked, is_said = (one.is_valid().to_numpy(zero_copy_only=False) for one in (wanted, said))
            found |= is_asked & np.where(is_ok, ~is_said, ~same)
    return found


def members_filled(value: pa.Array, source: Int64, is_ok: Bool, *, of: Sequence[str]) -> pa.Array:
    ok = pa.array(is_ok)
    for name in of:
        said = member(value, name)
        if not pa.types.is_null(said.type):
            asked = said.take(pa.array(source))
            value = with_member(value, name, pc.if_else(ok, pc.coalesce(said, asked), pc.coalesce(asked, said)))
    return value


def with_member(struct: pa.Array, name: str, column: pa.Array) -> pa.Array:
    """The structs with this column under that name, which replaces another one if there is one."""
    fields = list(struct.type)
    columns = [column if one.name == name else member(struct, one.name) for one in fields]
    named = [one.with_type(column.type) for one, column in zip(fields, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=named)


def _parts_differ(rows: pa.Table, asked: Int64, completed: Int64, *, of: _Of) -> Bool:
    lists = member(rows["value"], "txn")
    if pa.types.is_null(lists.type):
        return np.zeros(len(asked), dtype=np.bool_)
    said = _Parts.of(lists, of)
    if not lists.null_count:
        return _differing(said, asked, completed)
    is_given = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.asarray(is_given[completed] & _differing(said, asked, completed), dtype=np.bool_)


def _parts_left_out(rows: pa.Table, asked: Int64, completed: Int64, *, of: _Of) -> Bool:
    lists = member(rows["value"], "txn")
    if pa.types.is_null(lists.type):
        return np.zeros(len(asked), dtype=np.bool_)
    said = _Parts.of(lists, of)
    sizes = np.diff(said.first)
    is_given = lists.is_valid().to_numpy(zero_copy_only=False)[completed]
    is_ok = codes(rows["type"], TYPES)[completed] == OK
    is_other = ~is_ok & is_given
    is_other[is_other] = _differing(said, asked[is_other], completed[is_other])
    return np.asarray((sizes[asked] > 0) & (~is_given | is_other), dtype=np.bool_)


def _parts_filled(value: pa.Array, source: Int64, is_ok: Bool, *, of: _Of) -> pa.Array:
    lists = member(value, "txn")
    rows = np.flatnonzero(source != np.arange(len(source)))
    if pa.types.is_null(lists.type) or not len(rows):
        return value
    asked, said = (lists.take(pa.array(at)).to_pylist() for at in (source[rows], rows))
    full = [_merge_parts(*one, of=of) for one in zip(asked, said, is_ok[rows].tolist(), strict=True)]
    place = np.arange(len(lists))
    place[rows] = len(lists) + np.arange(len(rows))
    return with_member(value, "txn", pa.concat_arrays([lists, pa.array(full, lists.type)]).take(pa.array(place)))


Part = dict[str, Any]


def _merge_parts(asked: list[Part] | None, answered: list[Part] | None, is_ok: bool, *, of: _Of) -> list[Part] | None:
    """What a transaction did. If an ok one shows no parts, those that would have had an answer are left out, because it
    is unknown what it read."""
    if asked is None or not is_ok:
        return asked
    return answered if answered is not None else [part for part in asked if part["f"] in of.written]


class _Parts(NamedTuple):
    """The parts of transactions."""

    first: Int64
    """Parts of row i are first[i]:first[i + 1]."""
    f: Int32
    """The number of each part's function."""
    key: Int32
    """The number of each part's key."""
    value: Int64
    is_looked_at: Bool
    """By number of a function: whether such parts are looked at."""
    is_written: Bool
    """By number of a function: whether the values of such parts are looked at as well."""

    @classmethod
    def of(cls, lists: pa.Array, asked: _Of) -> _Parts:
        sizes, found = sized_elements(lists)
        functions, f = _numbered(member(found, "f"))
        return cls(
            first=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes))),
            f=f,
            key=_numbered(member(found, "key"))[1],
            value=integers(member(found, asked.value)),
            is_looked_at=np.array([asked.looks_at(name) for name in functions], dtype=np.bool_),
            is_written=np.array([name in asked.written for name in functions], dtype=np.bool_),
        )


@compiled
def _differing(parts: _Parts, asked: Int64, completed: Int64) -> Bool:
    """Which of these pairs of rows do not have the same parts in the same order, of those that are looked at."""
    differs = np.zeros(len(asked), dtype=np.bool_)
    for i in range(len(asked)):
        a, a_end = parts.first[asked[i]], parts.first[asked[i] + 1]
        c, c_end = parts.first[completed[i]], parts.first[completed[i] + 1]
        while True:
            while a < a_end and not parts.is_looked_at[parts.f[a]]:
                a += 1
            while c < c_end and not parts.is_looked_at[parts.f[c]]:
                c += 1
            if a == a_end or c == c_end or parts.f[a] != parts.f[c] or parts.key[a] != parts.key[c]:
                break
            if parts.is_written[parts.f[a]] and parts.value[a] != parts.value[c]:
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
