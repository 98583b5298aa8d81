"""A quantity that is known to lie between two others: what a measurement on a busy machine says, and no more.

Between a question and its answer lies the moment that is asked about. Whatever the machine did meanwhile widens what a
reading allows, and never makes what is healthy look wrong; a narrow one of several holds what is broken.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Between:
    """Ends are included."""

    least: float
    most: float

    @property
    def width(self) -> float:
        return self.most - self.least

    def minus(self, other: Between | float) -> Between:
        if not isinstance(other, Between):
            other = Between(other, other)
        return Between(self.least - other.most, self.most - other.least)

    def times(self, factor: float) -> Between:
        return Between(*sorted((self.least * factor, self.most * factor)))

    def may_be(self, value: Between | float, within: float) -> bool:
        """Whether the two are the same for all that is known, or no further from each other than `within`."""
        apart = self.minus(value)
        return apart.least <= within and apart.most >= -within


def narrowest(readings: list[Between]) -> Between:
    return min(readings, key=lambda reading: reading.width)
