from __future__ import annotations

import random

import pytest

from system_under_test.cmq.bitmap import Bitmap


def test_a_bit_is_newly_set_once() -> None:
    bitmap = Bitmap(5)
    assert not bitmap.is_set(7)
    assert bitmap.set(7)
    assert bitmap.is_set(7)
    assert not bitmap.set(7)


def test_it_grows_no_further_than_to_the_last_number_that_is_set() -> None:
    bitmap = Bitmap(5)
    for number, size in ((5, 1), (13, 2), (12, 2), (36, 4), (37, 5)):
        bitmap.set(number)
        assert len(bitmap.bits) == size


def test_what_is_before_the_first_number_is_set() -> None:
    bitmap = Bitmap(5)
    assert bitmap.is_set(4)
    assert not bitmap.set(4)
    assert bitmap.first_unset == bitmap.next_unset(0) == 5


def test_the_next_unset_number_is_found_behind_a_long_run() -> None:
    bitmap = Bitmap(3)
    for number in range(3, 100_003):
        bitmap.set(number)
    assert bitmap.next_unset(0) == bitmap.first_unset == 100_003
    bitmap.set(100_004)
    assert bitmap.next_unset(50_000) == 100_003
    assert bitmap.next_unset(100_004) == 100_005
    assert bitmap.next_unset(500_000) == 500_000


def test_what_is_not_acknowledged_is_not_forgotten() -> None:
    bitmap = Bitmap()
    bitmap.set(1)
    with pytest.raises(AssertionError, match="not forgotten"):
        bitmap.drop_before(1)


def test_equal_bits_have_equal_bytes() -> None:
    grown, ungrown = Bitmap(4), Bitmap(4)
    for number in (5, 30):
        grown.set(number)
    ungrown.set(5)
    assert grown.to_bytes(30) == ungrown.to_bytes(30) == bytes((2, 0, 0, 0))
    assert grown.to_bytes(31) == bytes((2, 0, 0, 4))
    assert Bitmap(4).to_bytes(4) == b""


@pytest.mark.parametrize("seed", range(30))
def test_a_bitmap_is_like_a_set(seed: int) -> None:
    draw = random.Random(seed)
    bitmap, numbers = Bitmap(), set[int]()
    for _ in range(400):
        span = draw.choice((20, 300))
        number = draw.randrange(bitmap.base, bitmap.base + span)
        kind = draw.random()
        if kind < 0.6:
            assert bitmap.set(number) == (number not in numbers)
            numbers.add(number)
        elif kind < 0.7:
            for each in range(number, number + draw.randrange(40)):
                bitmap.set(each)
                numbers.add(each)
        elif kind < 0.75:
            bitmap.drop_before(draw.randint(bitmap.base, bitmap.first_unset))
        else:
            bitmap = Bitmap.from_bytes(bitmap.base, bitmap.to_bytes(bitmap.base + 700))
        for each in range(bitmap.base, bitmap.base + span):
            assert bitmap.is_set(each) == (each in numbers)
        end = draw.randint(bitmap.base, bitmap.base + 30)
        bits = sum(1 << each - bitmap.base for each in range(bitmap.base, end) if each in numbers)
        assert bitmap.to_bytes(end) == bits.to_bytes((end - bitmap.base + 7) // 8, "little")
        start = draw.randrange(bitmap.base + span)
        assert bitmap.next_unset(start) == next(n for n in range(start, 1 << 20) if n not in numbers)
        assert bitmap.first_unset == bitmap.next_unset(0)
        assert bitmap.count == sum(each >= bitmap.base for each in numbers)
