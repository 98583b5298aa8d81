"""Sets of configurations keep what is in them, however many more they are to have room for."""

from __future__ import annotations

import numpy as np

from checkers.linearizable.search.configurations import no_rows, with_room


def test_a_set_gets_room_for_as_many_rows_as_are_asked_for() -> None:
    rows = no_rows(4, 1)
    rows.row[0] = 7, 1, 0, 3
    rows.place[0], rows.size[0] = 0, 1
    capacity = len(rows.row)
    grown = with_room(rows, 5 * capacity)
    assert len(grown.row) > 5 * capacity
    assert grown.size[0] == 1
    assert np.array_equal(grown.row[0], rows.row[0])
