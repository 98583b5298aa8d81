"""A queue: what was put in comes out, as often and in the order that is promised.

Operations (key: the queue): `enqueue` {value}, `dequeue` {}, `ack` {value} and `drain` {}.
"""

from __future__ import annotations

from dataclasses import dataclass

from checkers.evidence import any_ok
from checkers.multiset.order import Order
from checkers.multiset.queue import Delivery, QueueChecker
from checkers.multiset.rows import ELEMENTS
from checkers.plan import Checker
from checkers.repeats import members
from harness.workload import Workload


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    order: Order = Order.NONE


def checkers(settings: QueueSettings) -> dict[str, Checker]:
    return {"queue": QueueChecker(delivery=settings.delivery, order=settings.order)}


WORKLOAD = Workload(
    name="queue",
    about="what was put in comes out, as often and in the order that is promised",
    settings_type=QueueSettings,
    value_type=ELEMENTS,
    functions=("enqueue", "dequeue", "ack", "drain"),
    repeats=(members("enqueue", "ack"),),
    evidence=any_ok("dequeue", "drain"),
    checkers=checkers,
    anomalies=("aborted-read", "duplicated", "lost", "out-of-order", "redelivered-after-ack", "unexpected"),
)
