from __future__ import annotations

import random

import pytest

from system_under_test.cmq.bitmap import Bitmap
from system_under_test.cmq.deliveries import Deliveries

VISIBILITY_NS = 100


def test_a_message_is_held_by_one_consumer_at_a_time() -> None:
    deliveries, bitmap = Deliveries(VISIBILITY_NS), Bitmap()
    assert deliveries.take(bitmap, 5, 2, now_ns=0) == [0, 1]
    assert deliveries.take(bitmap, 5, 9, now_ns=10) == [2, 3, 4]
    assert deliveries.take(bitmap, 5, 9, now_ns=99) == []
    assert deliveries.take(bitmap, 6, 9, now_ns=99) == [5]


def test_what_is_not_acknowledged_in_time_comes_again_before_what_is_new() -> None:
    deliveries, bitmap = Deliveries(VISIBILITY_NS), Bitmap()
    deliveries.take(bitmap, 9, 2, now_ns=0)
    deliveries.take(bitmap, 9, 1, now_ns=50)
    assert deliveries.next_expiry_ns == 100
    assert deliveries.take(bitmap, 9, 3, now_ns=100) == [0, 1, 3]
    assert deliveries.next_expiry_ns == 150
    assert deliveries.take(bitmap, 9, 2, now_ns=200) == [2, 0]
    assert deliveries.take(bitmap, 9, 1, now_ns=200) == [1]


def test_what_is_acknowledged_does_not_come_again() -> None:
    deliveries, bitmap = Deliveries(VISIBILITY_NS), Bitmap()
    deliveries.take(bitmap, 4, 3, now_ns=0)
    for number in (0, 1, 3):
        bitmap.set(number)
    deliveries.acknowledged(0)  # Of 1, which another leader delivered, only the bit is there.
    assert deliveries.next_expiry_ns == 100
    assert deliveries.take(bitmap, 5, 9, now_ns=100) == [2, 4]


@pytest.mark.parametrize("seed", range(40))
def test_deliveries_are_like_a_table_of_all_messages(seed: int) -> None:
    draw = random.Random(seed)
    deliveries, bitmap = Deliveries(VISIBILITY_NS), Bitmap()
    expiry: dict[int, tuple[int, int]] = {}
    turn = now = end = 0
    for _ in range(500):
        now += draw.randrange(30)
        kind = draw.random()
        if kind < 0.3:
            end += draw.randrange(4)
        elif kind < 0.6:
            most = draw.randrange(5)
            unset = [number for number in range(end) if not bitmap.is_set(number)]
            expired = sorted((expiry[n], n) for n in unset if n in expiry and expiry[n][0] <= now)
            expected = ([n for _, n in expired] + [n for n in unset if n not in expiry])[:most]
            assert deliveries.take(bitmap, end, most, now) == expected
            for number in expected:
                turn += 1
                expiry[number] = (now + VISIBILITY_NS, turn)
        elif kind < 0.95 and end:
            number = draw.randrange(end)
            if bitmap.set(number):
                expiry.pop(number, None)
                deliveries.acknowledged(number)
            if draw.random() < 0.5:
                bitmap.drop_before(draw.randint(bitmap.base, bitmap.first_unset))
        elif draw.random() < 0.2:
            deliveries = Deliveries(VISIBILITY_NS)  # of a new leader
            expiry.clear()
        assert deliveries.next_expiry_ns == min((each[0] for each in expiry.values()), default=None)
