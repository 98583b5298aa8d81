"""Random choices that are a function of a seed and a number, so that values may hold them.

A generator is a value: asking it twice must give the same answer twice. A source of randomness that changes
when it is asked cannot be part of one. A place in a generator therefore holds a base (64 bits of its seed) and
a counter; `Draw.at(base, n)` gives the n-th bundle of choices, which is splitmix64 (Steele, Lea and Flood,
OOPSLA 2014) started from a hash of both. About 1 µs a choice. Not for cryptography.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class Draw:
    """One bundle of choices. Lives only within one call: make it, draw from it, drop it."""

    __slots__ = ("_state",)

    def __init__(self, state: int) -> None:
        self._state = state & _MASK

    @classmethod
    def at(cls, base: int, number: int) -> Draw:
        """The bundle with this number at the place whose seed has these 64 bits."""
        return cls(_mix(_mix(base & _MASK) + number * _GAMMA & _MASK))

    def bits(self) -> int:
        """64 random bits."""
        self._state = (self._state + _GAMMA) & _MASK
        return _mix(self._state)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """At least low, below high."""
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def below(self, count: int) -> int:
        """An integer from 0 to count - 1, each as likely (but for a bias below count / 2**64)."""
        return self.bits() * count >> 64

    def choice(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def exponential(self, mean: float) -> float:
        """Waiting times of a Poisson process."""
        return -mean * math.log1p(-self.uniform())

    def weighted(self, weights: Sequence[float]) -> int:
        """A position, as likely as its weight is large. Zero weights are never drawn."""
        cumulative = list(accumulate(weights))
        return bisect_right(cumulative, self.uniform(0.0, cumulative[-1]), hi=len(cumulative) - 1)

    def zipf(self, count: int, skew: float = 1.0) -> int:
        """A rank from 0 to count - 1; rank r is as likely as (r + 1) ** -skew is large. O(count) once, then O(log)."""
        cumulative = _zipf_cumulative(count, skew)
        return bisect_right(cumulative, self.uniform(0.0, cumulative[-1]), hi=count - 1)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


@lru_cache(maxsize=64)
def _zipf_cumulative(count: int, skew: float) -> tuple[float, ...]:
    return tuple(accumulate((rank + 1) ** -skew for rank in range(count)))
