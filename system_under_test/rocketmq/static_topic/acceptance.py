"""What a broker's master makes of a change of a static topic: the fence of epochs, and the freezing of a segment.

A change that was made already is none, so whoever got no answer may ask again. One of an older epoch is refused, as is
another one of the same epoch. Who leads a queue freezes it by accepting a successor: the end of its segment is decided
in the same step in which it takes its last message.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue
from system_under_test.rocketmq.static_topic.mapping import StaticTopic

EndOf = Callable[[int], int]
"""Queue of the group -> the offset that its next message would get."""


class ChangeRefused(Exception):
    """Another change came first, or this one fits nothing that is known here."""


def accepted(known: StaticTopic | None, asked: StaticTopic, broker_name: str, end_of: EndOf) -> StaticTopic:
    """What is known afterwards; what is known already where nothing changes. Raises ChangeRefused."""
    if known is None:
        return asked
    if known.total_queues != asked.total_queues:
        raise ChangeRefused(f"topic {known.name} has {known.total_queues} queues, not {asked.total_queues}")
    changed = {
        queue_id: accepted_queue(known.queues[queue_id], queue, broker_name, end_of)
        if queue_id in known.queues
        else queue
        for queue_id, queue in asked.queues.items()
    }
    return known.with_queues(changed)


def accepted_queue(known: LogicQueue, asked: LogicQueue, broker_name: str, end_of: EndOf) -> LogicQueue:
    """Raises ChangeRefused."""
    _check_order(asked)
    check_epoch(known, asked)
    return known if asked.epoch == known.epoch else frozen_here(known, asked, broker_name, end_of)


def frozen_here(known: LogicQueue, asked: LogicQueue, broker_name: str, end_of: EndOf) -> LogicQueue:
    """What is asked, with the end of the segment that takes messages here until now, if another one follows.

    Raises ChangeRefused for a change that knows nothing of that segment.
    """
    place = len(known.segments) - 1
    if known.leader == broker_name:
        if len(asked.segments) <= place or asked.segments[place].queue_id != known.last.queue_id:
            raise ChangeRefused(f"segment {place} is led here, and the change does not know it")
        if len(asked.segments) > place + 1 and not asked.segments[place].is_frozen:
            return asked.frozen_at(end_of(known.last.queue_id), place)
    return asked


def _check_order(asked: LogicQueue) -> None:
    """Raises ChangeRefused where a segment begins before the end of the one before."""
    for earlier, later in pairwise(asked.segments):
        ends = earlier.logic(earlier.end_offset) if earlier.is_frozen else earlier.logic_offset
        if not earlier.is_decided or (later.is_decided and later.logic_offset < ends):
            raise ChangeRefused(f"segment {later.generation} begins before segment {earlier.generation} ends")


def check_epoch(known: LogicQueue, asked: LogicQueue) -> None:
    """Raises ChangeRefused for an older change, and for another one of the same epoch."""
    if asked.epoch < known.epoch:
        raise ChangeRefused(f"epoch {asked.epoch} is older than {known.epoch}")
    if asked.epoch == known.epoch and not _is_same(known, asked):
        raise ChangeRefused(f"epoch {asked.epoch} is that of another change")


def _is_same(known: LogicQueue, asked: LogicQueue) -> bool:
    """But for ends of segments that were decided here."""
    if len(known.segments) != len(asked.segments):
        return False
    filled = asked
    for place, (own, other) in enumerate(zip(known.segments, asked.segments, strict=True)):
        if own.is_frozen and not other.is_frozen:
            filled = filled.frozen_at(own.end_offset, place)
    return filled == known
