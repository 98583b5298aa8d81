"""Cycles as values: their names, their rows in tables, and how the cycles of many units become one answer.

A cycle is named after its edges. Without RW it is G0 if all its dependencies are WW, else G1c. With one RW it is
G-single-item. With several, it is G-nonadjacent-item if no two of them follow each other (the first edge follows the
last one), else G2-item. The suffix is `-realtime` if the cycle needs a REALTIME edge, else `-process` if it needs a
PROCESS edge. Names and their order are those of Elle (Kingsbury and Alvaro, VLDB 2020), after Adya's thesis (MIT,
1999).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Int8
from checkers.transactions.elle.edges import Dependency
from harness.compiled import compiled

FAMILIES = ("G0", "G1c", "G-single-item", "G-nonadjacent-item", "G2-item")
VARIANTS = ("", "-process", "-realtime")
NAMES = tuple(family + variant for family in FAMILIES for variant in VARIANTS)

WR, RW, PROCESS = int(Dependency.WR), int(Dependency.RW), int(Dependency.PROCESS)

CYCLES = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("stopped", pa.int64()),
        pa.field("kinds", pa.list_(pa.int8())),
        pa.field("transactions", pa.list_(pa.int64())),
    ]
)
"""A row with `kinds` is an example: an edge of kinds[i] leads from transactions[i] to the next one, and the last edge
back to the first. A row without `kinds` has two counts: strong components, and those in which the search for that name
was given up."""


@dataclass(frozen=True, kw_only=True)
class Cycle:
    name: str
    edges: tuple[tuple[Dependency, int, int], ...]
    """(kind, source, target) of each edge. Each begins where the one before it ends, and the first one at the
    transaction that began first. A PROCESS or REALTIME edge may skip transactions that lie between."""

    @property
    def transactions(self) -> tuple[int, ...]:
        return tuple(source for _, source, _ in self.edges)


@dataclass(frozen=True, kw_only=True)
class FoundCycles:
    count: int
    """How many strong components of the edges that this name allows count under it, because no stronger name does."""
    examples: tuple[Cycle, ...]
    """The shortest cycles that were found, each in a component of its own."""


@dataclass(frozen=True, kw_only=True)
class Cycles:
    found: Mapping[str, FoundCycles] = field(default_factory=dict)
    """The cycles by name, in the order of NAMES."""
    undecided: tuple[str, ...] = ()
    """What was not searched to the end, and why. Such a component still gets a name, unless it was too big to hold."""
    edges: int = 0
    """How many dependencies were searched."""


@compiled
def name_number(kinds: Int8) -> int:
    """The name of a cycle with edges of these kinds, as a position in NAMES."""
    anti = 0
    adjacent = False
    received = False
    variant = 0
    for i in range(len(kinds)):
        received |= kinds[i] == WR
        if kinds[i] == RW:
            anti += 1
            adjacent |= kinds[i - 1] == RW
        elif kinds[i] >= PROCESS:
            variant = max(variant, kinds[i] - PROCESS + 1)
    family = 1 if received else 0
    if anti:
        family = 2 if anti == 1 else 4 if adjacent else 3
    return family * 3 + variant


def name_of(kinds: Sequence[int]) -> str:
    """The name of a cycle with edges of these kinds."""
    return NAMES[name_number(np.array(kinds, dtype=np.int8))]


Row = tuple[str, int, int, list[int] | None, list[int] | None]
Witness = tuple[list[int], list[int]]
"""The kinds of a cycle's edges, and its transactions."""


def cycles_table(counts: Mapping[str, tuple[int, int]], examples: Mapping[str, Iterable[Witness]]) -> pa.Table:
    """CYCLES from name -> (count, stopped) and from witnesses, of which the smallest are kept."""
    rows: list[Row] = [(name, count, stopped, None, None) for name, (count, stopped) in counts.items()]
    for name, witnesses in examples.items():
        for kinds, transactions in sorted(witnesses, key=lambda one: (len(one[0]), one[1], one[0]))[:EXAMPLES]:
            rows.append((name, 0, 0, kinds, transactions))
    columns = list(zip(*rows, strict=True)) or [()] * len(CYCLES)
    arrays = [pa.array(column, of.type) for column, of in zip(columns, CYCLES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=CYCLES)


def merged_cycles(table: pa.Table) -> pa.Table:
    """Kernel over all rows of one name: CYCLES with the sums of their counts, and the smallest examples."""
    name = table["name"][0].as_py()
    counted = (sum(table["count"].to_pylist()), sum(table["stopped"].to_pylist()))
    witnesses = [
        (kinds, transactions)
        for kinds, transactions in zip(table["kinds"].to_pylist(), table["transactions"].to_pylist(), strict=True)
        if kinds is not None
    ]
    return cycles_table({name: counted}, {name: witnesses})


def found_cycles(merged: pa.Table, undecided: Iterable[str] = (), edges: int = 0) -> Cycles:
    """The cycles that all merged rows stand for."""
    rows = merged.to_pylist()
    found: dict[str, FoundCycles] = {}
    reasons = list(undecided)
    for name in NAMES:
        mine = [row for row in rows if row["name"] == name]
        count, stopped = (sum(row[column] for row in mine) for column in ("count", "stopped"))
        witnesses = [(row["kinds"], row["transactions"]) for row in mine if row["kinds"] is not None]
        witnesses.sort(key=lambda one: (len(one[0]), one[1], one[0]))
        if count:
            found[name] = FoundCycles(count=count, examples=tuple(_cycle(*one) for one in witnesses[:EXAMPLES]))
        if stopped:
            reasons.append(f"the search for {name} was given up in {stopped} strong components, which were too big")
    return Cycles(found=found, undecided=tuple(reasons), edges=edges)


def _cycle(kinds: Sequence[int], transactions: Sequence[int]) -> Cycle:
    around = zip(kinds, transactions, np.roll(transactions, -1).tolist(), strict=True)
    return Cycle(
        name=name_of(kinds), edges=tuple((Dependency(kind), source, target) for kind, source, target in around)
    )
