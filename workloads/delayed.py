"""Delayed messages: what is sent to be shown later is shown then, not before, soon after, and is not lost meanwhile.

Operations (key: `topic/queue`; every message is a number that is sent at most once):
- `enqueue` {value, delay_ms}: the message is to be shown when `delay_ms` have passed since the system took it. Some
  delays are ones that systems have levels for (1, 5 and 10 s), others are any number of milliseconds. With a delay that
  is odd the client says at what time it is due, by its own clock.
- `take-back` {value, due_ms}: the message of that number is not wanted any more. Only such are taken back as are due at
  a time that the client said, and of which it is known that the system has them; `due_ms` is that time, which the
  answer to `enqueue` tells.
- `dequeue` {}: ok with the `values` that came out and the `places` in the queue where they stood; all clients are one
  group of consumers, and what one has got and committed the others do not get.
- `drain` {}: ok with all that was left; at the end of a run, when the longest delay is over, each queue until it
  succeeds.

The promises: no message comes out before it is due, but by what clocks differ; a message comes out
within `latest_ms` after it was due, time under faults and for recovery from them not counted; what was acknowledged
comes out, at least once: copies are legal after a change of master, but not of what was delivered
more than `again_ms` before. What was taken back before it was due, does not come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated

import pyarrow as pa

from checkers.all_of import Conjunction
from checkers.api.evidence import any_ok
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.delay import DelayChecker, Terms
from checkers.elements.queue import QueueChecker
from harness.bounds import INT64, Bounds
from harness.draw import Draw
from harness.generator import (
    PENDING,
    Context,
    Emission,
    Generator,
    concat,
    drawn,
    invoke,
    stagger,
    time_limit,
)
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
        pa.field("due_ms", pa.int64()),
    ]
)
TAKE_BACK = "take-back"
TERMS = Terms(
    send="enqueue",
    deliver=("dequeue", "drain"),
    message="value",
    messages="values",
    by_span=True,
)
LEVELS_MS = (1_000, 1_000, 5_000, 10_000)
LONGEST_MS = 10_000
SHORTEST_MS = 100
MOST_KNOWN = 8
"""So many of those that can be taken back are remembered, the newest."""
LOOK_EVERY_S = 0.05
"""How long it is between two dequeues after the storm, of all clients together."""


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
    taken_back_share: Annotated[float, Bounds(0.0, 0.5)] = 0.0
    """Share of the operations that take a message back, where there is one that can be."""
    tolerance_ms: Annotated[int, INT64] = 50
    """A delivery may be so much too early: clocks differ, and run at different rates."""
    latest_ms: Annotated[int, INT64] = 10_000
    """Clients take nearly five seconds of this to look, where hosts are far apart."""
    again_ms: Annotated[int, INT64] = 15_000
    """Copies were up to 7.3 s apart in healthy storms, faults not counted. A broker that flushes rarely and a slave
    that does may each add ten seconds where little is sent."""


def delay_ms(by: DelayedBy, draw: Draw) -> int:
    if by is DelayedBy.LEVEL or (by is DelayedBy.EITHER and draw.uniform() < 0.5):
        return LEVELS_MS[draw.below(len(LEVELS_MS))]
    # Never a level's, which clients ask for by its number.
    drawn_ms = SHORTEST_MS + draw.below(LONGEST_MS - SHORTEST_MS)
    return drawn_ms + 1 if drawn_ms in LEVELS_MS else drawn_ms


NOTHING: Mapping[str, None] = dict.fromkeys(field.name for field in DELAYED_ELEMENTS)


def _operation(f: str, queue: int, value: int | None = None, delayed_ms: int | None = None) -> Operation:
    return invoke(f, {**NOTHING, "value": value, "delay_ms": delayed_ms}, key=queue_key(queue))


@dataclass(frozen=True, slots=True)
class Dated:
    """A message that can be taken back."""

    key: str
    value: int
    due_ms: int
    until_ns: int
    """When it is due, by the history's clock."""


@dataclass(frozen=True, slots=True)
class TakingBack:
    """Sometimes, instead of an operation of `others`, one of the messages that are known to wait is taken back."""

    others: Generator
    share: float
    base: int
    number: int = 0
    candidates: tuple[Dated, ...] = ()

    def op(self, context: Context) -> Emission:
        waiting = tuple(one for one in self.candidates if one.until_ns > context.time)
        draw = Draw.at(self.base, self.number)
        process = context.free_process()
        if process is not None and waiting and draw.uniform() < self.share:
            chosen = waiting[draw.below(len(waiting))]
            value = {**NOTHING, "value": chosen.value, "due_ms": chosen.due_ms}
            operation = invoke(TAKE_BACK, value, key=chosen.key)._replace(process=process, time=context.time)
            left = tuple(one for one in waiting if one is not chosen)
            return operation, replace(self, number=self.number + 1, candidates=left)
        emission = self.others.op(context)
        if emission is None:
            return None
        operation_or_pending, others = emission
        following = self.number if operation_or_pending is PENDING else self.number + 1
        return operation_or_pending, replace(self, others=others, number=following)

    def update(self, context: Context, event: Operation) -> Generator:
        this = replace(self, others=self.others.update(context, event))
        if event.f != "enqueue" or event.type != "ok" or event.value is None or event.value["due_ms"] is None:
            return this
        value = event.value
        assert event.key is not None
        until_ns = event.time + value["delay_ms"] * 1_000_000
        dated = Dated(event.key, value["value"], value["due_ms"], until_ns)
        return replace(this, candidates=(*this.candidates, dated)[-MOST_KNOWN:])


def generator(settings: DelayedSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        queue = draw.below(settings.queues)
        if draw.uniform() < settings.enqueue_share:
            return _operation("enqueue", queue, number, delay_ms(settings.by, draw))
        return _operation("dequeue", queue)

    others = drawn(seed, operation)
    if not settings.taken_back_share:
        return others
    return TakingBack(others, settings.taken_back_share, seed.child("taken back").integer())


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
    queue = QueueChecker(comes_later=True, withdraw=TAKE_BACK)
    return {"delayed": Conjunction(name="delayed", parts=(delay, queue))}


WORKLOAD = Workload(
    name="delayed",
    about="what is sent to be shown later is shown then, not before, and not lost meanwhile",
    settings_type=DelayedSettings,
    value_type=DELAYED_ELEMENTS,
    timed=True,
    batches=("dequeue", "drain"),
    functions=("enqueue", TAKE_BACK, "dequeue", "drain"),
    repeats=(members("enqueue", of=("value", "delay_ms")), members(TAKE_BACK, of=("value", "due_ms"))),
    evidence=any_ok("dequeue", "drain"),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"enqueue": 20, "dequeue": 20},
    required_share={"enqueue": OK_SHARE, "dequeue": OK_SHARE},
    explored={"by": ("level", "time"), "queues": (1, 2), "taken_back_share": (0.3,)},
)
