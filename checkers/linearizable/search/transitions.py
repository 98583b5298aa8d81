"""States by number, and what operations do to them, computed when the search needs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized

import numpy as np

from checkers import searching
from checkers.kernels.columns import Int64
from checkers.linearizable.search.events import ASKED, Moves, find
from harness.compiled import compiled

BETWEEN_LOOKS = 1_024
"""So many entries are computed before a look at the clock."""

StatesAfter = Callable[[Hashable, int], Sequence[Hashable]]
"""The states that an operation of this kind may lead to; none if it cannot happen in this state."""


class Transitions:
    """The table of moves, which grows."""

    def __init__(self, initial: Hashable, kinds: int, step: StatesAfter) -> None:
        self.states: list[Hashable] = [initial]
        self.elements = 0
        self._table = np.full((64, 3), -1, dtype=np.int64)
        self._targets = np.zeros(64, dtype=np.int64)
        self._missing = np.empty(ASKED, dtype=np.int64)
        self._asked = np.zeros(1, dtype=np.int64)
        self._number = {initial: 0}
        self._kinds = max(kinds, 1)
        self._step = step
        self._entries = 0
        self._used = 0

    def moves(self) -> Moves:
        return Moves(self._table, self._targets, self._missing, self._asked)

    def fill(self) -> None:
        """Compute the entries that are asked for."""
        missing = self._missing[: self._asked[0]]
        self._asked[0] = 0
        for entry in sorted(set(missing.tolist())):
            if self._entries % BETWEEN_LOOKS == 0 and searching.is_over():
                break
            state, kind = divmod(entry, self._kinds)
            numbers = [self._numbered(target) for target in self._step(self.states[state], kind)]
            while self._used + len(numbers) > len(self._targets):
                self._targets = np.concatenate((self._targets, np.zeros_like(self._targets)))
            self._targets[self._used : self._used + len(numbers)] = numbers
            if 2 * self._entries >= len(self._table):
                self._table = _rehashed(self._table)
            self._table[find(self._table, entry)] = (entry, self._used, len(numbers))
            self._used += len(numbers)
            self._entries += 1

    def _numbered(self, state: Hashable) -> int:
        number = self._number.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.elements += 1 + (len(state) if isinstance(state, Sized) else 0)
        return number


@compiled
def _rehashed(table: Int64) -> Int64:
    grown = np.full((4 * len(table), 3), -1, dtype=np.int64)
    for i in range(len(table)):
        if table[i, 0] >= 0:
            grown[find(grown, table[i, 0])] = table[i]
    return grown
