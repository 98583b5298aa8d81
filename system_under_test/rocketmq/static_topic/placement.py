"""Which groups of brokers get which queues: of a new topic, and when loads have drifted apart. Pure.

A new topic's queues are dealt round to the groups, the least loaded first. Where the loads of two groups differ by more
than a threshold, all queues are dealt anew: topics from the greatest load to the least, to the groups from the least
load to the greatest, round and round without starting over between topics; moved is only what does not lie there
already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

THRESHOLD = 5_000.0
"""Messages a second that one group may carry more than another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLoad:
    """A queue of a topic, where it lies, and the messages a second that it takes."""

    topic: str
    queue_id: int
    group: str
    load: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    topic: str
    queue_id: int
    source: str
    target: str


def by_load(loads: Mapping[str, float]) -> list[str]:
    """The least loaded first; by name where they are equal."""
    return sorted(loads, key=lambda group: (loads[group], group))


def dealt(queues: int, groups: Sequence[str]) -> list[str]:
    """Group by group for each of so many queues, sorted: neighbours among the queues of a topic lie together."""
    return sorted(
        (group for _, group in zip(range(queues), cycle(groups), strict=False)),
        key=groups.index,
    )


def placed(queues: int, loads: Mapping[str, float]) -> list[str]:
    """The group of each queue of a new topic. Raises ValueError without any group."""
    if not loads:
        raise ValueError("there is no broker group to place queues on")
    return dealt(queues, by_load(loads))


def group_loads(queues: Sequence[QueueLoad], groups: Sequence[str]) -> dict[str, float]:
    """Of each of these groups, those without a queue among them."""
    loads = dict.fromkeys(groups, 0.0)
    for queue in queues:
        loads[queue.group] = loads.get(queue.group, 0.0) + queue.load
    return loads


def is_due(loads: Mapping[str, float], threshold: float = THRESHOLD) -> bool:
    """Whether two groups differ by more than the threshold."""
    return bool(loads) and max(loads.values()) - min(loads.values()) > threshold


def plan(queues: Sequence[QueueLoad], groups: Sequence[str], threshold: float = THRESHOLD) -> tuple[Move, ...]:
    """Which queues to move, of topics by name and number; none as long as it is not due."""
    loads = group_loads(queues, groups)
    if not is_due(loads, threshold):
        return ()
    totals: dict[str, float] = {}
    for queue in queues:
        totals[queue.topic] = totals.get(queue.topic, 0.0) + queue.load
    order = sorted(queues, key=lambda queue: (-totals[queue.topic], queue.topic, queue.queue_id))
    targets = [group for _, group in zip(order, cycle(by_load(loads)), strict=False)]
    moves: list[Move] = []
    for topic in sorted(totals, key=lambda name: (-totals[name], name)):
        of_topic = [(queue, target) for queue, target in zip(order, targets, strict=True) if queue.topic == topic]
        moves += _fewest([queue for queue, _ in of_topic], [target for _, target in of_topic])
    return tuple(moves)


def _fewest(queues: Sequence[QueueLoad], targets: Sequence[str]) -> list[Move]:
    """So many of the topic's queues as were dealt to each group; which ones is chosen so that as few as can be move."""
    room = {target: targets.count(target) for target in targets}
    staying: set[int] = set()
    for queue in queues:
        if room.get(queue.group, 0):
            room[queue.group] -= 1
            staying.add(queue.queue_id)
    free = [target for target in dict.fromkeys(targets) for _ in range(room[target])]
    leaving = [queue for queue in queues if queue.queue_id not in staying]
    return [
        Move(topic=queue.topic, queue_id=queue.queue_id, source=queue.group, target=target)
        for queue, target in zip(leaving, free, strict=True)
    ]
