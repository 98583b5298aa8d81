"""What clients and brokers say to each other about messages that are popped, with RocketMQ's names and texts.

A popped message is known by its receipt handle (RocketMQ's extra info): the checkpoint under which it was given out,
and its own offset. A message comes again through the retry topic of its group and topic; handles say by a mark, not by
its name, that a message was popped from there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.consumer_protocol import DEAD_LETTER_PREFIX, RETRY_PREFIX

MAX_POPPED: Final = 32
"""Messages of one answer, and so of one checkpoint, at most."""
MAX_INVISIBLE_MS: Final = 1 << 40
ANY_QUEUE: Final = -1
ORDERED_REVIVE_QUEUE: Final = 999
"""Says in the handle of a message that it was popped in order: if it is not acknowledged, it comes again in its
place."""
_MAX_NUMBER: Final = 1 << 63
_MAX_DIGITS: Final = 20
_MAX_TEXT: Final = 255
_MAX_BATCH: Final = 1 << 16
"""Bits of one batch of acknowledgements, and batches of one request, at most."""
_ORIGINAL, _RETRIED = "0", "1"


def retry_topic(group: str, topic: str) -> str:
    """Where messages come again that the group has popped from the topic and not acknowledged in time."""
    return f"{RETRY_PREFIX}{group}_{topic}"


def dead_letter_topic(group: str) -> str:
    """Where messages end that have come too often."""
    return f"{DEAD_LETTER_PREFIX}{group}"


class InitMode(IntEnum):
    """Where a group begins that has never consumed a queue."""

    MIN = 0
    MAX = 1


class ReceiptHandle(NamedTuple):
    """One delivery of one message: `start_offset` and `pop_time_ms` name the checkpoint, `offset` is the message's."""

    start_offset: int
    pop_time_ms: int
    invisible_ms: int
    revive_queue: int
    is_retried: bool
    broker_name: str
    queue_id: int
    offset: int

    def encode(self) -> str:
        mark = _RETRIED if self.is_retried else _ORIGINAL
        first = f"{self.start_offset} {self.pop_time_ms} {self.invisible_ms} {self.revive_queue} {mark}"
        return f"{first} {self.broker_name} {self.queue_id} {self.offset}"

    @classmethod
    def decode(cls, text: str) -> ReceiptHandle:
        """Raises ValueError."""
        parts = text.split(" ")
        if len(parts) != len(cls._fields) or parts[4] not in (_ORIGINAL, _RETRIED):
            raise ValueError(f"no receipt handle: {text[:200]!r}")
        start, popped, invisible, revive, mark, broker, queue, offset = parts
        return cls(
            number(start),
            number(popped),
            number(invisible),
            number(revive),
            mark == _RETRIED,
            broker,
            number(queue),
            number(offset),
        )

    def topic(self, group: str, topic: str) -> str:
        """The topic whose queue the message lies in."""
        return retry_topic(group, topic) if self.is_retried else topic


