"""Beats: one shape at a steady pace, written as a sentence: `kill one of all every 10 for 5`.

A beat goes wherever the name of a package goes. It strikes once in each interval, at a moment that the
seed draws from the interval's first half (or its beginning, if the fault lasts longer than the other half), and heals
the given seconds later, before the next interval begins.
A trigger stands behind the shape: `kill it when alter-proposed every 10 for 5` arms the fault at that moment.
Shapes that strike at one moment are joined: `pause one of all and skew clocks of all every 10 for 8`.
`nemesis/sentence.py` reads the sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.errors import UsageError
from harness.seed import Seed
from nemesis.schedule import Entry
from nemesis.shape import Shape
from nemesis.trigger import Trigger

MOST_STRIKES = 10_000
"""How often one beat may strike in one storm. Each strike is an entry of the schedule and two rows of the fault log."""


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """A sentence says its whole pace: `--set interval_s=2`, beside sentences alone, would be ignored and is refused."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Stands where a package stands; see the module. Its text is the sentence."""

    shape: Shape
    interval_s: float
    heal_after_s: float
    trigger: Trigger | None = None
    """It does not strike at its moment, but the next time that a node reaches a point."""
    settings_type = NoSettings

    def __str__(self) -> str:
        what = str(self.shape) if self.trigger is None else f"{self.shape} {self.trigger}"
        return f"{what} every {self.interval_s:g} for {self.heal_after_s:g}"

    @property
    def name(self) -> str:
        return str(self)

    @property
    def fault(self) -> str:
        """The kinds that the environment must be able to apply, with `+` between."""
        return self.shape.kind

    @property
    def waits_for_points(self) -> bool:
        return self.trigger is not None

    def is_kept(self) -> bool:
        """Whether every fault lasts as long as the sentence says, and is over before the next interval begins."""
        return self.heal_after_s < self.interval_s

    def require_kept(self) -> None:
        """Raises UsageError for a beat that is not kept, with sentences near it that are."""
        if self.is_kept():
            return
        shorter = replace(self, heal_after_s=0.8 * self.interval_s)
        rarer = replace(self, interval_s=1.25 * self.heal_after_s)
        raise UsageError(
            f"nemesis '{self.name}': a fault of {self.heal_after_s:g} s is not over when the next interval begins, "
            f"{self.interval_s:g} s after its own; it must be shorter than the interval, "
            f"as in '{shorter.name}' or '{rarer.name}'"
        )

    def require_strikes(self, storm_s: float) -> None:
        """Raises UsageError for a beat that never strikes in a storm of so many seconds, or too often."""
        if self.interval_s > storm_s:
            raise UsageError(
                f"nemesis '{self.name}' would never strike: the storm lasts {storm_s:g} s (its time limit, less the "
                f"part for --liveness), and no interval of {self.interval_s:g} s fits in; make it at most {storm_s:g}"
            )
        if storm_s / self.interval_s > MOST_STRIKES:
            raise UsageError(
                f"nemesis '{self.name}' would strike {storm_s / self.interval_s:,.0f} times in a storm of "
                f"{storm_s:g} s, at most {MOST_STRIKES:,} are possible; make the interval at least "
                f"{storm_s / MOST_STRIKES:g}"
            )

    def schedule(self, seed: Seed, settings: NoSettings, time_limit_s: float) -> tuple[Entry, ...]:
        # A fault that ended with its interval whatever was left of it would last less than its sentence says.
        share = min(0.5, 1 - self.heal_after_s / self.interval_s)
        entries: list[Entry] = []
        for number in range(int(time_limit_s / self.interval_s)):
            draw = seed.child(self.name, str(number)).stream()
            at_s = self.interval_s * (number + draw.random() * share)
            end_s = min(at_s + self.heal_after_s, self.interval_s * (number + 1), time_limit_s)
            entries.append(Entry.between(at_s, end_s, self.name, number, self.shape, self.trigger))
        return tuple(entries)


def every(interval_s: float, shape: Shape, *, heal_after_s: float, trigger: Trigger | None = None) -> Beat:
    """A shape once in each interval, for a storm's `nemesis`; with a trigger (`when`, `after`) armed once in each.

    Raises UsageError for a fault that is not shorter than the interval.
    """
    beat = Beat(shape, interval_s, heal_after_s, trigger)
    beat.require_kept()
    return beat
