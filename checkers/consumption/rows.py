"""The operations of the consumption workload as columns, and its consumers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from checkers.api.evidence import shows_members
from checkers.api.plan import Engine
from checkers.completions import members
from checkers.history_batches import Source
from checkers.kernels.columns import OK, TYPES, Int32, Int64, codes, elements, integers, member, translated

MESSAGES = pa.list_(
    pa.struct([("message", pa.int64()), ("queue", pa.string()), ("offset", pa.int64()), ("tries", pa.int64())])
)
CONSUMPTION = pa.struct(
    [
        ("message", pa.int64()),
        ("offset", pa.int64()),
        ("group", pa.string()),
        ("member", pa.string()),
        ("model", pa.string()),
        ("mode", pa.string()),
        ("limit", pa.int64()),
        ("outcome", pa.string()),
        ("messages", MESSAGES),
    ]
)
"""The value of this workload's operations. `queue` and `offset` are the place from which a message was given, `tries`
is how often it had been tried before."""

FUNCTIONS = ("send", "join", "consume", "finish", "committed", "settled", "dead-letters")
SEND, JOIN, CONSUME, FINISH, COMMITTED, SETTLED, DEAD_LETTERS = range(len(FUNCTIONS))
OUTCOMES = ("success", "later")
SUCCESS, LATER = range(len(OUTCOMES))

REPEATS = (members("send", of=("message",)), members("join", "consume", "finish", "committed", of=("group",)))
EVIDENCE = (
    shows_members("consume", "messages", "that shows messages"),
    shows_members("committed", "offset", "that shows an offset"),
)

RETRY_PREFIX = "retry/"
"""The prefix of the names of queues from which messages come again that a group could not consume."""
CONSUMERS_LIMIT = 100_000
"""A property of the clients, not of the history's length."""
MAX = int(np.iinfo(np.int64).max)
"""An index that stands for never."""


class Model(Enum):
    CLUSTERING = "clustering"
    """A group divides the queues among its members."""
    BROADCASTING = "broadcasting"
    """Each member of a group gets everything."""


class Mode(Enum):
    CONCURRENTLY = "concurrently"
    ORDERLY = "orderly"
    POPPING = "popping"
    """Messages are consumed as concurrently, but one that is not acknowledged in time comes again, even if its member
    is gone."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The columns of a batch that are looked at, with one row for each operation, and numbers for strings."""

    f: Int32
    type: Int32
    index: Int64
    process: Int64
    value: pa.Array

    @classmethod
    def of(cls, batch: pa.Table) -> Rows:
        value = batch["value"]
        return cls(
            f=codes(batch["f"], FUNCTIONS),
            type=codes(batch["type"], TYPES),
            index=batch["index"].to_numpy().astype(np.int64),
            process=batch["process"].to_numpy().astype(np.int64),
            value=value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value,
        )


@dataclass(frozen=True, kw_only=True)
class Consumers:
    """The consumers that have to get everything: each group, or each member of each. Small; passed to every kernel."""

    names: tuple[str, ...]
    """The names, sorted. A position here is a consumer's number."""
    settled: tuple[bool, ...]
    """Whether all that its queues held at the end was consumed."""
    read: tuple[bool, ...]
    """Whether its dead letters were read at the end."""
    model: Model

    def numbers(self, value: pa.Array) -> Int32:
        """The consumer of each operation; -1 for none."""
        return translated(names_of(value, self.model), {name: number for number, name in enumerate(self.names)})


def names_of(value: pa.Array, model: Model) -> pa.Array:
    """`group`, or `group/member`; null where the operation has none."""
    group = member(value, "group").cast(pa.string())
    if model is Model.CLUSTERING:
        return group
    both = [None if a is None or b is None else f"{a}/{b}" for a, b in _pairs(group, member(value, "member"))]
    return pa.array(both, pa.string())


def _pairs(first: pa.Array, second: pa.Array) -> Sequence[tuple[str | None, str | None]]:
    return list(zip(first.to_pylist(), second.to_pylist(), strict=True))


SEEN = pa.schema([pa.field("name", pa.string()), pa.field("settled", pa.bool_()), pa.field("read", pa.bool_())])
SEEN_IN = ("index", "process", "type", "f", "value.group", "value.member")


def consumers(engine: Engine, history: Source, model: Model) -> Consumers:
    seen = engine.mapped(engine.history(history, SEEN_IN), partial(seen_in, model=model), SEEN)
    rows = engine.gather(engine.grouped(seen, ("name",), merged, SEEN), CONSUMERS_LIMIT).to_pylist()
    rows.sort(key=lambda row: row["name"])
    return Consumers(
        names=tuple(row["name"] for row in rows),
        settled=tuple(row["settled"] for row in rows),
        read=tuple(row["read"] for row in rows),
        model=model,
    )


def seen_in(batch: pa.Table, *, model: Model) -> pa.Table:
    """Kernel: the consumers of one batch, and what is known of their end."""
    rows = Rows.of(batch)
    names = names_of(rows.value, model).to_pylist()
    found: dict[str, tuple[bool, bool]] = {}
    kinds = (JOIN, CONSUME, SETTLED, DEAD_LETTERS)
    for row in np.flatnonzero(np.isin(rows.f, kinds) & (rows.type == OK)).tolist():
        name = names[row]
        if name is not None:
            settled, read = found.get(name, (False, False))
            found[name] = settled or rows.f[row] == SETTLED, read or rows.f[row] == DEAD_LETTERS
    columns = [list(found), [bool(one[0]) for one in found.values()], [bool(one[1]) for one in found.values()]]
    return pa.table(columns, schema=SEEN)


def merged(seen: pa.Table) -> pa.Table:
    """Kernel over all of one name."""
    return pa.table(
        [[seen["name"][0].as_py()], [any(seen["settled"].to_pylist())], [any(seen["read"].to_pylist())]], schema=SEEN
    )


@dataclass(frozen=True, kw_only=True)
class MessageRows:
    """Messages in operations, with one row for each message."""

    row: Int64
    """The row of the operation in its batch."""
    message: Int64
    offset: Int64
    tries: Int64
    queue: pa.Array

    @classmethod
    def of(cls, rows: Rows, which: npt.NDArray[np.bool_]) -> MessageRows:
        at = np.flatnonzero(which)
        lists = member(rows.value.take(pa.array(at)), "messages")
        if pa.types.is_null(lists.type):
            lists = pa.nulls(len(at), MESSAGES)
        parents, found = elements(lists)
        return cls(
            row=at[parents],
            message=integers(member(found, "message")),
            offset=integers(member(found, "offset")),
            tries=integers(member(found, "tries")),
            queue=member(found, "queue").cast(pa.string()),
        )
