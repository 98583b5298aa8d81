"""Delayed messages: what is sent to be shown later is shown then, not before, soon after, and is not lost meanwhile.

Operations (key: `topic/queue`; every message is a number that is sent at most once):
- `enqueue` {value, delay_ms}: the message is to be shown when `delay_ms` have passed since the system took it. Some
  delays are ones that systems have levels for (1, 5 and 10 s), others are any number of milliseconds. With a delay that
  is odd the client says at what time it is due, by its own clock.
- `dequeue` {}: ok with the `values` that came out and the `places` in the queue where they stood; all clients are one
  group of consumers, and what one has got and committed the others do not get.
- `drain` {}: ok with all that was left; at the end of a run, when the longest delay is over, each queue until it
  succeeds.

The promises: no message comes out before it is due, but by what clocks differ; a message comes out
within `latest_ms` after it was due, time under faults and for recovery from them not counted; what was acknowledged
comes out, at least once: copies are legal after a change of master, but not of what was delivered
more than `again_ms` before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import pyarrow as pa

from checkers.conjunction import Conjunction
from checkers.delay import DelayChecker, Terms
from checkers.evidence import any_ok
from checkers.multiset.queue import QueueChecker
from checkers.plan import Checker
from checkers.repeats import members
from harness.bounds import INT64, Bounds
from harness.draw import Draw
from harness.generator import Generator, concat, drawn, invoke, stagger, time_limit
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import each_until_ok
from workloads.log import OK_SHARE, queue_key

DELAYED_ELEMENTS = pa.struct(
    [
        pa.field("value", pa.int64()),
        pa.field("values", pa.list_(pa.int64())),
        pa.field("delay_ms", pa.int64()),
        pa.field("places", pa.list_(pa.int64())),
    ]
)
TERMS = Terms(send="enqueue", deliver=("dequeue", "drain"), message="value", messages="values", by_span=True)
LEVELS_MS = (1_000, 1_000, 5_000, 10_000)
LONGEST_MS = 10_000
SHORTEST_MS = 100
LOOK_EVERY_S = 0.05
"""Between two dequeues after the storm, of all clients together."""


class DelayedBy(Enum):
    LEVEL = "level"
    TIME = "time"
    EITHER = "either"


@dataclass(frozen=True, kw_only=True)
class DelayedSettings:
    queues: Annotated[int, Bounds(1, 16)] = 4
    enqueue_share: Annotated[float, Bounds(0.1, 0.9)] = 0.3
    by: DelayedBy = DelayedBy.EITHER
    """Which delays are drawn."""
    tolerance_ms: Annotated[int, INT64] = 50
    """So much too early is no matter: clocks differ, and run differently."""
    latest_ms: Annotated[int, INT64] = 10_000
    """Of which, where hosts are far apart, clients take nearly five seconds to look."""
    again_ms: Annotated[int, INT64] = 15_000
    """In healthy storms copies were up to 7.3 s apart, faults not counted. A broker that flushes rarely and a slave
    that does may each add ten seconds where little is sent."""


def delay_ms(by: DelayedBy, draw: Draw) -> int:
    if by is DelayedBy.LEVEL or (by is DelayedBy.EITHER and draw.uniform() < 0.5):
        return LEVELS_MS[draw.below(len(LEVELS_MS))]
    # Never a level's, which clients ask for by its number.
    drawn_ms = SHORTEST_MS + draw.below(LONGEST_MS - SHORTEST_MS)
    return drawn_ms + 1 if drawn_ms in LEVELS_MS else drawn_ms


def _operation(f: str, queue: int, value: int | None = None, delayed_ms: int | None = None) -> Operation:
    return invoke(f, {"value": value, "values": None, "delay_ms": delayed_ms, "places": None}, key=queue_key(queue))


def generator(settings: DelayedSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        queue = draw.below(settings.queues)
        if draw.uniform() < settings.enqueue_share:
            return _operation("enqueue", queue, number, delay_ms(settings.by, draw))
        return _operation("dequeue", queue)

    return drawn(seed, operation)


def final_generator(settings: DelayedSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Look on until all is due, then take what is left."""
    looking = drawn(seed.child("looks"), lambda draw, _: _operation("dequeue", draw.below(settings.queues)))
    wait_s = (LONGEST_MS + settings.latest_ms) / 1000
    drains = each_until_ok(_operation("drain", queue) for queue in range(settings.queues))
    return concat(time_limit(wait_s, stagger(LOOK_EVERY_S, looking, seed=seed.child("pace"))), drains)


def checkers(settings: DelayedSettings) -> Mapping[str, Checker]:
    delay = DelayChecker(
        tolerance_ms=settings.tolerance_ms, latest_ms=settings.latest_ms, again_ms=settings.again_ms, terms=TERMS
    )
    return {"delayed": Conjunction(name="delayed", parts=(delay, QueueChecker(comes_later=True)))}


WORKLOAD = Workload(
    name="delayed",
    about="what is sent to be shown later is shown then, not before, and not lost meanwhile",
    settings_type=DelayedSettings,
    value_type=DELAYED_ELEMENTS,
    functions=("enqueue", "dequeue", "drain"),
    repeats=(members("enqueue", of=("value", "delay_ms")),),
    evidence=any_ok("dequeue", "drain"),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"enqueue": 20, "dequeue": 20},
    required_share={"enqueue": OK_SHARE, "dequeue": OK_SHARE},
    explored={"by": ("level", "time"), "queues": (1, 2)},
)
