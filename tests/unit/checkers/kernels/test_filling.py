"""Passes of a kernel that disagree are told, before anything is written where it does not belong."""

from __future__ import annotations

import numpy as np
import pytest

from checkers.kernels.columns import Int64
from checkers.kernels.gap_filling import next_place, require_filled, require_room
from harness.compiled import compiled


@compiled
def filled_by(groups: Int64, first: Int64) -> Int64:
    filled = first[:-1].copy()
    elements = np.full(first[-1], -1, dtype=np.int64)
    for i in range(len(groups)):
        elements[next_place(filled, first, groups[i])] = i
    require_filled(filled, first)
    return elements


@compiled
def collected(count: int, places: int) -> int:
    for i in range(count):
        require_room(i, places)
    return count


FIRST = np.array([0, 2, 3])


def test_elements_take_the_places_of_their_groups() -> None:
    assert filled_by(np.array([1, 0, 0]), FIRST).tolist() == [1, 2, 0]
    assert collected(3, 3) == 3


@pytest.mark.parametrize(
    ("groups", "says"),
    [([0, 0, 0], "more elements than were counted"), ([0, 1], "fewer elements than were counted")],
)
def test_a_group_that_was_counted_otherwise_is_told(groups: list[int], says: str) -> None:
    with pytest.raises(RuntimeError, match=f"two passes of a kernel disagree: a group has {says}"):
        filled_by(np.array(groups), FIRST)


def test_more_than_there_is_room_for_is_told() -> None:
    with pytest.raises(RuntimeError, match="there are more elements than were counted"):
        collected(4, 3)
