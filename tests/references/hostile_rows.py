"""Rows and columns that no recorder should write, of every workload and object: one member of one operation is
something else, or one column has another type."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.jepsen import Format, exported
from harness.record.history import read_history
from tests.references.history_language import WrittenHistory
from tests.references.said_otherwise import table_of

Row = dict[str, Any]
Member = tuple[str | int, ...]
"""The way to it: names of members, and places in lists."""

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1.0, -0.0, 1e300, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**200),
    *("", "7", "x", "x" * 5000, "\u0000", "é\U0001f600", "null", "nemesis", ":read"),
    *([], [1], [[1, 2]], [1, [2, [3]]], [None], {}, {"a": 1}, {"": None}),
)
"""What stands there instead."""


@dataclass(frozen=True, kw_only=True)
class Hostile:
    """A history in which one member of one operation is something else."""

    lines: list[str]
    row: int
    member: Member
    instead: Any

    def write(self, path: Path) -> None:
        path.write_text("".join(f"{line}\n" for line in self.lines))


def hostile(history: WrittenHistory, count: int, rng: random.Random, folder: Path) -> Iterator[Hostile]:
    """Half of them within values. `folder` is for what is needed meanwhile."""
    path = folder / "as-it-was.parquet"
    pq.write_table(table_of(history), path)
    lines = [line.rstrip("\n") for line in exported(read_history(path), Format.JSON)]
    for _ in range(count):
        number = rng.randrange(len(lines))
        row = json.loads(lines[number])
        members = [one for one in _members(row) if one and (one[0] == "value" or rng.random() < 0.5)]
        member, instead = rng.choice(members), rng.choice(STRANGE)
        changed = json.dumps(_with(row, member, instead))
        yield Hostile(
            lines=[*lines[:number], changed, *lines[number + 1 :]], row=number, member=member, instead=instead
        )


def _members(value: Any, way: Member = ()) -> Iterator[Member]:
    yield way
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _members(part, (*way, name))


def _with(value: Any, member: Member, instead: Any) -> Any:
    changed = copy.deepcopy(value)
    at = changed
    for name in member[:-1]:
        at = at[name]
    at[member[-1]] = instead
    return changed


def held_at(row: Row, member: Member) -> Any:
    """What stands there; the row itself where nothing does."""
    at: Any = row
    for name in member:
        try:
            at = at[name]
        except (KeyError, IndexError, TypeError):
            return row
    return at


# Columns of other types.

OTHER_TYPES: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "double": (pa.float64(), lambda cell: float(cell) if isinstance(cell, int) else 1.5),
    "text": (pa.string(), lambda cell: f"n{cell}"),
    "digits": (pa.string(), str),
    "boolean": (pa.bool_(), bool),
    "unsigned": (pa.uint64(), lambda cell: 2**64 - 1),
    "binary": (pa.binary(), lambda cell: b"\xff"),
    "decimal": (pa.decimal128(38, 1), lambda cell: Decimal("1.5")),
    "moment": (pa.timestamp("ns"), lambda cell: datetime.fromtimestamp(5, UTC)),
    "list": (pa.list_(pa.int64()), lambda cell: [1]),
    "struct": (pa.struct([("a", pa.int64())]), lambda cell: {"a": 1}),
}


def leaves(kind: pa.DataType, way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all members that are no structs; lists have no name of their own."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type, (*way, field.name))
    elif pa.types.is_list(kind):
        yield from leaves(kind.value_type, way)
    else:
        yield way


def with_other_type(table: pa.Table, member: tuple[str, ...], other: str) -> pa.Table | None:
    """None where that is the type that it has."""
    kind, cell = OTHER_TYPES[other]
    value = table.schema.field("value").type
    retyped = _retyped(value, member, kind)
    if retyped == value:
        return None
    values = [_changed(one, member, cell) for one in table["value"].to_pylist()]
    return table.set_column(table.schema.get_field_index("value"), "value", pa.array(values, retyped))


def _retyped(kind: pa.DataType, member: tuple[str, ...], other: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_retyped(kind.value_type, member, other))
    if not member:
        return other
    return pa.struct(
        [
            field.with_type(_retyped(field.type, member[1:], other)) if field.name == member[0] else field
            for field in kind
        ]
    )


def _changed(value: Any, member: tuple[str, ...], cell: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_changed(one, member, cell) for one in value]
    if value is None or not member:
        return None if value is None else cell(value)
    return value | {member[0]: _changed(value.get(member[0]), member[1:], cell)}
