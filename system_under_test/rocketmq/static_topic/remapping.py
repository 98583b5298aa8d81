"""How a queue moves from one group of brokers to another, step by step, so that it stays one queue.

    freeze   the group that leads is told who is next: from then on it refuses messages, and its segment has an end
    open     the next group is told where its segment begins: behind that end, rounded up; it leads from then on
    tell     all others are told

Each step is safe before the next one begins (`broker/topics/static_topics.py` says when), and each may be asked again.
What is to be done next follows from the newest state that any group knows, so an administrator that comes after one
that died goes on where it stopped. Pure; who carries the steps out is in `client/static_topic_client.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment, newest
from system_under_test.rocketmq.static_topic.mapping import most_generations, physical_queue

BLOCK: Final = 10_000
"""Logic offsets of a new segment begin at a multiple of this, as RocketMQ's do."""


class CannotMove(Exception):
    """Not as things stand; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Freeze:
    group: str
    queue: LogicQueue


@dataclass(frozen=True, slots=True)
class Open:
    group: str
    queue: LogicQueue


@dataclass(frozen=True, slots=True)
class Moved:
    """The queue is where it should be; those of these groups that know an older state are to be told."""

    queue: LogicQueue
    behind: tuple[str, ...]


Step = Freeze | Open | Moved


def rounded_up(logic_offset: int, block: int) -> int:
    """To a block's beginning, half a block away at least: as RocketMQ's blockSeqRoundUp."""
    whole, rest = divmod(logic_offset, block)
    return (whole + (1 if rest < block // 2 else 2)) * block


def next_step(
    answers: Mapping[str, LogicQueue | None],
    queue_id: int,
    target: str | None,
    total_queues: int,
    block: int = BLOCK,
) -> Step:
    """`answers`: what each group that has answered knows of the queue. A `target` of None only ends a move that began.

    Raises CannotMove.
    """
    state = newest([queue for queue in answers.values() if queue is not None])
    if state is None:
        raise CannotMove(f"nobody knows queue {queue_id}")
    if state.is_pending:
        return Open(state.last.broker_name, opened(state, block))
    if state.leader not in answers:
        # A newer state is known to the leader first, so without its answer this may be an old one.
        raise CannotMove(f"{state.leader}, which leads queue {queue_id}, does not answer")
    if target is None or target == state.leader:
        behind = (group for group, queue in sorted(answers.items()) if queue is None or queue.epoch < state.epoch)
        return Moved(state, tuple(behind))
    if len(state.segments) >= most_generations(total_queues):
        raise CannotMove(f"queue {queue_id} has moved {len(state.segments) - 1} times, and cannot again")
    generation = state.last.generation + 1
    successor = Segment(
        generation=generation,
        broker_name=target,
        queue_id=physical_queue(queue_id, generation, total_queues),
    )
    return Freeze(state.last.broker_name, state.with_last(state.last, successor))


def opened(state: LogicQueue, block: int) -> LogicQueue:
    """The pending state, ended: its last segment begins behind the one before, whose end is known."""
    before = state.segments[-2]
    return state.with_last(replace(state.last, logic_offset=rounded_up(before.logic(before.end_offset), block)))
