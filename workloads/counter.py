"""A counter: a read lies between what must have been added and what may have been.

Operations (key: the counter): `add` {value}, and `read` {}: ok with the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.counter import CounterChecker
from checkers.evidence import shows_a_value
from checkers.multiset.rows import ELEMENTS
from checkers.plan import Checker
from checkers.repeats import members
from harness.bounds import INT64
from harness.workload import Workload


@dataclass(frozen=True, kw_only=True)
class CounterSettings:
    initial: Annotated[int, INT64] = 0
    """What counters begin with."""


def checkers(settings: CounterSettings) -> dict[str, Checker]:
    return {"counter": CounterChecker(initial=settings.initial)}


WORKLOAD = Workload(
    name="counter",
    about="a read lies between what must have been added and what may have been",
    settings_type=CounterSettings,
    value_type=ELEMENTS,
    functions=("add", "read"),
    repeats=(members("add"),),
    evidence=(shows_a_value("read"),),
    checkers=checkers,
    anomalies=("out-of-bounds",),
)
