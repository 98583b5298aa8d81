"""Cuts a graph of dependencies where no cycle can pass, so that each piece can be searched by itself.

Every cycle has a back edge, which runs against positions. So no cycle passes between two neighbouring positions that no
back edge passes: there is a cut. Positions are divided into blocks; of each block only the first cut is kept, so that
what is gathered is bounded by the number of blocks. A unit lies between one of these cuts and the next; a block without
a cut belongs to the unit before it. Units without back edges have no cycle and are dropped, as are edges from one unit
to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.plan import Dataset, Engine
from checkers.kernels.columns import NO_INDEX, OK, Bool, Int64
from checkers.transactions.elle.edges import Dependency, positions

BLOCK = 1 << 14
"""How many positions a block has."""

BLOCKS = 1 << 22
"""The most blocks; more would be a history of 7 * 10^10 rows."""

UNIT_EDGES = 120_000_000
"""A unit with more edges is not searched: it would take more than about 6 GB."""

LONGEST = int(np.iinfo(np.int32).max)
"""Stands for any longer time: such a transaction began before its unit."""


COMPLETED = -1
INDEFINITE = -2
"""The `kind` in UNIT_ROWS of a row that is a transaction."""

COVERED = pa.schema(
    [
        pa.field("block", pa.int32()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("edges", pa.int64()),
    ]
)
"""A range of positions of one block in front of which no cut is possible. A row with `last` less than `first` has no
range, only the number of edges that begin in the block."""

CUTS = pa.schema(
    [
        pa.field("block", pa.int32()),
        pa.field("cut", pa.int64()),
        pa.field("before", pa.bool_()),
        pa.field("behind", pa.bool_()),
        pa.field("edges", pa.int64()),
    ]
)
"""The first position of a block in front of which no back edge passes, or NO_INDEX, and whether back edges pass before
and behind it."""

UNIT_ROWS = pa.schema(
    [
        pa.field("unit", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("source", pa.int32()),
        pa.field("target", pa.int32()),
        pa.field("process", pa.int32()),
    ]
)
"""The rows of units. An edge has the positions of its ends as `source` and `target`; a transaction has its position,
and how far before it it began. Positions are counted from the unit's first one."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """The units, each with the number of the block in which it begins."""

    block: int
    first: Int64
    """By block: the position of its first cut, or NO_INDEX. There are no back edges behind the last block."""
    at: Int64
    """By block: the unit that its first position belongs to, unless that position is the cut itself."""
    searched: Bool
    """By unit: whether it is searched."""
    undecided: tuple[str, ...]
    """What was left undecided, because units are too big."""
    edges: int
    """How many edges all units have."""

    def of(self, position: Int64) -> Int64:
        """The unit of each position, or NO_INDEX if that unit is not searched."""
        block = position // self.block
        inside = np.minimum(block, len(self.first) - 1)
        behind = (self.first[inside] != NO_INDEX) & (position >= self.first[inside])
        unit = np.where(behind, inside, self.at[inside])
        return np.where((block == inside) & self.searched[unit], unit, NO_INDEX)


def units(engine: Engine, edges: Dataset, *, block: int = BLOCK, limit: int = UNIT_EDGES) -> Units:
    """The units of a graph; one row for each block is gathered."""
    covered = engine.mapped(edges, partial(covered_positions, block=block), COVERED)
    cuts = engine.gather(engine.grouped(covered, ("block",), partial(first_cut, block=block), CUTS), BLOCKS)
    blocks = cuts["block"].to_numpy()
    length = int(blocks.max()) + 1 if len(blocks) else 1
    first = np.arange(length, dtype=np.int64) * block
    first[blocks] = cuts["cut"].to_numpy()
    own = np.where(first == NO_INDEX, 0, np.arange(length))
    unit = np.maximum.accumulate(own)
    at = np.concatenate([[0], unit[:-1]])
    before, behind = (cuts[name].to_numpy(zero_copy_only=False) for name in ("before", "behind"))
    searched = np.zeros(length, dtype=np.bool_)
    searched[at[blocks[before]]] = True
    searched[unit[blocks[behind]]] = True
    begun = np.zeros(length, dtype=np.int64)
    begun[blocks] = cuts["edges"].to_numpy()
    size = np.zeros(length, dtype=np.int64)
    np.add.at(size, unit, begun)
    big = np.flatnonzero(searched & (size > limit))
    searched[big] = False
    return Units(
        block=block,
        first=first,
        at=at,
        searched=searched,
        undecided=tuple(
            f"{size[u]} dependencies from index {first[u]} on hang together: more than the {limit} that memory is for"
            for u in big.tolist()
        ),
        edges=int(begun.sum()),
    )


