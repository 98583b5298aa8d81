"""Columns of numbers become small ones in the same order."""

from __future__ import annotations

import numpy as np
import pytest

from checkers.kernels.columns import compact


@pytest.mark.parametrize(
    ("values", "small"),
    [([], []), ([7], [0]), ([9, 7, 9], [2, 0, 2]), ([10**12, -(10**12), 10**12], [1, 0, 1])],
    ids=["none", "one", "close", "far apart"],
)
def test_compact_numbers_begin_at_0_and_keep_their_order(values: list[int], small: list[int]) -> None:
    assert compact(np.array(values, dtype=np.int64)).tolist() == small
