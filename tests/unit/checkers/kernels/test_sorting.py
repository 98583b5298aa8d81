"""Sorting inside of kernels does what numpy's stable sort does."""

from __future__ import annotations

import numpy as np
import pytest

from checkers.kernels.sorting import ascending


@pytest.mark.parametrize("length", [0, 1, 2, 3, 17, 100, 30_000])
def test_positions_ascend_by_key_and_ties_keep_their_order(length: int) -> None:
    rng, number = np.random.default_rng(length), np.arange(length)
    for keys in (
        number,
        number[::-1].copy(),
        number + rng.integers(0, 40, length),
        rng.integers(0, length // 3 + 1, length),
        np.concatenate((number[length // 2 :], number[: length // 2])),
    ):
        assert ascending(keys).tolist() == np.argsort(keys, kind="stable").tolist()
