"""A static topic: as many queues as it was made with, whichever groups of brokers hold them, however often they move.

What one group knows of it, as it is kept and as it travels (RocketMQ's TopicQueueMappingDetail), and what a NameServer
is told (TopicQueueMappingInfo). RocketMQ has one epoch for a whole topic; here each queue has its own, so that moves of
different queues do not hinder each other, and the topic's is their sum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment
from system_under_test.rocketmq.topic import MAX_QUEUES, MAX_TOPICS, check_name

SCOPE: Final = "__global__"
MAX_STATIC_QUEUES: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTopic:
    """`queues` by their number in the whole topic; some of them, where it travels as a change."""

    name: str
    total_queues: int
    queues: Mapping[int, LogicQueue]

    def __post_init__(self) -> None:
        """Raises ValueError for what no static topic can be."""
        check_name(self.name)
        if type(self.total_queues) is not int or not 1 <= self.total_queues <= MAX_STATIC_QUEUES:
            raise ValueError(f"a static topic has 1 to {MAX_STATIC_QUEUES} queues, got {self.total_queues!r}")
        for queue_id, queue in self.queues.items():
            if not 0 <= queue_id < self.total_queues:
                raise ValueError(f"topic {self.name} has queues 0 to {self.total_queues - 1}, got {queue_id}")
            for segment in queue.segments:
                if segment.queue_id != physical_queue(queue_id, segment.generation, self.total_queues):
                    raise ValueError(
                        f"segment {segment.generation} of queue {queue_id} lies in queue "
                        f"{physical_queue(queue_id, segment.generation, self.total_queues)} of its group, "
                        f"got {segment.queue_id}"
                    )

    @property
    def epoch(self) -> int:
        return sum(queue.epoch for queue in self.queues.values())

    @property
    def physical_queues(self) -> int:
        """So many queues a group must have at least, for all segments."""
        return 1 + max(
            (segment.queue_id for queue in self.queues.values() for segment in queue.segments),
            default=self.total_queues - 1,
        )

    def led_by(self, broker_name: str) -> dict[int, int]:
        """The queues that this group takes messages for -> which of its own queues they go to."""
        return {
            queue_id: queue.last.queue_id
            for queue_id, queue in sorted(self.queues.items())
            if queue.leader == broker_name
        }

    def with_queues(self, changed: Mapping[int, LogicQueue]) -> StaticTopic:
        return StaticTopic(name=self.name, total_queues=self.total_queues, queues={**self.queues, **changed})

    def only(self, queue_id: int, queue: LogicQueue) -> StaticTopic:
        """As a change of this one queue."""
        return StaticTopic(name=self.name, total_queues=self.total_queues, queues={queue_id: queue})

    def info(self, broker_name: str) -> MappingInfo:
        """What the group says of it to NameServers."""
        led = self.led_by(broker_name)
        epochs = {queue_id: self.queues[queue_id].epoch for queue_id in led}
        return MappingInfo(
            topic=self.name, total_queues=self.total_queues, epoch=self.epoch, led=led, queue_epochs=epochs
        )

    def as_json(self, broker_name: str) -> dict[str, Any]:
        return {
            **self.info(broker_name).as_json(broker_name),
            "queueEpochs": {str(queue_id): queue.epoch for queue_id, queue in sorted(self.queues.items())},
            "hostedQueues": {
                str(queue_id): [segment.as_json() for segment in queue.segments]
                for queue_id, queue in sorted(self.queues.items())
            },
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StaticTopic:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        epochs = value.get("queueEpochs") or {}
        queues = {
            int(queue_id): LogicQueue(
                epoch=epochs.get(queue_id, value["epoch"]),
                segments=tuple(Segment.from_json(segment) for segment in segments),
            )
            for queue_id, segments in value["hostedQueues"].items()
        }
        return cls(name=value["topic"], total_queues=value["totalQueues"], queues=queues)

    def encode(self, broker_name: str) -> bytes:
        return json.dumps(self.as_json(broker_name), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, body: bytes) -> StaticTopic:
        """Raises ValueError."""
        try:
            return cls.from_json(decode_json(body))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no mapping of a static topic: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingInfo:
    """Which queues of a static topic one group leads, in queues of its own."""

    topic: str
    total_queues: int
    epoch: int
    led: Mapping[int, int] = field(default_factory=dict)
    queue_epochs: Mapping[int, int] = field(default_factory=dict)
    """Queue that it leads -> its epoch; of two groups that claim a queue the one with the greater epoch is right."""

    def as_json(self, broker_name: str) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "scope": SCOPE,
            "totalQueues": self.total_queues,
            "bname": broker_name,
            "epoch": self.epoch,
            "dirty": False,
            "currIdMap": {str(queue_id): physical for queue_id, physical in self.led.items()},
            "queueEpochs": {str(queue_id): epoch for queue_id, epoch in self.queue_epochs.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> MappingInfo:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        return cls(
            topic=str(value["topic"]),
            total_queues=int(value["totalQueues"]),
            epoch=int(value["epoch"]),
            led=_numbers(value.get("currIdMap") or {}),
            queue_epochs=_numbers(value.get("queueEpochs") or {}),
        )


def mappings_as_json(mappings: Mapping[str, MappingInfo], broker_name: str) -> dict[str, Any]:
    return {name: mapping.as_json(broker_name) for name, mapping in mappings.items()}


def mappings_from_json(value: Mapping[str, Any]) -> dict[str, MappingInfo]:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    if len(value) > MAX_TOPICS:
        raise ValueError(f"{len(value)} static topics, at most {MAX_TOPICS} are possible")
    return {name: MappingInfo.from_json(mapping) for name, mapping in value.items()}


def _numbers(value: Mapping[Any, Any]) -> dict[int, int]:
    if len(value) > MAX_STATIC_QUEUES:
        raise ValueError(f"{len(value)} queues, at most {MAX_STATIC_QUEUES} are possible")
    return {int(key): int(number) for key, number in value.items()}


def physical_queue(queue_id: int, generation: int, total_queues: int) -> int:
    """Which of its group's queues a segment has: another for each, without anybody having to ask which are free."""
    return generation * total_queues + queue_id


def most_generations(total_queues: int) -> int:
    """So many segments a queue may have until its group has no queue left for another."""
    return MAX_QUEUES // total_queues


def first_queues(groups: list[str]) -> dict[int, LogicQueue]:
    """The queues of a new topic: number i begins on the i-th of these groups."""
    return {
        queue_id: LogicQueue(
            epoch=0,
            segments=(Segment(generation=0, broker_name=group, queue_id=queue_id, logic_offset=0),),
        )
        for queue_id, group in enumerate(groups)
    }
