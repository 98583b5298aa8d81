"""Tallies: other counts of kernels than anomalies, for statistics and reasons.

They travel with findings (`checkers.api.findings`). Times are counted in bins of a histogram that are at most 1/32
wide, so that quantiles are known for any number of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from checkers.api.anomaly import Anomaly
from checkers.kernels.columns import Int64

STEPS_BITS = 5
STEPS_PER_OCTAVE = 1 << STEPS_BITS
"""Numbers are counted in bins that are at most 1/32 wide, relative to their value."""
BINS = STEPS_PER_OCTAVE * 64


def bins_of(values: Int64) -> Int64:
    """The bin of each number, that of 0 for negative ones; exact below 2 * STEPS_PER_OCTAVE."""
    value = np.maximum(values, 0)
    octave = np.maximum(np.frexp(value.astype(np.float64))[1] - STEPS_BITS - 1, 0).astype(np.int64)
    return np.asarray(octave * STEPS_PER_OCTAVE + (value >> octave), dtype=np.int64)


def lowest_of_bin(number: int) -> int:
    """The lowest number that `bins_of` puts into this bin."""
    octave = max(number // STEPS_PER_OCTAVE - 1, 0)
    return (number - octave * STEPS_PER_OCTAVE) << octave


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What was counted under one name."""

    bins: Mapping[int, int] = field(default_factory=dict)
    """The count in each bin of its histogram. A single count is in bin 0."""
    examples: tuple[Anomaly, ...] = ()
    """The smallest examples, if some are to be named."""

    @property
    def count(self) -> int:
        return sum(self.bins.values())

    def quantiles(self, shares: Mapping[str, float]) -> dict[str, int]:
        """The quantiles by the names of their shares, each at most one bin below the exact one. There must be at least
        one number."""
        numbers = sorted(self.bins)
        reached = np.cumsum([self.bins[number] for number in numbers])
        return {
            name: lowest_of_bin(numbers[int(np.searchsorted(reached, share * reached[-1]))])
            for name, share in shares.items()
        }


NO_TALLY = Tally()
