"""Which points nodes reach, and when: what a fault waits for should come.

A storm tells how often each point was reached in each of its seconds; a search tells in how many of its storms. A fault
that is added to a storm then waits for a point that was reached there, the rarer the likelier, and the likelier the
more seldom faults of its kind have struck there. Where nothing is known, as in a random storm, it waits for the first
few times alone.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.environments.environment import Moments, Timeline
from harness.run import FactsSoFar
from nemesis.trigger import Moment, Trigger

SECOND_NS = 1_000_000_000
MOMENTS: tuple[Moment, ...] = ("when", "after")
FIRST_TIME_SHARE = 0.5
"""How often a fault strikes at the first time that a point is reached, though it is known to be reached again."""
BLIND_FIRST_TIME_SHARE = 0.8
BLIND_LATEST_TIME = 5
BLIND_SHARE = 0.15
"""How often a fault waits for any point, whatever is known: its own company may lead there."""


def strike(package: str, point: str) -> str:
    """That a fault of this package struck when a node reached the point, in words that can be counted."""
    return f"{package} {point}"


Seconds = Mapping[str, Sequence[int]]
"""Point -> how often nodes reached it in each second of the storm, up to the last in which one did."""


class PointClock:
    """Reads every second how often nodes have reached each point, until the storm is healed."""

    def __init__(self, moments: Moments, timeline: Timeline, facts: FactsSoFar) -> None:
        self._moments = moments
        self._timeline = timeline
        self._facts = facts
        self._read: list[tuple[int, Counter[str]]] = []
        self._look()

    def _look(self) -> None:
        now_ns = self._timeline.now_ns()
        counts: Counter[str] = Counter()
        for (_, point), count in self._moments.counts().items():
            counts[point] += count
        self._read.append((now_ns, counts))
        if self._facts.healed_ns is None:
            self._moments.at(now_ns + SECOND_NS, self._look)

    def seconds(self) -> Seconds:
        """What was reached between two looks counts for the second of the later one, so that no point is said to come
        too early; what was reached before the first look of the storm is left out."""
        from_ns, until_ns = self._facts.storm_from_ns, self._facts.healed_ns
        if from_ns is None:
            return {}
        seconds: dict[str, Counter[int]] = {}
        for (before_ns, before), (now_ns, now) in zip(self._read, self._read[1:], strict=False):
            if before_ns < from_ns or (until_ns is not None and now_ns > until_ns):
                continue
            for point, count in (now - before).items():
                seconds.setdefault(point, Counter())[(now_ns - from_ns) // SECOND_NS] += count
        return {point: [of[second] for second in range(max(of) + 1)] for point, of in sorted(seconds.items())}


def seconds_in(rows: Iterable[Mapping[str, Any]]) -> Seconds:
    """The seconds in rows that a search keeps; see `stormproof.search.trial.ROWS`."""
    return {row["point"]: tuple(row["times"]) for row in rows}


@dataclass(frozen=True, kw_only=True)
class Points:
    """What is known of a system's points when a storm is changed."""

    seconds: Seconds = field(default_factory=dict)
    """The seconds at which points were reached in the storm that is changed."""
    storms: Mapping[str, int] = field(default_factory=dict)
    """Point -> in how many storms of the search it was reached."""
    strikes: Mapping[str, int] = field(default_factory=dict)
    """Strike -> how many storms of the search had it."""

    def times_from(self, point: str, at_s: float) -> int:
        """How often it was reached from the first whole second after this time on."""
        return sum(self.seconds.get(point, ())[math.ceil(at_s) :])

    def comes(self, trigger: Trigger, at_s: float) -> bool:
        """Whether a fault that is armed then would have struck."""
        return self.times_from(trigger.point, at_s) >= trigger.nth

    def trigger(self, points: Sequence[str], package: str, at_s: float, draw: random.Random) -> Trigger:
        """A trigger at one of these points, for a fault of this package that is armed at this time."""
        known = [] if draw.random() < BLIND_SHARE else [p for p in points if self.times_from(p, at_s)]
        if not known:
            first = draw.random() < BLIND_FIRST_TIME_SHARE
            return Trigger(
                draw.choice(points), 1 if first else draw.randint(2, BLIND_LATEST_TIME), draw.choice(MOMENTS)
            )
        weights = [self._rarity(point, package) for point in known]
        (point,) = draw.choices(known, weights=weights)
        nth = 1
        if draw.random() >= FIRST_TIME_SHARE:
            nth = int(math.exp(draw.uniform(0.0, math.log(self.times_from(point, at_s)))))
        return Trigger(point, nth, draw.choice(MOMENTS))

    def _rarity(self, point: str, package: str) -> float:
        return 1 / (1 + self.storms.get(point, 0)) / (1 + self.strikes.get(strike(package, point), 0))


NOTHING_KNOWN = Points()
