"""Up to where two logs are equal, found by comparing parts, against looking at every byte."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.rocketmq.broker.classic.log_comparison import (
    FIRST_PART_BYTES,
    LARGEST_PART_BYTES,
    Extent,
    Part,
    common_end,
)

HEADER = 8
"""Bytes of a message that nothing else has: who it is. Its body is zeros, as any other's."""
SIZES = st.lists(st.integers(HEADER, 3 * FIRST_PART_BYTES), max_size=12)


def log(origins: list[tuple[int, int]]) -> tuple[bytes, list[int]]:
    """The bytes of messages, by (number, size), and where they begin."""
    data, begins = b"", []
    for number, size in origins:
        begins.append(len(data))
        data += number.to_bytes(HEADER, "big") + bytes(size - HEADER)
    return data, begins


def found(own: bytes, theirs: bytes, begins: list[int], start: int) -> tuple[int | None, int]:
    """What is found, and how many parts were compared."""

    def tells(part: Part) -> bool:
        return any(part[0] <= begin and begin + HEADER <= part[1] for begin in begins)

    search = common_end(Extent(start, len(own)), Extent(start, len(theirs)), tells)
    asked, is_equal = 0, None
    while True:
        try:
            part = next(search) if is_equal is None else search.send(is_equal)
        except StopIteration as end:
            return end.value, asked
        assert start <= part[0] <= part[1] <= min(len(own), len(theirs))
        assert part[1] - part[0] <= LARGEST_PART_BYTES
        asked, is_equal = asked + 1, own[slice(*part)] == theirs[slice(*part)]


@given(SIZES, SIZES, SIZES, st.booleans())
def test_it_is_the_end_of_the_longest_common_beginning(
    common: list[int], own: list[int], theirs: list[int], has_begun_later: bool
) -> None:
    shared = list(enumerate(common))
    mine, begins = log([*shared, *((1000 + n, size) for n, size in enumerate(own))])
    others, _ = log([*shared, *((2000 + n, size) for n, size in enumerate(theirs))])
    start = begins[1] if has_begun_later and len(shared) > 1 else 0
    shortest = min(len(mine), len(others))
    same = next((at for at in range(shortest) if mine[at] != others[at]), shortest)
    has_message = any(start <= begin and begin + HEADER <= same for begin in begins)
    end, asked = found(mine, others, begins, start)
    assert end == (same if has_message else None)
    assert asked <= 60


def test_where_nothing_was_lost_one_comparison_is_enough() -> None:
    mine, begins = log([(n, 200) for n in range(5000)])
    assert found(mine, mine + b"x" * 400, begins, 0) == (len(mine), 1)


def test_a_lost_tail_is_found_by_few_comparisons_however_long_the_log_is() -> None:
    mine, begins = log([(n, 200) for n in range(5000)])
    others, _ = log([(n if n < 4900 else 9000 + n, 200) for n in range(5000)])
    end, asked = found(mine, others, begins, 0)
    assert end is not None
    assert 4900 * 200 <= end < 4901 * 200
    assert asked < 40


def test_parts_grow_from_the_end_backwards() -> None:
    mine, begins = log([(n, 100) for n in range(1000)])
    others, _ = log([(n + 5000, 100) for n in range(1000)])
    search = common_end(Extent(0, len(mine)), Extent(0, len(others)), lambda part: bool(begins))
    parts = [next(search)]
    while parts[-1][0] > 0:
        parts.append(search.send(False))
    assert all(earlier[0] == later[1] for earlier, later in pairwise(parts))
    assert [end - start for start, end in parts[:3]] == [1024, 2048, 4096]


def test_logs_of_which_one_begins_where_the_other_has_ended_have_nothing_in_common() -> None:
    for own, theirs in ((Extent(4096, 5000), Extent(0, 700)), (Extent(4096, 5000), Extent(0, 4096))):
        search = common_end(own, theirs, lambda _: True)
        with pytest.raises(StopIteration) as ended:
            next(search)
        assert ended.value.value is None
