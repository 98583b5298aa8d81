"""The records of the revive log: what was given out, and what became of it, as JSON with RocketMQ's names.

The revive log is a topic like any other, so it is replicated, flushed and cut like any other. Two records say more than
RocketMQ's, which its readers pass over:
- A checkpoint may replace the delivery of one message under another checkpoint. RocketMQ writes a checkpoint and an
  acknowledgement instead; where the log is cut between the two, the message would come twice.
- A settlement may say where messages were put to come again. It is written before them: where the log is cut between,
  the place holds no such message, and the settlement counts for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.pop_protocol import MAX_POPPED

REVIVE_TOPIC_PREFIX: Final = "rmq_sys_REVIVE_LOG_"
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""Its offset in a queue of the revive log: all before it is settled."""
REVIVE_QUEUES: Final = 8
CHECKPOINT_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"


class CheckpointKey(NamedTuple):
    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time_ms: int


class Ordered(NamedTuple):
    """Of messages that are popped in order: how often each came before, whose attempt this is, if it said so, and where
    the group goes on: before that place all others were settled already, also those behind the last of these."""

    times: tuple[int, ...]
    attempt_id: str
    next_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Messages at `offsets`, ascending, were given out and are invisible for `invisible_ms`.

    Without offsets it only says where the group begins: at the key's start offset. `replaces`: of this checkpoint the
    same message is settled by this record. `ordered`: the messages come again in their places, together with what
    follows; the last such checkpoint of a queue stands, and one with its name again only says that some are invisible
    for longer or shorter.
    """

    key: CheckpointKey
    invisible_ms: int
    offsets: tuple[int, ...]
    broker_name: str
    replaces: CheckpointKey | None = None
    ordered: Ordered | None = None

    @property
    def next_offset(self) -> int:
        """Where the group goes on in the queue."""
        if self.ordered is not None:
            return self.ordered.next_offset
        return self.offsets[-1] + 1 if self.offsets else self.key.start_offset


class Again(NamedTuple):
    """Messages were put to come again: into queue 0 of `topic`, at these queue offsets."""

    topic: str
    queue_offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """These messages of a checkpoint need not come again for its sake: acknowledged, or `again` says where they are."""

    key: CheckpointKey
    offsets: tuple[int, ...]
    broker_name: str
    again: Again | None = None


Record = Checkpoint | Settlement


def encode_record(record: Record) -> tuple[str, bytes]:
    """The tag and the body of the message."""
    key = record.key
    value: dict[str, Any] = {
        "c": key.group,
        "t": key.topic,
        "q": key.queue_id,
        "so": key.start_offset,
        "pt": key.pop_time_ms,
        "bn": record.broker_name,
    }
    if isinstance(record, Settlement):
        tag = ACK_TAG if len(record.offsets) == 1 and record.again is None else BATCH_ACK_TAG
        value |= {"ao": record.offsets[0]} if tag == ACK_TAG else {"ao": -1, "aol": list(record.offsets)}
        if record.again is not None:
            value["again"] = {"t": record.again.topic, "qo": list(record.again.queue_offsets)}
        return tag, _written(value)
    start = key.start_offset
    value |= {
        "it": record.invisible_ms,
        "bm": 0,
        "n": len(record.offsets),
        "ro": 0,
        "d": [offset - start for offset in record.offsets],
    }
    if record.replaces is not None:
        value["replaces"] = {"so": record.replaces.start_offset, "pt": record.replaces.pop_time_ms}
    if record.ordered is not None:
        ordered = record.ordered
        value["ordered"] = {"n": list(ordered.times), "a": ordered.attempt_id, "e": ordered.next_offset}
    return CHECKPOINT_TAG, _written(value)


def _written(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def decode_record(tag: str, body: bytes) -> Record:
    """Raises ValueError for what is no such record."""
    try:
        value = decode_json(body)
        key = CheckpointKey(
            _of(str, value["c"]),
            _of(str, value["t"]),
            _of(int, value["q"]),
            _of(int, value["so"]),
            _of(int, value["pt"]),
        )
        broker_name = _of(str, value.get("bn") or "")
        if tag == CHECKPOINT_TAG:
            return _checkpoint(key, broker_name, value)
        if tag == ACK_TAG:
            return Settlement(key=key, offsets=(_of(int, value["ao"]),), broker_name=broker_name)
        if tag == BATCH_ACK_TAG:
            again = value.get("again")
            offsets = _offsets(value["aol"])
            if again is not None and len(again["qo"]) != len(offsets):
                raise ValueError("as many places as messages are needed")
            return Settlement(
                key=key,
                offsets=offsets,
                broker_name=broker_name,
                again=None if again is None else Again(_of(str, again["t"]), _offsets(again["qo"])),
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no record of the revive log: {error!r}") from error
    raise ValueError(f"no record of the revive log has the tag {tag!r}")


def _checkpoint(key: CheckpointKey, broker_name: str, value: Mapping[str, Any]) -> Checkpoint:
    offsets = tuple(key.start_offset + difference for difference in _offsets(value["d"]))
    if list(offsets) != sorted(set(offsets)):
        raise ValueError("a checkpoint's messages ascend")
    replaced, ordered = value.get("replaces"), value.get("ordered")
    if ordered is not None and len(ordered["n"]) != len(offsets):
        raise ValueError("as many counts as messages are needed")
    return Checkpoint(
        key=key,
        invisible_ms=max(0, _of(int, value["it"])),
        offsets=offsets,
        broker_name=broker_name,
        replaces=None
        if replaced is None
        else key._replace(start_offset=_of(int, replaced["so"]), pop_time_ms=_of(int, replaced["pt"])),
        ordered=None
        if ordered is None
        else Ordered(_offsets(ordered["n"]), _of(str, ordered["a"]), _of(int, ordered["e"])),
    )


def _offsets(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_POPPED:
        raise ValueError(f"expected at most {MAX_POPPED} offsets")
    return tuple(_of(int, item) for item in value)


def _of(kind: type[Any], value: object) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, got {str(value)[:100]!r}")
    return value
