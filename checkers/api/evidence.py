"""Evidence: the operations of a history that could have contradicted what is claimed of it.

A history without any of them proves nothing: if every write and every read failed, any register would have been right.
A model and a workload declare theirs beside their functions; `vacuity` looks for it, for every checker.

An operation is evidence if its answer could have been wrong: an ok read could have shown another value, an ok dequeue
an element that was never enqueued. What it could have contradicted need not have happened. An ok write by itself is not
evidence, because no order of writes is wrong by itself; nor is an operation that failed or never completed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import TYPES, Bool, codes, elements, member, whole

Rows = Callable[[pa.Table], Bool]
"""A function that says which of some rows of a history count."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One kind of operation that could have contradicted something."""

    f: str
    type: str = "ok"
    at_least: int = 1
    """How many of them there must be on one key: a lock that was acquired only once cannot have been held twice."""
    which: Rows | None = None
    """Which of these operations count; None for all."""
    columns: tuple[str, ...] = ()
    """The columns that `which` looks at, as `history_batches` names them."""
    words: str = ""
    """What `which` demands, in words that follow the name: `that reads`."""

    def __str__(self) -> str:
        article = ("an" if self.type == "ok" else "a") if self.at_least == 1 else str(self.at_least)
        kind = {"ok": "ok", "fail": "failed"}[self.type]
        where = "on one key" if self.at_least > 1 else ""
        return " ".join(word for word in (article, kind, self.f, self.words, where) if word)

    def among(self, rows: pa.Table) -> pa.Table:
        """The rows of clients that are such an operation."""
        is_one = (codes(rows["f"], (self.f,)) == 0) & (codes(rows["type"], TYPES) == TYPES.index(self.type))
        found = rows.take(pa.array(np.flatnonzero(is_one))) if is_one.any() else rows.slice(0, 0)
        return found if self.which is None else found.take(pa.array(np.flatnonzero(self.which(found))))


def any_ok(*names: str) -> tuple[Evidence, ...]:
    """One ok operation with any of these names."""
    return tuple(Evidence(f=name) for name in names)


def shows_a_value(f: str, at_least: int = 1) -> Evidence:
    """An ok operation with an answer other than null, for workloads in which null means that nothing was seen."""
    return Evidence(f=f, at_least=at_least, which=_has_value, columns=("value",), words="that shows a value")


def shows_members(f: str, name: str, words: str) -> Evidence:
    """An ok operation whose value has that member, which is not empty if it is a list."""
    return Evidence(f=f, which=partial(_has_member, name=name), columns=(f"value.{name}",), words=words)


def reading(f: str, function: str) -> Evidence:
    """An ok transaction with such a micro-operation."""
    which = partial(_has_part, function=function)
    return Evidence(f=f, which=which, columns=("value.txn.f",), words=f"with {function!r} in it")


def in_json(f: str, says: Callable[[object], bool], words: str) -> Evidence:
    """An ok operation for whose decoded value `says` is true."""
    return Evidence(f=f, which=partial(_says, says=says), columns=("value",), words=words)


def _has_value(rows: pa.Table) -> Bool:
    texts = member(rows["value"], "json")
    if pa.types.is_null(texts.type):
        return _valid(member(rows["value"], "value"))
    return np.asarray(pc.fill_null(pc.not_equal(texts.cast(pa.string()), "null"), False), dtype=np.bool_)


def _has_member(rows: pa.Table, *, name: str) -> Bool:
    values = member(rows["value"], name)
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return np.asarray(pc.greater(pc.fill_null(pc.list_value_length(values), 0), 0), dtype=np.bool_)
    return _valid(values)


def _has_part(rows: pa.Table, *, function: str) -> Bool:
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    lists = member(rows["value"], "txn")
    if not pa.types.is_null(lists.type):
        owner, parts = elements(lists)
        found[owner[codes(member(parts, "f"), (function,)) == 0]] = True
    return found


def _says(rows: pa.Table, *, says: Callable[[object], bool]) -> Bool:
    texts = member(rows["value"], "json")
    if pa.types.is_null(texts.type):
        return np.array([says(value) for value in member(rows["value"], "value").to_pylist()], dtype=np.bool_)
    return np.array([text is not None and says(json.loads(text)) for text in texts.to_pylist()], dtype=np.bool_)


def without_error(rows: pa.Table) -> Bool:
    return ~_valid(rows["error"])


def _valid(column: pa.Array | pa.ChunkedArray) -> Bool:
    return np.asarray(whole(column).is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def looked_at(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The columns that all of them look at, in addition to those of any operation. A whole column replaces its
    members."""
    named = dict.fromkeys(name for one in evidence for name in one.columns)
    named |= dict.fromkeys(("key",)) if any(one.at_least > 1 for one in evidence) else {}
    return tuple(name for name in named if "." not in name or name.partition(".")[0] not in named)
