"""What stays open once all that is forced is known: orders of two writers of a key, of which either might do.

Everything known is an edge between two events, and a choice is a pair of writers of one key, each order of which brings
edges of its own. The component has an answer if every choice can be made so that no forbidden cycle appears.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from checkers.api.verdict import Verdict
from checkers.kernels.columns import Int8, Int32, Int64


def those(first: Int64, numbers: Int32 | Int64) -> Int64:
    """All positions in first[n]:first[n + 1], for each n of the numbers."""
    counts = first[numbers + 1] - first[numbers]
    return np.repeat(first[numbers] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


class Forbidden(Enum):
    CYCLES = "cycles"
    """All of them: events have one order."""
    AT_MOST_ONE_ANTI_DEPENDENCY = "at most one anti-dependency"
    """Those in which at most one reader is put before the writer of what it did not see: transactions take effect in
    different orders at different places (parallel snapshot isolation)."""


def _no_edges() -> Int32:
    return np.zeros((0, 2), dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class Component:
    """Events have positions of their own here, from 0: those in `events`."""

    events: Int32
    """Numbers in the history, ascending."""
    edges: Int32
    """Rows (source, target), without a cycle: known."""
    key: Int32
    """Of each choice."""
    writers: Int32
    """Rows (one, other): transactions of the history. Alternative 0 of a choice: one before other; 1: the reverse."""
    first: Int64
    """Alternative j of choice i has the edges alternatives[first[2 * i + j] : first[2 * i + j + 1]]."""
    alternatives: Int32
    """Rows (source, target). The first of each alternative puts a writer before the other, all following ones put
    readers of what the former wrote before the latter."""
    forbidden: Forbidden = Forbidden.CYCLES
    anti_dependencies: Int32 = field(default_factory=_no_edges)
    """Rows (reader, writer), known; apart from `edges` only where `forbidden` does so."""

    def __len__(self) -> int:
        return len(self.key)

    def ordered(self, label: int) -> tuple[int, int]:
        """(earlier, later): the writers, if alternative `label & 1` of choice `label // 2` is taken."""
        one, other = self.writers[label // 2].tolist()
        return (other, one) if label & 1 else (one, other)

    def kept(self, taken: Int8) -> Int32:
        """Rows (source, target), events of the history: edges of the alternatives taken that an order of all events
        keeps to. Anti-dependencies that are kept apart are none of these."""
        labels = 2 * np.arange(len(self)) + taken
        rows = those(self.first, labels) if self.forbidden is Forbidden.CYCLES else self.first[labels]
        edges: Int32 = self.events[self.alternatives[rows]]
        return edges


@dataclass(frozen=True, kw_only=True)
class Refutation:
    """Why nothing will do: both alternatives of a choice are refuted in turn, or their edges have made a cycle."""

    choice: int = -1
    alternatives: tuple[Refutation, Refutation] | None = None
    """Under alternative 0, and under alternative 1."""
    cycle: tuple[int, ...] = ()
    """Positions of events: each before the next and the last before the first, by a known edge or by one of the
    alternatives taken on the way here."""


@dataclass(frozen=True, kw_only=True)
class Solution:
    """VALID with an alternative of each choice, INVALID with a refutation (if that did not get too large), UNKNOWN if a
    bound was reached."""

    verdict: Verdict
    taken: Int8
    refutation: Refutation | None = None
    conflicts: int = 0
    """That the solver had."""
