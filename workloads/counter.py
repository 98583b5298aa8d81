"""A counter: a read lies between what must have been added and what may have been.

Operations (key: the counter):
- `add` {value}.
- `read` {}: ok with the sum of all that was added; 0 before the first add.
- `final-read` {}: the same at the end, in histories of others. Not used in runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import shows_a_value
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.counter import CounterChecker, CounterReads
from checkers.elements.rows import ELEMENTS
from harness.bounds import INT64, Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload, refused_in_run
from workloads.final_reads import OK_SHARE, each_until_ok


@dataclass(frozen=True, kw_only=True)
class CounterSettings:
    initial: Annotated[int, INT64] = 0
    """What counters begin with; 0 in a run."""
    counters: Annotated[int, Bounds(1, 1_000)] = 5
    reads: CounterReads = CounterReads.ALL
    """Which of them are judged: those of a counter that converges bind at its end alone; all of them in a run."""
    read_share: Annotated[float, Bounds(0, 0.9)] = 0.5


MOST_ADDED = 5
"""The most that one operation adds."""


def require_runnable(settings: CounterSettings) -> None:
    if settings.initial != 0:
        raise refused_in_run("counter", "initial", settings.initial, expected="0, with which every counter begins")
    if settings.reads is not CounterReads.ALL:
        raise refused_in_run("counter", "reads", settings.reads.value, expected="all")


def _read(position: int) -> Operation:
    return invoke("read", {"value": None, "values": None}, key=f"c{position}")


def generator(settings: CounterSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        position = draw.below(settings.counters)
        if draw.uniform() < settings.read_share:
            return _read(position)
        return invoke("add", {"value": 1 + draw.below(MOST_ADDED), "values": None}, key=f"c{position}")

    return drawn(seed, operation)


def final_generator(settings: CounterSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return each_until_ok(_read(position) for position in range(settings.counters))


def checkers(settings: CounterSettings) -> dict[str, Checker]:
    return {"counter": CounterChecker(initial=settings.initial, reads=settings.reads)}


WORKLOAD = Workload(
    name="counter",
    about="a read lies between what must have been added and what may have been",
    settings_type=CounterSettings,
    value_type=ELEMENTS,
    functions=("add", "read", "final-read"),
    repeats=(members("add"),),
    evidence=(shows_a_value("read"), shows_a_value("final-read")),
    checkers=checkers,
    require_runnable=require_runnable,
    generator=generator,
    final_generator=final_generator,
    required_ok={"add": 20, "read": 20},
    required_share={"add": OK_SHARE, "read": OK_SHARE},
)
