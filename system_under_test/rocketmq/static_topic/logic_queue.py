"""A queue that moves between broker groups: its segments, and where an offset of the whole lies in one of them.

    generation 0 on broker-a, its queue 1: logic offsets 0 to 12, frozen
    generation 1 on broker-b, its queue 5: logic offsets from 10,000 on, open

Each segment is a queue of its own of one group, which no other segment ever uses, so a physical offset belongs to one
segment for good. Only the last segment takes messages: its group leads the queue. A segment whose logic offset is not
decided yet is pending: the one before it is frozen, and nobody leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

UNDECIDED: Final = -1
"""Stands for a logic offset that is not decided, and for an end that is none: as RocketMQ writes them."""
MAX_SEGMENTS: Final = 10_000
_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Physical offsets `start_offset` to `end_offset` - 1 of one group's queue."""

    generation: int
    broker_name: str
    """The group."""
    queue_id: int
    """The number of the group's queue."""
    logic_offset: int = UNDECIDED
    """Where it begins in the whole."""
    start_offset: int = 0
    end_offset: int = UNDECIDED
    """Once it is frozen: one past the last message that it will ever have."""

    def __post_init__(self) -> None:
        """Raises ValueError for what no segment can be."""
        if not self.broker_name:
            raise ValueError("a segment lies on a broker group")
        numbers = self.generation, self.queue_id, self.start_offset, self.logic_offset + 1, self.end_offset + 1
        if not all(type(number) is int and 0 <= number <= _MOST for number in numbers):
            raise ValueError(f"a segment has whole numbers from 0 on, got {self}")
        if self.is_frozen and self.end_offset < self.start_offset:
            raise ValueError(f"a segment ends behind its start, got {self}")

    @property
    def is_decided(self) -> bool:
        return self.logic_offset != UNDECIDED

    @property
    def is_frozen(self) -> bool:
        return self.end_offset != UNDECIDED

    def logic(self, physical_offset: int) -> int:
        """Where an offset of the group's queue is in the whole."""
        return self.logic_offset + physical_offset - self.start_offset

    def physical(self, logic_offset: int) -> int:
        """Which offset of the group's queue that is; its end where the segment has ended before."""
        offset = logic_offset - self.logic_offset + self.start_offset
        return min(offset, self.end_offset) if self.is_frozen else offset

    def as_json(self) -> dict[str, Any]:
        """As RocketMQ's LogicQueueMappingItem."""
        return {
            "gen": self.generation,
            "queueId": self.queue_id,
            "bname": self.broker_name,
            "logicOffset": self.logic_offset,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "timeOfStart": -1,
            "timeOfEnd": -1,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Segment:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        return cls(
            generation=value["gen"],
            broker_name=value["bname"],
            queue_id=value["queueId"],
            logic_offset=value.get("logicOffset", UNDECIDED),
            start_offset=value.get("startOffset", 0),
            end_offset=value.get("endOffset", UNDECIDED),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicQueue:
    """`epoch` rises with every change; of two states of one queue the one with the greater epoch is newer."""

    epoch: int
    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        """Raises ValueError for what no queue can be."""
        if type(self.epoch) is not int or not 0 <= self.epoch <= _MOST:
            raise ValueError(f"an epoch is a whole number from 0 on, got {self.epoch!r}")
        if not 0 < len(self.segments) <= MAX_SEGMENTS:
            raise ValueError(f"a queue has 1 to {MAX_SEGMENTS} segments, got {len(self.segments)}")
        if [segment.generation for segment in self.segments] != list(range(len(self.segments))):
            raise ValueError("the segments of a queue are of generations 0, 1, 2 …, in this order")
        if not self.segments[0].is_decided:
            raise ValueError("the first segment of a queue begins somewhere")

    @property
    def last(self) -> Segment:
        return self.segments[-1]

    @property
    def is_pending(self) -> bool:
        """A move has begun and is not over: nobody leads."""
        return not self.last.is_decided

    @property
    def leader(self) -> str | None:
        """The group that takes messages."""
        return None if self.is_pending or self.last.is_frozen else self.last.broker_name

    @property
    def decided(self) -> tuple[Segment, ...]:
        return self.segments[:-1] if self.is_pending else self.segments

    def at(self, logic_offset: int) -> Segment:
        """The segment that holds this offset, or ends before it where the next one begins later."""
        decided = self.decided
        for segment in reversed(decided):
            if segment.logic_offset <= logic_offset:
                return segment
        return decided[0]

    def after(self, segment: Segment) -> Segment | None:
        """The next one, as soon as it is decided where that begins."""
        later = self.segments[segment.generation + 1 : segment.generation + 2]
        return later[0] if later and later[0].is_decided else None

    def of(self, broker_name: str) -> tuple[Segment, ...]:
        """The segments of one group that are decided, oldest first."""
        return tuple(segment for segment in self.decided if segment.broker_name == broker_name)

    def with_last(self, *segments: Segment) -> LogicQueue:
        """One epoch later, with these instead of the last segment."""
        return LogicQueue(epoch=self.epoch + 1, segments=(*self.segments[:-1], *segments))

    def frozen_at(self, end_offset: int, place: int) -> LogicQueue:
        """With that end of the segment at this place, in the same epoch."""
        frozen = replace(self.segments[place], end_offset=end_offset)
        return replace(self, segments=(*self.segments[:place], frozen, *self.segments[place + 1 :]))


def newest(states: list[LogicQueue]) -> LogicQueue | None:
    """Of what several groups know of one queue."""
    return max(states, key=lambda state: state.epoch, default=None)
