"""A queue: what was put in comes out, as often and in the order that is promised.

Operations (key: the queue):
- `enqueue` {value}: no value is enqueued twice.
- `dequeue` {}: ok with the `value` or `values` that came out; neither if nothing was there.
- `ack` {value}: ok if the queue will not deliver it again. Not used in runs.
- `drain` {}: ok with all `values` that were left; at the end of a run, each queue until it succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import any_ok
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.order import Order
from checkers.elements.queue import Delivery, QueueChecker
from checkers.elements.rows import ELEMENTS
from harness.bounds import Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import each_until_ok
from workloads.log import OK_SHARE, queue_key


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    queues: Annotated[int, Bounds(1, 16)] = 4
    enqueue_share: Annotated[float, Bounds(0.1, 0.9)] = 0.5
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    order: Order = Order.NONE


def _operation(f: str, queue: int, value: int | None = None) -> Operation:
    return invoke(f, {"value": value, "values": None}, key=queue_key(queue))


def generator(settings: QueueSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        queue = draw.below(settings.queues)
        if draw.uniform() < settings.enqueue_share:
            return _operation("enqueue", queue, number)
        return _operation("dequeue", queue)

    return drawn(seed, operation)


def final_generator(settings: QueueSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return each_until_ok(_operation("drain", queue) for queue in range(settings.queues))


def checkers(settings: QueueSettings) -> dict[str, Checker]:
    return {"queue": QueueChecker(delivery=settings.delivery, order=settings.order)}


WORKLOAD = Workload(
    name="queue",
    about="what was put in comes out, as often and in the order that is promised",
    settings_type=QueueSettings,
    value_type=ELEMENTS,
    functions=("enqueue", "dequeue", "ack", "drain"),
    any_values=True,
    lists=("drain",),
    batches=("dequeue",),
    puts=("enqueue",),
    repeats=(members("enqueue", "ack"),),
    evidence=any_ok("dequeue", "drain"),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"enqueue": 20, "dequeue": 20},
    required_share={"enqueue": OK_SHARE, "dequeue": OK_SHARE},
    explored={"queues": (1, 2, 8)},
)
