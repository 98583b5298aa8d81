"""The last look at an order before VALID is said: does it explain what was read, or not."""

from __future__ import annotations

import numpy as np
import pytest

from checkers.transactions.orders.events import accesses
from checkers.transactions.orders.replay import explains
from tests.references.transaction_histories import committed

SERIAL, SNAPSHOT = 1, 2
"""Events of a transaction: at snapshot isolation 2t, where it begins, and 2t + 1, where it commits."""

OVERTAKEN = "w(x,1)\n r(x,1) w(x,2)\n r(x,1)"


@pytest.mark.parametrize(
    ("text", "width", "order", "does"),
    [
        ("w(x,1)\n r(x,1)", SERIAL, [1, 2], True),
        ("w(x,1)\n r(x,1)", SERIAL, [2, 1], False),
        ("w(x,1)\n r(x,-)", SERIAL, [1, 2], False),
        ("w(x,1)\n r(x,-)", SERIAL, [0, 2, 1], True),
        (OVERTAKEN, SERIAL, [1, 3, 2], True),
        (OVERTAKEN, SERIAL, [1, 2, 3], False),
        ("w(x,1)\n r(x,1)", SNAPSHOT, [2, 3, 4, 5], True),
        ("w(x,1)\n r(x,1)", SNAPSHOT, [2, 4, 3, 5], False),
        (OVERTAKEN, SNAPSHOT, [2, 3, 4, 6, 5, 7], True),
        (OVERTAKEN, SNAPSHOT, [2, 3, 4, 5, 6, 7], False),
        ("r(x,-) w(y,1)\n r(y,-) w(x,1)", SNAPSHOT, [2, 4, 3, 5], True),
        ("w(x,1)\n w(x,2)", SNAPSHOT, [2, 3, 4, 5], True),
        ("w(x,1)\n w(x,2)", SNAPSHOT, [2, 4, 3, 5], False),
        ("w(x,1)\n w(x,2)", SNAPSHOT, [2, 4, 5, 3], False),
        ("w(x,1)\n w(y,2)", SNAPSHOT, [2, 4, 3, 5], True),
    ],
)
def test_an_order_explains_what_was_read_if_each_read_is_of_the_last_version_before(
    text: str, width: int, order: list[int], does: bool
) -> None:
    assert explains(accesses(committed(text)), width, np.array(order, dtype=np.int32)) is does