@dataclass(frozen=True, slots=True, kw_only=True)
class PopRequest:
    """With a `poll_ms` of 0 the answer never waits. A `queue_id` of -1 takes messages from any queue."""

    topic: str
    consumer_group: str
    invisible_ms: int
    queue_id: int = ANY_QUEUE
    max_count: int = MAX_POPPED
    poll_ms: int = 0
    born_ms: int = 0
    init_mode: InitMode = InitMode.MIN
    expression: str = "*"
    expression_type: str = "TAG"
    is_ordered: bool = False
    attempt_id: str = ""
    """Where the last ordered pop of a queue had the same, this one gets its messages at once: the answer was lost."""

    def encode(self) -> RemotingCommand:
        return RemotingCommand.request(
            RequestCode.POP_MESSAGE,
            {
                "consumerGroup": self.consumer_group,
                "topic": self.topic,
                "queueId": str(self.queue_id),
                "maxMsgNums": str(self.max_count),
                "invisibleTime": str(self.invisible_ms),
                "pollTime": str(self.poll_ms),
                "bornTime": str(self.born_ms),
                "initMode": str(self.init_mode.value),
                "expType": self.expression_type,
                "exp": self.expression,
                "order": "true" if self.is_ordered else "false",
                **({"attemptId": self.attempt_id} if self.attempt_id else {}),
            },
        )

    @classmethod
    def decode(cls, command: RemotingCommand) -> PopRequest:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            return cls(
                topic=fields["topic"],
                consumer_group=fields["consumerGroup"],
                invisible_ms=_within(number(fields["invisibleTime"]), 1, MAX_INVISIBLE_MS, "invisibleTime"),
                queue_id=_within(number(fields["queueId"]), ANY_QUEUE, _MAX_NUMBER, "queueId"),
                max_count=_within(number(fields["maxMsgNums"]), 1, MAX_POPPED, "maxMsgNums"),
                poll_ms=max(0, number(fields.get("pollTime") or "0")),
                born_ms=number(fields.get("bornTime") or "0"),
                init_mode=InitMode(number(fields.get("initMode") or "0")),
                expression=fields.get("exp") or "*",
                expression_type=fields.get("expType") or "TAG",
                is_ordered=fields.get("order", "false").lower() == "true",
                attempt_id=_short(fields.get("attemptId") or ""),
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


class PoppedQueue(NamedTuple):
    """The messages of one answer that come from one queue, under one checkpoint. `times` are those that are popped in
    order: how often each came before; messages that come again otherwise say so themselves."""

    is_retried: bool
    queue_id: int
    start_offset: int
    offsets: tuple[int, ...]
    times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PopAnswer:
    """`data` is the messages, queue by queue in the order of `queues`; `rest` how many more there are at least."""

    pop_time_ms: int
    invisible_ms: int
    revive_queue: int
    queues: tuple[PoppedQueue, ...] = ()
    data: bytes = b""
    rest: int = 0

    def encode(self, code: int = ResponseCode.SUCCESS, remark: str | None = None) -> RemotingCommand:
        starts = ";".join(f"{_mark(queue)} {queue.queue_id} {queue.start_offset}" for queue in self.queues)
        offsets = ";".join(
            f"{_mark(queue)} {queue.queue_id} {','.join(map(str, queue.offsets))}" for queue in self.queues
        )
        fields = {
            "popTime": str(self.pop_time_ms),
            "invisibleTime": str(self.invisible_ms),
            "reviveQid": str(self.revive_queue),
            "restNum": str(self.rest),
            "startOffsetInfo": starts,
            "msgOffsetInfo": offsets,
        }
        counts = ";".join(_counts(queue) for queue in self.queues if queue.times)
        if counts:
            fields["orderCountInfo"] = counts
        return RemotingCommand.response(code, fields, self.data, remark)

    @classmethod
    def decode(cls, command: RemotingCommand) -> PopAnswer:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            starts = {place: number(start) for place, start in _infos(fields.get("startOffsetInfo") or "")}
            offsets = _infos(fields.get("msgOffsetInfo") or "")
            counts = _counted(fields.get("orderCountInfo") or "")
            return cls(
                pop_time_ms=number(fields["popTime"]),
                invisible_ms=number(fields["invisibleTime"]),
                revive_queue=number(fields["reviveQid"]),
                queues=tuple(
                    _popped_queue(mark, queue, starts[mark, queue], tuple(map(number, listed.split(","))), counts)
                    for (mark, queue), listed in offsets
                ),
                data=command.body,
                rest=number(fields.get("restNum") or "0"),
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error

    def handles(self, broker_name: str) -> Iterable[ReceiptHandle]:
        """One for each message, in the order of `data`."""
        for queue in self.queues:
            for offset in queue.offsets:
                yield ReceiptHandle(
                    queue.start_offset,
                    self.pop_time_ms,
                    self.invisible_ms,
                    self.revive_queue,
                    queue.is_retried,
                    broker_name,
                    queue.queue_id,
                    offset,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class HandleRequest:
    """About one delivery: an acknowledgement, or with `invisible_ms` another invisible time. `topic` is the one whose
    queue the message lies in, so the retry topic where it was popped from there."""

    topic: str
    consumer_group: str
    handle: ReceiptHandle
    invisible_ms: int | None = None

    def encode(self) -> RemotingCommand:
        fields = {
            "consumerGroup": self.consumer_group,
            "topic": self.topic,
            "queueId": str(self.handle.queue_id),
            "extraInfo": self.handle.encode(),
            "offset": str(self.handle.offset),
        }
        if self.invisible_ms is None:
            return RemotingCommand.request(RequestCode.ACK_MESSAGE, fields)
        fields["invisibleTime"] = str(self.invisible_ms)
        return RemotingCommand.request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)

    @classmethod
    def decode(cls, command: RemotingCommand) -> HandleRequest:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            # RocketMQ's clients may leave the offset out of the handle: it is a field of its own as well.
            text = fields["extraInfo"]
            whole = text if text.count(" ") == len(ReceiptHandle._fields) - 1 else f"{text} {fields['offset']}"
            handle = ReceiptHandle.decode(whole)._replace(
                queue_id=number(fields["queueId"]), offset=number(fields["offset"])
            )
            invisible_ms = None
            if command.code == RequestCode.CHANGE_MESSAGE_INVISIBLETIME:
                invisible_ms = _within(number(fields["invisibleTime"]), 1, MAX_INVISIBLE_MS, "invisibleTime")
            return cls(
                topic=fields["topic"],
                consumer_group=fields["consumerGroup"],
                handle=handle,
                invisible_ms=invisible_ms,
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedInvisibleTime:
    """The answer to a changed invisible time: what of the handle is another now (and its start offset, which is the
    message's own from here on)."""

    pop_time_ms: int
    invisible_ms: int
    revive_queue: int

    def encode(self) -> RemotingCommand:
        fields = {
            "popTime": str(self.pop_time_ms),
            "invisibleTime": str(self.invisible_ms),
            "reviveQid": str(self.revive_queue),
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, fields)

    @classmethod
    def decode(cls, command: RemotingCommand) -> ChangedInvisibleTime:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            return cls(
                pop_time_ms=number(fields["popTime"]),
                invisible_ms=number(fields["invisibleTime"]),
                revive_queue=number(fields["reviveQid"]),
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error

    def of(self, handle: ReceiptHandle) -> ReceiptHandle:
        return handle._replace(
            start_offset=handle.offset,
            pop_time_ms=self.pop_time_ms,
            invisible_ms=self.invisible_ms,
            revive_queue=self.revive_queue,
        )


class BatchedAcks(NamedTuple):
    """Acknowledgements of messages under one checkpoint. `topic` is the one whose queue they lie in."""

    consumer_group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time_ms: int
    offsets: tuple[int, ...]


def encode_batch_ack(group: str, topic: str, handles: Sequence[ReceiptHandle]) -> RemotingCommand:
    """All of one broker; `topic` is the one that was popped from, whether or not messages came through its retry
    topic."""
    batches: dict[tuple[bool, int, int, int], list[ReceiptHandle]] = {}
    for handle in handles:
        key = handle.is_retried, handle.queue_id, handle.start_offset, handle.pop_time_ms
        batches.setdefault(key, []).append(handle)
    acks = [
        {
            "c": group,
            "t": topic,
            "r": _RETRIED if same[0].is_retried else _ORIGINAL,
            "so": same[0].start_offset,
            "q": same[0].queue_id,
            "rq": same[0].revive_queue,
            "pt": same[0].pop_time_ms,
            "it": same[0].invisible_ms,
            "b": _bits(handle.offset - handle.start_offset for handle in same),
        }
        for same in batches.values()
    ]
    body = json.dumps({"brokerName": handles[0].broker_name, "acks": acks}).encode()
    return RemotingCommand.request(RequestCode.BATCH_ACK_MESSAGE, body=body)


def decode_batch_ack(command: RemotingCommand) -> tuple[BatchedAcks, ...]:
    """Raises RemotingError (INVALID_PARAMETER)."""
    try:
        acks = decode_json(command.body)["acks"]
        if not isinstance(acks, list) or len(acks) > _MAX_BATCH:
            raise ValueError("acks is no list, or too long")
        return tuple(_batched(ack) for ack in acks)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _invalid(error) from error


def _batched(ack: Mapping[str, Any]) -> BatchedAcks:
    group = _text(_either(ack, "c", "consumerGroup"))
    topic = _text(_either(ack, "t", "topic"))
    start = _whole(_either(ack, "so", "startOffset"))
    is_retried = _either(ack, "r", "retry") == _RETRIED
    return BatchedAcks(
        consumer_group=group,
        topic=retry_topic(group, topic) if is_retried else topic,
        queue_id=_whole(_either(ack, "q", "queueId")),
        start_offset=start,
        pop_time_ms=_whole(_either(ack, "pt", "popTime")),
        offsets=tuple(start + bit for bit in _set_bits(_text(_either(ack, "b", "bitSet")))),
    )


def _either(value: Mapping[str, Any], short: str, long: str) -> Any:
    return value[short] if short in value else value[long]


def _bits(numbers: Iterable[int]) -> str:
    """As RocketMQ writes a set of bits: the lowest first, in bytes that go as base64."""
    bits = 0
    for bit in numbers:
        bits |= 1 << bit
    return base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()


def _set_bits(text: str) -> list[int]:
    data = base64.b64decode(text, validate=True)
    if len(data) * 8 > _MAX_BATCH:
        raise ValueError(f"{len(data)} bytes of acknowledgements")
    return [8 * place + bit for place, byte in enumerate(data) for bit in range(8) if byte >> bit & 1]


def _mark(queue: PoppedQueue) -> str:
    return _RETRIED if queue.is_retried else _ORIGINAL


def _counts(queue: PoppedQueue) -> str:
    """Of each message that came before, and of the queue, as RocketMQ's older clients ask for it, the least of all."""
    pieces = [
        f"{_mark(queue)} qo{queue.queue_id}%{offset} {times}"
        for offset, times in zip(queue.offsets, queue.times, strict=True)
        if times
    ]
    return ";".join([*pieces, f"{_mark(queue)} {queue.queue_id} {min(queue.times)}"])


def _counted(text: str) -> dict[tuple[str, str], int]:
    """(mark, `qo<queue>%<offset>` or queue) -> how often. Raises ValueError."""
    pieces = (piece.split(" ") for piece in text.split(";")) if text else ()
    return {(mark, place): number(times) for mark, place, times in pieces}


def _popped_queue(
    mark: str, queue_id: int, start: int, offsets: tuple[int, ...], counts: Mapping[tuple[str, str], int]
) -> PoppedQueue:
    times: tuple[int, ...] = ()
    if (mark, str(queue_id)) in counts:
        times = tuple(counts.get((mark, f"qo{queue_id}%{offset}"), 0) for offset in offsets)
    return PoppedQueue(mark == _RETRIED, queue_id, start, offsets, times)


def _short(text: str) -> str:
    if len(text) > _MAX_TEXT:
        raise ValueError(f"attemptId: a text of {len(text)} characters, at most {_MAX_TEXT}")
    return text


def _infos(text: str) -> list[tuple[tuple[str, int], str]]:
    """`mark queue value` pieces with semicolons between. Raises ValueError."""
    found = []
    for piece in text.split(";") if text else ():
        mark, queue, value = piece.split(" ")
        found.append(((mark, number(queue)), value))
    return found


def number(text: str) -> int:
    """Raises ValueError for what is no whole number of 64 bits."""
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return _whole(int(text))


def _whole(value: object) -> int:
    if type(value) is not int or not -_MAX_NUMBER <= value < _MAX_NUMBER:
        raise ValueError(f"expected a whole number of 64 bits, got {str(value)[:100]!r}")
    return value


def _within(value: int, least: int, most: int, name: str) -> int:
    if not least <= value <= most:
        raise ValueError(f"{name}: expected {least} to {most}, got {value}")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError(f"expected a text, got {value!r}")
    return value


def _invalid(error: Exception) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, f"a field is missing or wrong: {error}")