def covered_positions(edges: pa.Table, *, block: int) -> pa.Table:
    """Kernel: the positions that back edges of a batch cover, in ranges that do not overlap and lie in one block
    each."""
    source, target = (edges[name].to_numpy() for name in ("source_position", "target_position"))
    number, count = np.unique(source // block, return_counts=True)
    back = source > target
    first, last = target[back] + 1, source[back]
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    begins = np.ones(len(first), dtype=np.bool_)
    begins[1:] = first[1:] > reach[:-1] + 1
    at = np.flatnonzero(begins)
    first, last = first[at], reach[np.append(at[1:], len(reach)) - 1] if len(at) else reach
    pieces = last // block - first // block + 1
    piece = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    of = np.repeat(first // block, pieces) + piece
    begin = np.maximum(np.repeat(first, pieces), of * block)
    stop = np.minimum(np.repeat(last, pieces), (of + 1) * block - 1)
    return pa.Table.from_arrays(
        [
            pa.array(np.concatenate([number, of]).astype(np.int32)),
            pa.array(np.concatenate([np.zeros(len(number), dtype=np.int64), begin])),
            pa.array(np.concatenate([np.full(len(number), NO_INDEX), stop])),
            pa.array(np.concatenate([count, np.zeros(len(of), dtype=np.int64)])),
        ],
        schema=COVERED,
    )


def first_cut(covered: pa.Table, *, block: int) -> pa.Table:
    """Kernel over all rows of a block: its first cut."""
    number = covered["block"][0].as_py()
    first, last = covered["first"].to_numpy(), covered["last"].to_numpy()
    passed = first <= last
    order = np.argsort(first[passed], kind="stable")
    first, reach = first[passed][order], np.maximum.accumulate(last[passed][order])
    begin, end = number * block, (number + 1) * block
    cut = begin
    if len(first) and first[0] == begin:
        gaps = np.flatnonzero(first[1:] > reach[:-1] + 1)
        cut = int(reach[gaps[0] if len(gaps) else -1]) + 1
    if cut == end:
        cut = NO_INDEX
    before = bool(len(first)) and (cut == NO_INDEX or int(first[0]) < cut)
    behind = bool(len(first)) and cut != NO_INDEX and int(reach[-1]) > cut
    edges = int(pc.sum(covered["edges"]).as_py())
    return pa.Table.from_pylist(
        [{"block": number, "cut": cut, "before": before, "behind": behind, "edges": edges}], schema=CUTS
    )


def edges_of_units(edges: pa.Table, *, units: Units) -> pa.Table:
    """Kernel: the edges inside a unit."""
    source, target = (edges[name].to_numpy() for name in ("source_position", "target_position"))
    kind = edges["kind"].to_numpy()
    unit = units.of(source)
    inside = np.flatnonzero((unit != NO_INDEX) & (unit == units.of(target)) & (kind <= Dependency.RW))
    unit = unit[inside]
    first = units.first[unit]
    return _unit_rows(
        unit, kind[inside], source[inside] - first, target[inside] - first, np.zeros(len(unit), dtype=np.int64)
    )


def nodes_of_units(nodes: pa.Table, *, units: Units) -> pa.Table:
    """Kernel: the transactions of units."""
    start, end, process, kind = (nodes[name].to_numpy() for name in ("start", "end", "process", "type"))
    position = positions(start, end, kind)
    unit = units.of(position)
    inside = np.flatnonzero(unit != NO_INDEX)
    unit, position = unit[inside], position[inside]
    return _unit_rows(
        unit,
        np.where(kind[inside] == OK, COMPLETED, INDEFINITE),
        position - units.first[unit],
        np.minimum(position - start[inside], LONGEST),
        process[inside],
    )


def _unit_rows(*columns: Int64) -> pa.Table:
    arrays = [pa.array(column.astype(of.type.to_pandas_dtype())) for column, of in zip(columns, UNIT_ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=UNIT_ROWS)
