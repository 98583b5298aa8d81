"""Decides which storms are tried next: random ones, and changes of those that led to something new.

Rounds have a fixed size, and a guide learns from whole rounds, in the order of their storms' numbers. When it proposes
a round, it knows all rounds before it but the last LAG. So what it proposes follows from the search and the rows that
it knows, and not from the order in which storms ended, or the machines that ran them.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.api.verdict import Verdict
from harness.seed import Seed
from stormproof.search.mutate import mutated
from stormproof.search.points import Points, Seconds, seconds_in
from stormproof.search.sampling import drawn_storm
from stormproof.search.space import Space
from stormproof.search.trial import GUIDED, RANDOM, Task

ROUND = 16
"""How many storms the guide proposes, and learns of, together."""
LAG = 1
"""How many rounds are under way, and unknown to the guide, when it proposes the next one. The next one's storms take
the processors that they leave free."""
RANDOM_SHARE = 0.2
"""The share of random storms in a guided search, as a control."""


@dataclass
class Parent:
    """A storm that led to something new."""

    task: Task
    features: tuple[int, ...]
    seconds: Seconds
    """When which points were reached in it."""
    children: int = 0

    def weight(self, seen: Counter[int]) -> float:
        """Rare features weigh more, and a parent of many children less."""
        return sum(1.0 / seen[feature] for feature in self.features) / (1.0 + self.children)


@dataclass(kw_only=True)
class Guide:
    """What a search has seen so far."""

    space: Space
    root: int
    is_guided: bool = True
    seen: Counter[int] = field(default_factory=Counter)
    """Feature -> storms that led to it and could be judged."""
    reached: Counter[str] = field(default_factory=Counter)
    """Point -> storms in which it was reached while they struck."""
    strikes: Counter[str] = field(default_factory=Counter)
    """Package and point -> storms in which a fault of the one struck at the other."""
    unguided: set[int] = field(default_factory=set)
    parents: list[Parent] = field(default_factory=list)

    def proposed(self, numbers: Sequence[int]) -> list[Task]:
        """The next storms."""
        weights = [parent.weight(self.seen) for parent in self.parents]
        cumulated = list(itertools.accumulate(weights))
        return [self._proposed(number, cumulated) for number in numbers]

    def _proposed(self, number: int, cumulated: list[float]) -> Task:
        draw = Seed(self.root).child("guide", str(number)).stream()
        if not self.is_guided or not self.parents or draw.random() < RANDOM_SHARE:
            return Task(number=number, origin=RANDOM, scenario=drawn_storm(self.space, self.root, number))
        parent, other = self._chosen(cumulated, draw), self._chosen(cumulated, draw)
        parent.children += 1
        known = Points(seconds=parent.seconds, storms=self.reached, strikes=self.strikes)
        scenario = mutated(parent.task.scenario, other.task.scenario, self.space, known, draw)
        return Task(number=number, origin=GUIDED, parent=parent.task.number, scenario=scenario)

    def _chosen(self, cumulated: list[float], draw: random.Random) -> Parent:
        place = bisect.bisect(cumulated, draw.random() * cumulated[-1])
        return self.parents[min(place, len(self.parents) - 1)]

    def learns(self, rows: Iterable[Mapping[str, Any]]) -> int:
        """Take in what a round led to; returns how many features were new.

        Features of a storm whose verdict is UNKNOWN stay new: it proved nothing, and its children would prove as
        little.
        """
        before = len(self.seen)
        for row in sorted(rows, key=lambda row: int(row["number"])):
            seconds = seconds_in(row["points"])
            self.reached.update(seconds.keys())
            self.strikes.update(row["strikes"])
            self.unguided.update(row["unguided"])
            if row["verdict"] == Verdict.UNKNOWN.value:
                continue
            features = tuple(row["features"])
            new = [feature for feature in features if feature not in self.seen]
            self.seen.update(features)
            if new and row["verdict"] != Verdict.INVALID.value:
                self.parents.append(Parent(Task.of_row(row), features, seconds))
        return len(self.seen) - before
