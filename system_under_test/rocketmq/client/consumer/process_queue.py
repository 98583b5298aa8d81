"""The messages of one queue that a member has pulled and that are not consumed yet.

They may be consumed in any order, but the offset that is committed never goes past one that is not: a member that takes
the queue over begins there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from system_under_test.rocketmq.client.pop_client import PoppedMessage
from system_under_test.rocketmq.consumer_protocol import RETRY_TOPIC, MessageQueue
from system_under_test.storage.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMessage:
    """A message as a listener gets it."""

    topic: str
    """The topic that it was sent to, also where it comes from a retry topic."""
    queue: MessageQueue
    """Where it comes from."""
    queue_offset: int
    physical_offset: int
    body: bytes
    properties: Mapping[str, str]
    reconsume_times: int
    """How often it was tried before."""
    born_timestamp_ms: int
    store_timestamp_ms: int

    @classmethod
    def of(cls, message: Message, queue: MessageQueue) -> ConsumerMessage:
        return cls(
            topic=message.properties.get(RETRY_TOPIC) or message.topic,
            queue=queue,
            queue_offset=message.queue_offset,
            physical_offset=message.physical_offset,
            body=message.body,
            properties=message.properties,
            reconsume_times=message.reconsume_times,
            born_timestamp_ms=message.born_timestamp_ms,
            store_timestamp_ms=message.store_timestamp_ms,
        )

    @classmethod
    def of_popped(cls, message: PoppedMessage, group: str) -> ConsumerMessage:
        handle = message.handle
        return cls(
            topic=message.topic,
            queue=MessageQueue(handle.topic(group, message.topic), handle.broker_name, handle.queue_id),
            queue_offset=handle.offset,
            physical_offset=message.physical_offset,
            body=message.body,
            properties=message.properties,
            reconsume_times=message.reconsume_times,
            born_timestamp_ms=message.born_timestamp_ms,
            store_timestamp_ms=message.store_timestamp_ms,
        )

    def tried_again(self) -> ConsumerMessage:
        return replace(self, reconsume_times=self.reconsume_times + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """How much of one queue may wait to be consumed until no more is pulled."""

    messages: int = 1_000
    bytes: int = 100 * 1024 * 1024
    span: int = 2_000
    """How far apart the first and the last offset of those that wait may be, where they are consumed in any order."""


class ProcessQueue:
    """`begin` is the offset of the first message to pull."""

    def __init__(self, begin: int) -> None:
        self.next_offset = begin
        """Of the next message to pull."""
        self.is_dropped = False
        """The queue is no longer this member's: what is consumed of it from now on is not committed."""
        self.is_void = False
        """The group was set elsewhere: nothing that is consumed of it counts any more."""
        self.locked_ns: int | None = None
        """When this member last asked for the queue's lock and got it; None: it has none."""
        self._waiting: dict[int, ConsumerMessage] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, messages: Iterable[ConsumerMessage], next_offset: int) -> tuple[ConsumerMessage, ...]:
        """Pulled messages, in order; those that are new."""
        fresh = tuple(message for message in messages if message.queue_offset >= self.next_offset)
        for message in fresh:
            self._waiting[message.queue_offset] = message
            self._bytes += len(message.body)
        self.next_offset = max(self.next_offset, next_offset)
        return fresh

    def first(self, count: int) -> tuple[ConsumerMessage, ...]:
        """The messages that come first, at most so many, for who consumes in order."""
        return tuple(self._waiting[offset] for offset in sorted(self._waiting)[:count])

    def change(self, messages: Iterable[ConsumerMessage]) -> None:
        """They wait with another count of tries."""
        for message in messages:
            if message.queue_offset in self._waiting:
                self._waiting[message.queue_offset] = message

    def consumed(self, messages: Iterable[ConsumerMessage]) -> int:
        """They are done with; the offset up to which all are."""
        for message in messages:
            if self._waiting.pop(message.queue_offset, None) is not None:
                self._bytes -= len(message.body)
        return self.commit_offset

    @property
    def commit_offset(self) -> int:
        """Everything before it is consumed."""
        return min(self._waiting, default=self.next_offset)

    def moved(self, next_offset: int) -> int:
        """Where to begin anew when the queue begins later, or ends sooner, than where the next message was to be
        pulled: what waits is still to be consumed, if the queue has it."""
        return min(self.commit_offset, next_offset) if self._waiting else next_offset

    def is_full(self, limits: FlowLimits, *, in_order: bool) -> bool:
        if len(self._waiting) > limits.messages or self._bytes > limits.bytes:
            return True
        return not in_order and bool(self._waiting) and self.next_offset - min(self._waiting) > limits.span

    def is_locked(self, now_ns: int, lives_ns: int) -> bool:
        """Whether the lock that this member has been given is young enough to begin anything."""
        return self.locked_ns is not None and now_ns - self.locked_ns <= lives_ns
