"""What a search costs until it catches something: storms and processor seconds, guided and at random.

A chase is one search, storm by storm in one process, to its first catch or its bound; many of them can be at work at
once. A catch is a storm that breaks a promise with the planted bug and breaks none without it, or any that breaks one
where no bug is planted. The search alone decides which storm that is; the storm without the bug is not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.findings import Finding, shrunk_row
from stormproof.search.guide import LAG, ROUND
from stormproof.search.search import Search, ended, searched
from stormproof.search.trial import Task, scenario_of, tried

Each = Callable[[Callable[[Any], dict[str, Any]], Sequence[Any]], Iterator[dict[str, Any]]]
"""What a function makes of each of some values, wherever there is a processor, as soon as it is done. Values and
function can be pickled, what is made is JSON."""


@dataclass(frozen=True, kw_only=True)
class Chase:
    """How one search ended."""

    mutant: str | None
    root: int
    is_guided: bool
    given: Mapping[str, SettingValue] = field(default_factory=dict)
    """What its storms did not draw: `Space.given`."""
    is_caught: bool
    storms: int
    """How many storms there were, the catch among them; all that were tried where there is none."""
    processor_s: float
    """The processor seconds of these storms."""
    states: tuple[int, ...]
    """Distinct ones by the measure that the guide does not use, after each round."""
    number: int | None = None
    """The number of the storm that is the catch."""
    also_without: tuple[int, ...] = ()
    """Numbers of storms that break a promise without the bug as well: findings of another kind."""
    anomalies: tuple[str, ...] = ()
    """The anomalies that the catch shows."""
    scenario: Scenario | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"scenario": None if self.scenario is None else self.scenario.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Chase:
        scenario = None if data["scenario"] is None else Scenario.from_json(data["scenario"])
        lists = {name: tuple(data[name]) for name in ("states", "also_without", "anomalies")}
        return cls(**{**data, **lists, "scenario": scenario})


def chased(search: Search, most_processor_s: float | None) -> Chase:
    """Search until the first catch, until these processor seconds are used, or until its numbers are."""
    trier = _UntilCaught(most_processor_s)
    states = [
        len(tally.guide.unguided) for tally, _ in searched(search, None, trier, goes_on=lambda tally: not trier.is_over)
    ]
    chase = Chase(
        mutant=search.space.mutant,
        root=search.root,
        is_guided=search.is_guided,
        given=search.space.fixed_settings,
        is_caught=trier.catch is not None,
        storms=trier.storms,
        processor_s=round(trier.processor_s, 3),
        states=tuple(states),
        also_without=tuple(trier.also_without),
    )
    if trier.catch is None:
        return chase
    anomalies, number = tuple(trier.catch["anomalies"]), trier.catch["number"]
    return replace(chase, anomalies=anomalies, number=number, scenario=scenario_of(trier.catch))


def chased_row(most_processor_s: float | None, search: Search) -> dict[str, Any]:
    return chased(search, most_processor_s).to_json()


class _UntilCaught:
    """`Trier` that leaves the rest of a round alone once it is over: what is caught first does not depend on it."""

    def __init__(self, most_processor_s: float | None) -> None:
        self.most_processor_s = most_processor_s
        self.storms = 0
        self.processor_s = 0.0
        self.catch: Mapping[str, Any] | None = None
        self.also_without: list[int] = []

    @property
    def is_over(self) -> bool:
        spent = self.most_processor_s is not None and self.processor_s >= self.most_processor_s
        return spent or self.catch is not None

    def __call__(self, tasks: list[Task]) -> Future[pa.Table]:
        rows = []
        for task in tasks:
            if self.is_over:
                break
            row = tried(task)
            rows.append(row)
            self.storms += 1
            self.processor_s += row["processor_s"]
            if row["verdict"] != Verdict.INVALID.value:
                continue
            if is_of_the_mutant(task.scenario):
                self.catch = row
            else:
                self.also_without.append(task.number)
        return ended(rows)


def is_of_the_mutant(scenario: Scenario) -> bool:
    """Whether no promise is broken in this storm without the planted bug; yes where none is planted."""
    if scenario.mutant is None:
        return True
    healthy = Task(number=0, origin="", scenario=replace(scenario, mutant=None))
    return bool(tried(healthy)["verdict"] != Verdict.INVALID.value)


def shrunk_catch(most_seconds: float, chase: Chase) -> dict[str, Any]:
    """A row of SHRUNK of what was caught, that shows the first of its anomalies, with `is_of_the_bug`, and whose catch
    it is."""
    assert chase.scenario is not None and chase.number is not None
    finding = Finding(number=chase.number, anomaly=chase.anomalies[0], scenario=chase.scenario)
    row = shrunk_row(finding, most_seconds)
    of_the_bug = is_of_the_mutant(scenario_of(row))
    whose = {"mutant": chase.mutant, "root": chase.root, "is_guided": chase.is_guided}
    return row | whose | {"is_of_the_bug": of_the_bug}


@dataclass(frozen=True, kw_only=True)
class Compared:
    subject: str
    guided: tuple[Chase, ...]
    random: tuple[Chase, ...]

    def lines(self) -> list[str]:
        return [
            f"{self.subject}",
            *(f"  {name:<7} {_words(chases)}" for name, chases in (("guided", self.guided), ("random", self.random))),
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "guided": [chase.to_json() for chase in self.guided],
            "random": [chase.to_json() for chase in self.random],
        }


def learned_nothing(chase: Chase) -> bool:
    """Whether a guided search caught its bug before the guide knew of any round: until then it tries the storms that
    the random search of its root seed tries."""
    return chase.is_caught and chase.storms <= ROUND * (LAG + 1)


def both_ways(search: Search, roots: int) -> list[Search]:
    """Guided and at random, from each root seed from that of the search on."""
    return [
        replace(search, root=root, is_guided=is_guided)
        for root in range(search.root, search.root + roots)
        for is_guided in (True, False)
    ]


def compared(
    search: Search,
    roots: int,
    most_processor_s: float | None,
    each: Each,
    tell: Callable[[str], None] = lambda line: None,
) -> Compared:
    """The comparison. Each search ends after these processor seconds, or after its numbers."""
    subject = search.space.mutant or search.space.system
    chases = []
    for row in each(partial(chased_row, most_processor_s), both_ways(search, roots)):
        chases.append(Chase.from_json(row))
        tell(chase_words(chases[-1], subject))
    chases.sort(key=lambda chase: chase.root)
    return Compared(
        subject=subject,
        guided=tuple(chase for chase in chases if chase.is_guided),
        random=tuple(chase for chase in chases if not chase.is_guided),
    )


def chase_words(chase: Chase, subject: str) -> str:
    how = "guided" if chase.is_guided else "random"
    ended = f"caught ({', '.join(chase.anomalies)})" if chase.is_caught else "not caught"
    words = f"{subject}, {how}, root {chase.root}: {ended}; {chase.storms} storms, {chase.processor_s:.1f} processor s"
    also = ", ".join(map(str, chase.also_without))
    return f"{words}; broken without the bug as well: storms {also}" if also else words


def _words(chases: Sequence[Chase]) -> str:
    return (
        f"caught {sum(chase.is_caught for chase in chases)} of {len(chases)}; "
        f"storms {_quantiles([chase.storms for chase in chases])}; "
        f"processor s {_quantiles([chase.processor_s for chase in chases])}; "
        f"states a storm {_quantiles([states_a_storm(chase) for chase in chases])}"
    )


def states_a_storm(chase: Chase) -> float:
    return max(chase.states, default=0) / max(chase.storms, 1)


def _quantiles(values: Sequence[float]) -> str:
    """The least, the median, the most."""
    return f"{min(values):.3g} · {statistics.median(values):.3g} · {max(values):.3g}"
