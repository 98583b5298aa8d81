"""Messages that are due at any time: when that is, where they wait, and as what they come out.

Pure. TIMER_DELAY_SEC and TIMER_DELAY_MS are spans from when the broker takes the message, TIMER_DELIVER_MS is a time by
the wall clock; the first that is there counts. A time that has passed already delays nothing. Such a message waits in
one queue of a topic of its own, with the time at which it is due in TIMER_OUT_MS: the begin of the slot of the wheel
that is over when it is due, so that it never comes out early.

One with TIMER_DEL_UNIQKEY takes another one back: it waits as any other, in the slot of the one whose UNIQ_KEY it
names, and when that slot is due neither comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from system_under_test.node.settings import Settings, flag, integer, setting
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.delayed.delay_levels import REAL_QUEUE, REAL_TOPIC
from system_under_test.rocketmq.transaction_protocol import UNIQUE_KEY
from system_under_test.storage.message import Message
from system_under_test.storage.new_message import NewMessage
from system_under_test.storage.timer_progress import TIMER_TOPIC

DELAY_SECONDS: Final = "TIMER_DELAY_SEC"
DELAY_MS: Final = "TIMER_DELAY_MS"
DELIVER_MS: Final = "TIMER_DELIVER_MS"
OUT_MS: Final = "TIMER_OUT_MS"
ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
ROLLED_FROM: Final = "TIMER_ROLLED_FROM"
"""The queue offset of the message that this one was written in place of; RocketMQ does not say that."""
DELETES: Final = "TIMER_DEL_UNIQKEY"
_MOST_DIGITS: Final = 18


def _slots(settings: Settings, name: str = "timerWheelSlots") -> int:
    """RocketMQ's wheel has slots for fourteen days whatever their width; this setting is the number of them."""
    return settings.integer(name, 14 * 86_400, minimum=8, maximum=10**9)


@setting
def _window_slots(settings: Settings, name: str) -> int:
    most = _slots(settings) // 4
    return settings.integer(name, min(2 * 86_400, most), minimum=2, maximum=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerSettings:
    enabled: bool = flag("timerWheelEnable", True)
    precision_ms: int = integer("timerPrecisionMs", 1000, minimum=1, maximum=60_000)
    max_delay_s: int = integer("timerMaxDelaySec", 3 * 86_400, maximum=10**9)
    window_slots: int = _window_slots("timerRollWindowSlot")
    """What is due later is written to the topic once more before that."""
    slots: int = setting(_slots)("timerWheelSlots")
    log_file_bytes: int = integer("mappedFileSizeTimerLog", 100 * 1024**2, minimum=52)


def is_timed(message: NewMessage) -> bool:
    """Whether it names a time, and has not been through the wheel."""
    return OUT_MS not in message.properties and any(
        name in message.properties for name in (DELAY_SECONDS, DELAY_MS, DELIVER_MS)
    )


def timed(message: NewMessage, settings: TimerSettings, now_ms: int) -> NewMessage:
    """As it is written now: to where timers wait, or as it is if its time has passed. Raises RemotingError."""
    if not settings.enabled:
        raise RemotingError(ResponseCode.SYSTEM_ERROR, "accurate timer message is not enabled: timerWheelEnable is off")
    delay_ms = _span_ms(message.properties)
    deliver_ms = _number(message.properties, DELIVER_MS) if delay_ms is None else now_ms + delay_ms
    if deliver_ms <= now_ms:
        require_none_taken_back(message)
        return message
    if deliver_ms - now_ms > settings.max_delay_s * 1000:
        raise _illegal(
            f"timer message illegal, the delay time should not be bigger than the max delay "
            f"{settings.max_delay_s * 1000}ms"
        )
    out_ms = (deliver_ms - 1) // settings.precision_ms * settings.precision_ms
    placed = {OUT_MS: str(out_ms), REAL_TOPIC: message.topic, REAL_QUEUE: str(message.queue_id)}
    return replace(message, topic=TIMER_TOPIC, queue_id=0, properties={**message.properties, **placed})


def require_none_taken_back(message: NewMessage) -> None:
    """Raises RemotingError for one that would be shown as a message, and takes nothing back."""
    if DELETES in message.properties:
        raise _illegal(f"{DELETES}: a timer is taken back by one that is due in its slot, and not yet")


@dataclass(frozen=True, slots=True)
class Named:
    """A timer as it is named by who takes it back."""

    slot_ms: str
    """Its slot as the message says it."""
    unique_key: str


def takes_back(message: Message) -> Named | None:
    """What it takes back, if it does."""
    key = message.properties.get(DELETES)
    return None if key is None else Named(message.properties.get(OUT_MS, ""), key)


def named(message: Message) -> Named:
    return Named(message.properties.get(OUT_MS, ""), message.properties.get(UNIQUE_KEY, ""))


def out_ms(message: Message, now_ms: int) -> int | None:
    """In which slot a message that waits is due, as seen now; None if it does not say.

    A span from the past does not end later than if it began now: it was stored by a broker whose clock was ahead.
    """
    try:
        slot_ms = _number(message.properties, OUT_MS)
        span_ms = _span_ms(message.properties)
    except RemotingError:
        return None
    return slot_ms if span_ms is None else min(slot_ms, now_ms + span_ms)


def rolled_from(message: Message) -> int | None:
    """The queue offset of the message that it was written in place of, if any."""
    text = message.properties.get(ROLLED_FROM, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def timer_due(message: Message) -> NewMessage | None:
    """What is written to its own topic now that its time has come; None if it does not say which that is."""
    topic, queue = message.properties.get(REAL_TOPIC), message.properties.get(REAL_QUEUE, "")
    if not topic or not (queue.isascii() and queue.isdigit() and len(queue) <= 9):
        return None
    dropped = (REAL_TOPIC, REAL_QUEUE, ROLLED_FROM)
    properties = {name: value for name, value in message.properties.items() if name not in dropped}
    return NewMessage.copy_of(message, topic=topic, queue_id=int(queue), properties=properties)


def rolled(message: Message, taken_in_ms: int) -> NewMessage:
    """What is written to wait once more: until then, as it was seen when it was taken in."""
    times = message.properties.get(ROLL_TIMES, "0")
    count = int(times) + 1 if times.isascii() and times.isdigit() and len(times) <= 9 else 1
    due_ms = out_ms(message, taken_in_ms)
    assert due_ms is not None, "it was taken in"
    rolls = {OUT_MS: str(due_ms), ROLL_TIMES: str(count), ROLLED_FROM: str(message.queue_offset)}
    return NewMessage.copy_of(message, topic=TIMER_TOPIC, queue_id=0, properties={**message.properties, **rolls})


def _span_ms(properties: Mapping[str, str]) -> int | None:
    if DELAY_SECONDS in properties:
        return _number(properties, DELAY_SECONDS) * 1000
    return _number(properties, DELAY_MS) if DELAY_MS in properties else None


def _number(properties: Mapping[str, str], name: str) -> int:
    """Raises RemotingError (MESSAGE_ILLEGAL)."""
    text = properties.get(name, "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise _illegal(f"{name}: expected a whole number of at most {_MOST_DIGITS} digits, got {text[:40]!r}")
    return int(text)


def _illegal(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, remark)
