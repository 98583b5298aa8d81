"""Sets of configurations keep what is in them, however many more they are to have room for, and what may be needed."""

from __future__ import annotations

import numpy as np

from checkers.linearizable.search.configurations import no_rows, with_room
from checkers.linearizable.search.superfluous import OpenSlots, without_superfluous


def test_a_set_gets_room_for_as_many_rows_as_are_asked_for() -> None:
    rows = no_rows(4, 1)
    rows.row[0] = 7, 1, 0, 3
    rows.place[0], rows.size[0] = 0, 1
    capacity = len(rows.row)
    grown = with_room(rows, 5 * capacity)
    assert len(grown.row) > 5 * capacity
    assert grown.size[0] == 1
    assert np.array_equal(grown.row[0], rows.row[0])


def test_what_may_still_overwrite_unseen_is_kept_beside_what_owes_that() -> None:
    """Slot 0 reads, and slot 1 overwrites; the second configuration has placed the read."""
    reads, overwrites, others = (np.array([bits], dtype=np.int64) for bits in (0b01, 0b10, 0b00))
    slots = OpenSlots(reads, overwrites, others)
    free, owing = (0, 0, 0, 0b00, 0b10), (0, 0, 0, 0b01, 0b00)
    assert len(without_superfluous(np.array([free, owing], dtype=np.int64), slots)) == 2
    free_as_well = (0, 0, 0, 0b01, 0b10)
    (kept,) = without_superfluous(np.array([free, free_as_well], dtype=np.int64), slots)
    assert tuple(kept.tolist()) == free_as_well
