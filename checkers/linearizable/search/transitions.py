"""States by number, and what operations do to them. Both are computed when the search needs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized

import numpy as np

from checkers import search_budget
from checkers.kernels.columns import Int64
from checkers.linearizable.search.events import ASKED, ASKED_AT_FIRST, Moves, find
from harness.compiled import compiled

BETWEEN_LOOKS = 1_024
"""How many entries are computed between two looks at the clock."""

StatesAfter = Callable[[Hashable, int], Sequence[Hashable]]
"""A function from a state and a kind to the states that may follow; none if the operation cannot happen then."""


class Transitions:
    """The table of moves, which grows. All searches of a problem and its parts share one: what an operation does to a
    state does not depend on when it happens."""

    def __init__(self, kinds: int, step: StatesAfter) -> None:
        self.states: list[Hashable] = []
        self.elements = 0
        self._table = np.full((64, 3), -1, dtype=np.int64)
        self._targets = np.zeros(64, dtype=np.int64)
        self._missing = np.empty(ASKED_AT_FIRST, dtype=np.int64)
        self._asked = np.zeros(1, dtype=np.int64)
        self._number: dict[Hashable, int] = {}
        self._kinds = max(kinds, 1)
        self.step = step
        self._entries = 0
        self._used = 0

    def moves(self) -> Moves:
        return Moves(self._table, self._targets, self._missing, self._asked)

    def number(self, state: Hashable) -> int:
        number = self._number.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.elements += 1 + (len(state) if isinstance(state, Sized) else 0)
        return number

    def fill(self) -> None:
        """Compute the entries that were asked for."""
        asked = sorted(set(self._missing[: self._asked[0]].tolist()))
        if self._asked[0] == len(self._missing) < ASKED:
            self._missing = np.empty(2 * len(self._missing), dtype=np.int64)
        self._asked[0] = 0
        entries: list[int] = []
        targets: list[list[int]] = []
        for entry in asked:
            if (self._entries + len(entries)) % BETWEEN_LOOKS == 0 and search_budget.is_over():
                break
            entries.append(entry)
            targets.append(self._after(entry))
        self._enter(entries, targets)

    def _after(self, entry: int) -> list[int]:
        state, kind = divmod(entry, self._kinds)
        return [self.number(target) for target in self.step(self.states[state], kind)]

    def _enter(self, entries: list[int], targets: list[list[int]]) -> None:
        counts = np.array([len(some) for some in targets], dtype=np.int64)
        first = self._used + np.cumsum(counts) - counts
        used = self._used + int(counts.sum())
        while used > len(self._targets):
            self._targets = np.concatenate((self._targets, np.zeros_like(self._targets)))
        self._targets[self._used : used] = [target for some in targets for target in some]
        self._used = used
        self._entries += len(entries)
        while 2 * self._entries >= len(self._table):
            self._table = _rehashed(self._table)
        _entered(self._table, np.array(entries, dtype=np.int64), first, counts)


@compiled
def _entered(table: Int64, entries: Int64, first: Int64, counts: Int64) -> None:
    for i in range(len(entries)):
        at = find(table, entries[i])
        table[at, 0] = entries[i]
        table[at, 1] = first[i]
        table[at, 2] = counts[i]


@compiled
def _rehashed(table: Int64) -> Int64:
    grown = np.full((4 * len(table), 3), -1, dtype=np.int64)
    for i in range(len(table)):
        if table[i, 0] >= 0:
            grown[find(grown, table[i, 0])] = table[i]
    return grown
