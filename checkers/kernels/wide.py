"""Sums of integers of 64 bits that need more than 64 bits themselves.

A number is high · 2^32 + low, with low from 0 to 2^32 - 1 in normal form. Up to 2^31 of them can be added, each half by
itself, before a half overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int64

HALF = 32
LOW = (1 << HALF) - 1


class Wide(NamedTuple):
    """Numbers, in two halves."""

    high: Int64
    low: Int64

    @classmethod
    def of(cls, values: Int64) -> Wide:
        return cls(values >> HALF, values & LOW)

    @classmethod
    def integer(cls, value: int) -> Wide:
        """One number, of at most 95 bits."""
        return cls(np.array([value >> HALF], dtype=np.int64), np.array([value & LOW], dtype=np.int64))

    def __add__(self, other: Wide) -> Wide:  # type: ignore[override]
        low = self.low + other.low
        return Wide(self.high + other.high + (low >> HALF), low & LOW)

    def __sub__(self, other: Wide) -> Wide:
        low = self.low - other.low
        return Wide(self.high - other.high + (low >> HALF), low & LOW)

    def __lt__(self, other: Wide) -> Bool:  # type: ignore[override]
        return np.asarray((self.high < other.high) | ((self.high == other.high) & (self.low < other.low)))

    def differs(self, other: Wide) -> Bool:
        return np.asarray((self.high != other.high) | (self.low != other.low))

    def at(self, positions: Int64) -> Wide:
        return Wide(self.high[positions], self.low[positions])

    def integers(self) -> list[int]:
        return [(high << HALF) + low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]


def cumulated(values: Int64) -> Wide:
    """By position, with one more for the end: the sum of all values before it."""
    of = Wide.of(values)
    high, low = (np.append(0, np.cumsum(half)) for half in of)
    return Wide(high + (low >> HALF), low & LOW)


def summed(values: Int64, group: Int64, groups: int) -> Wide:
    """By number of a group: the sum of its values."""
    high, low = np.zeros((2, groups), dtype=np.int64)
    of = Wide.of(values)
    np.add.at(high, group, of.high)
    np.add.at(low, group, of.low)
    return Wide(high + (low >> HALF), low & LOW)
