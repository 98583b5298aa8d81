"""What a broker's master makes of a change of a static topic: the fence of epochs, and the freezing of a segment.

A change that was made already is none, so a client that got no answer may ask again. One of an older epoch is refused,
as is another one of the same epoch. Who leads a queue freezes it by accepting a successor: the end of its segment is
decided in the same step in which it takes its last message.
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


def accepted(current: StaticTopic | None, asked: StaticTopic, broker_name: str, end_of: EndOf) -> StaticTopic:
    """What is known afterwards; what is known already where nothing changes. Raises ChangeRefused."""
    if current is None:
        return asked
    if current.total_queues != asked.total_queues:
        raise ChangeRefused(f"topic {current.name} has {current.total_queues} queues, not {asked.total_queues}")
    changed = {
        queue_id: accepted_queue(current.queues[queue_id], queue, broker_name, end_of)
        if queue_id in current.queues
        else queue
        for queue_id, queue in asked.queues.items()
    }
    return current.with_queues(changed)


def accepted_queue(current: LogicQueue, asked: LogicQueue, broker_name: str, end_of: EndOf) -> LogicQueue:
    """Raises ChangeRefused."""
    _check_order(asked)
    check_epoch(current, asked)
    return current if asked.epoch == current.epoch else frozen_here(current, asked, broker_name, end_of)


def frozen_here(current: LogicQueue, asked: LogicQueue, broker_name: str, end_of: EndOf) -> LogicQueue:
    """What is asked, with the end of the segment that takes messages here until now, if another one follows.

    Raises ChangeRefused for a change that knows nothing of that segment.
    """
    place = len(current.segments) - 1
    if current.leader == broker_name:
        if len(asked.segments) <= place or asked.segments[place].queue_id != current.last.queue_id:
            raise ChangeRefused(f"segment {place} is led here, and the change does not know it")
        if len(asked.segments) > place + 1 and not asked.segments[place].is_frozen:
            return asked.frozen_at(end_of(current.last.queue_id), place)
    return asked


def _check_order(asked: LogicQueue) -> None:
    """Raises ChangeRefused where a segment begins before the end of the one before."""
    for earlier, later in pairwise(asked.segments):
        ends = earlier.logic(earlier.end_offset) if earlier.is_frozen else earlier.logic_offset
        if not earlier.is_decided or (later.is_decided and later.logic_offset < ends):
            raise ChangeRefused(f"segment {later.generation} begins before segment {earlier.generation} ends")


def check_epoch(current: LogicQueue, asked: LogicQueue) -> None:
    """Raises ChangeRefused for an older change, and for another one of the same epoch."""
    if asked.epoch < current.epoch:
        raise ChangeRefused(f"epoch {asked.epoch} is older than {current.epoch}")
    if asked.epoch == current.epoch and not _is_same(current, asked):
        raise ChangeRefused(f"epoch {asked.epoch} is that of another change")


def _is_same(current: LogicQueue, asked: LogicQueue) -> bool:
    """But for ends of segments that were decided here."""
    if len(current.segments) != len(asked.segments):
        return False
    filled = asked
    for place, (own, other) in enumerate(zip(current.segments, asked.segments, strict=True)):
        if own.is_frozen and not other.is_frozen:
            filled = filled.frozen_at(own.end_offset, place)
    return filled == current
