"""A search: rounds of storms, tried wherever there is a processor, learned from, kept."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from checkers.api.verdict import Verdict
from harness import path_name
from stormproof.search.guide import LAG, ROUND, Guide
from stormproof.search.space import Space
from stormproof.search.store import Store
from stormproof.search.trial import ROWS, Task, tried
from stormproof.session import registry

Trier = Callable[[list[Task]], Future[pa.Table]]
"""Begins to try storms, while others may be under way; rows of ROWS, in the order of their numbers."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Everything that decides what is tried."""

    space: Space
    root: int
    numbers: range | None = None
    """The numbers of the storms; None: from 0 on, without an end."""
    is_guided: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "system": self.space.system,
            "workload": self.space.workload,
            "mutant": self.space.mutant,
            "settings": dict(sorted(self.space.settings.items())),
            "nemesis": sorted(self.space.nemesis),
            "environment": self.space.environment,
            "root": self.root,
            "first": 0 if self.numbers is None else self.numbers.start,
            "guided": self.is_guided,
            "round": self.round_size,
            "lag": LAG,
        }

    @property
    def name(self) -> str:
        """The name of its directory. Searches that only differ in settings or packages of faults have the same."""
        space = self.space
        kind = "" if space.is_simulated else space.environment
        how = "" if self.is_guided or kind else "random"
        parts = [space.system, kind, space.workload or "", space.mutant or "", how]
        return path_name.made_of("-".join([*filter(None, parts), str(self.root)]), otherwise="search")

    @property
    def round_size(self) -> int:
        """In real time a storm takes minutes, and is kept as soon as it is judged."""
        return ROUND if self.space.is_simulated else 1

    def words(self) -> str:
        planted = f" with {self.space.mutant}" if self.space.mutant else ""
        how = "guided" if self.is_guided else "random"
        of = f", of {', '.join(sorted(self.space.nemesis))}" if self.space.nemesis else ""
        where = "" if self.space.is_simulated else f" in {self.space.environment}"
        return f"{self.space.system}{planted}{where}, {how}{of}, root seed {self.root}"

    def rounds(self) -> Iterator[range]:
        """The numbers of the storms of each round."""
        first = 0 if self.numbers is None else self.numbers.start
        while self.numbers is None or first < self.numbers.stop:
            stop = first + self.round_size
            stop = stop if self.numbers is None else min(stop, self.numbers.stop)
            yield range(first, stop)
            first = stop


@dataclass(kw_only=True)
class Tally:
    """What a search came to so far."""

    guide: Guide
    storms: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    causes: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    """Anomalies -> the numbers of the storms that show them."""
    reached: Counter[str] = field(default_factory=Counter)
    processor_s: float = 0.0
    simulated_s: float = 0.0
    new_features: int = 0
    began: float = field(default_factory=time.monotonic)

    invalid: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Number -> the row of a storm that broke a promise."""

    def takes(self, rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Learn from a round; returns the first row of each set of anomalies that was not met before."""
        self.new_features = self.guide.learns(rows)
        first: list[Mapping[str, Any]] = []
        for row in rows:
            self.storms += 1
            self.verdicts[row["verdict"]] += 1
            self.reached.update(row["reached"])
            self.processor_s += row["processor_s"]
            self.simulated_s += row["simulated_s"]
            if row["verdict"] == Verdict.INVALID.value:
                cause = tuple(row["anomalies"])
                if cause not in self.causes:
                    first.append(row)
                self.causes.setdefault(cause, []).append(row["number"])
                self.invalid[row["number"]] = row
        return first

    def never_reached(self) -> tuple[str, ...]:
        """The points of the system that no storm led to; none if the environment does not see points."""
        if not self.guide.space.is_simulated:
            return ()
        system, settings = registry.configured_system(self.guide.space.system, self.guide.space.settings)
        return tuple(sorted(set(system.cluster(settings).points) - self.reached.keys()))

    def words(self) -> str:
        """How far it is, in one line."""
        is_simulated = self.guide.space.is_simulated
        passed_s = max(time.monotonic() - self.began, 1e-9)
        seen = (
            f"{len(self.guide.seen):,} states and pairs ({self.new_features} new at last), "
            f"{len(self.reached)} points reached, "
        )
        found = f"{len(self.causes)} causes in {sum(map(len, self.causes.values()))} storms" if self.causes else "none"
        return (
            f"{self.storms:,} in {passed_s:.0f} s ({60 * self.storms / passed_s:.{0 if is_simulated else 1}f}/min), "
            f"{seen if is_simulated else ''}found: {found}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "storms": self.storms,
            "verdicts": dict(sorted(self.verdicts.items())),
            "causes": [{"anomalies": list(name), "storms": numbers} for name, numbers in sorted(self.causes.items())],
            "features": len(self.guide.seen),
            "unguided": len(self.guide.unguided),
            "reached": dict(sorted(self.reached.items())),
            "never_reached": list(self.never_reached()),
            "processor_s": round(self.processor_s, 3),
            "simulated_s": round(self.simulated_s, 3),
        }


def here(tasks: list[Task]) -> Future[pa.Table]:
    """`Trier`: in this process, one after the other, all before it returns."""
    return ended([tried(task) for task in tasks])


def ended(rows: Sequence[Mapping[str, Any]]) -> Future[pa.Table]:
    """A round whose storms were tried."""
    future: Future[pa.Table] = Future()
    future.set_result(pa.Table.from_pylist(rows, schema=ROWS))
    return future


def searched(
    search: Search,
    store: Store | None,
    trier: Trier,
    *,
    goes_on: Callable[[Tally], bool] = lambda tally: True,
) -> Iterator[tuple[Tally, list[Mapping[str, Any]]]]:
    """Round by round, what is known by then and what was new in it; begins with the rounds that were kept.

    A round is proposed when all rounds before it but the last LAG are learned, and no other, whatever has ended. Ends
    with its numbers, or before a round at which `goes_on` says no; the rounds under way are learned then, too.
    """
    tally = Tally(guide=Guide(space=search.space, root=search.root, is_guided=search.is_guided))
    kept = iter(()) if store is None else store.rows()
    under_way: deque[Callable[[], list[dict[str, Any]]]] = deque()
    for place, numbers in enumerate(search.rounds()):
        if len(under_way) > LAG:
            yield tally, tally.takes(under_way.popleft()())
        # Also where the round was kept: what was proposed decides which parents had children.
        tasks = tally.guide.proposed(numbers)
        rows = next(kept, None)
        if rows is not None and len(rows) >= len(tasks):
            under_way.append(partial(list, rows))
        elif goes_on(tally):
            under_way.append(partial(_kept, store, place, trier(tasks)))
        else:
            break
    while under_way:
        yield tally, tally.takes(under_way.popleft()())


def _kept(store: Store | None, place: int, round_under_way: Future[pa.Table]) -> list[dict[str, Any]]:
    """Its rows, once it has ended."""
    table = round_under_way.result()
    if store is not None:
        store.add(place, table)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def bounded(seconds: float | None, *, first: bool = False) -> Callable[[Tally], bool]:
    """A function that says whether to go on: until these seconds of real time are over, if there are any, and with
    `first` only until something is found."""
    until = None if seconds is None else time.monotonic() + seconds
    return lambda tally: (until is None or time.monotonic() < until) and not (first and tally.causes)
