"""Messages delayed by a level: what the levels are, where such a message waits, and as what it comes out.

Pure. A message with the property DELAY waits in the queue of its level in SCHEDULE_TOPIC_XXXX, and has its real topic
and queue in two properties; what comes out is the same message without DELAY.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from system_under_test.node.settings import Settings, integer, setting
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.topic import SCHEDULE_TOPIC
from system_under_test.storage.message import Message
from system_under_test.storage.new_message import NewMessage

DEFAULT_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
MAX_LEVELS: Final = 256
MAX_DELAY_MS: Final = 366 * 86_400_000
DELAY: Final = "DELAY"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE: Final = "REAL_QID"
TIMERS: Final = ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""Properties by which a message is due at any time; a level outranks them."""
_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayDelivery(Enum):
    """Who delivers what is due."""

    SINGLE = "SINGLE"
    """One worker for all levels: they hold each other up."""
    LEVEL = "LEVEL"
    """One worker a level, which waits for each message until it is confirmed."""
    ASYNC = "ASYNC"
    """Many messages of a level at once; their order is given up."""


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """The delays of level 1 and on, in ms."""

    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> DelayLevels:
        """From RocketMQ's messageDelayLevel, as `1s 5s 2h`. Raises ValueError."""
        delays_ms = []
        for part in text.split():
            number, unit = part[:-1], part[-1:]
            if not (number.isascii() and number.isdigit() and len(number) <= 9 and unit in _UNITS):
                raise ValueError(f"expected delays such as 1s 5m 2h 1d with blanks between, got {part!r}")
            delay_ms = int(number) * _UNITS[unit]
            if delay_ms > MAX_DELAY_MS:
                raise ValueError(f"expected delays of at most 366d, got {part!r}")
            delays_ms.append(delay_ms)
        if not 1 <= len(delays_ms) <= MAX_LEVELS:
            raise ValueError(f"expected 1 to {MAX_LEVELS} levels, got {len(delays_ms)}")
        return cls(tuple(delays_ms))

    def __len__(self) -> int:
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        """Of a level from 1 to the highest."""
        return self.delays_ms[level - 1]


@setting
def _levels(settings: Settings, name: str) -> DelayLevels:
    try:
        return DelayLevels.parse(settings.text(name, DEFAULT_LEVELS))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


@setting
def _delivery(settings: Settings, name: str) -> DelayDelivery:
    """RocketMQ has a flag for the third mode alone; the first one is that of its early versions."""
    is_asynchronous = settings.flag("enableScheduleAsyncDeliver", False)
    value = settings.text(name, "ASYNC" if is_asynchronous else "LEVEL")
    if value not in DelayDelivery.__members__:
        raise ValueError(f"{name}: expected one of {', '.join(DelayDelivery.__members__)}, got {value!r}")
    if is_asynchronous and value != "ASYNC":
        raise ValueError(f"{name}: expected ASYNC with enableScheduleAsyncDeliver, got {value}")
    return DelayDelivery[value]


@dataclass(frozen=True, kw_only=True, slots=True)
class DelaySettings:
    levels: DelayLevels = _levels("messageDelayLevel")
    delivery: DelayDelivery = _delivery("scheduleDeliveryMode")
    pending: int = integer("scheduleAsyncDeliverMaxPendingLimit", 2000, minimum=1)
    """So many messages of one level are delivered at once, at most, where delivery is asynchronous."""


def level_of(message: NewMessage) -> int:
    """The level by which it is delayed, 0 for none. Raises RemotingError (MESSAGE_ILLEGAL) for what is no number."""
    text = message.properties.get(DELAY, "0")
    try:
        if len(text) > 20:
            raise ValueError
        return max(0, int(text))
    except ValueError:
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"{DELAY}: expected a level, got {text[:40]!r}") from None


def at_level(message: NewMessage, level: int) -> NewMessage:
    """The message, to be delayed by this level and nothing else."""
    properties = {name: value for name, value in message.properties.items() if name not in (*TIMERS, DELAY)}
    return replace(message, properties={**properties, DELAY: str(level)} if level > 0 else properties)


def waiting(message: NewMessage, levels: DelayLevels) -> NewMessage:
    """The message as it is written: to where it waits, if it is delayed. A level that is too high means the highest.

    Raises RemotingError (MESSAGE_ILLEGAL).
    """
    level = min(level_of(message), len(levels))
    if level == 0:
        return message
    properties = {name: value for name, value in message.properties.items() if name not in TIMERS}
    properties |= {DELAY: str(level), REAL_TOPIC: message.topic, REAL_QUEUE: str(message.queue_id)}
    return replace(message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties)


def due(message: Message) -> NewMessage | None:
    """What is written to its own topic now that its time has come; None if it does not say which that is."""
    topic, queue = message.properties.get(REAL_TOPIC), message.properties.get(REAL_QUEUE, "")
    if not topic or not (queue.isascii() and queue.isdigit() and len(queue) <= 9):
        return None
    properties = {name: value for name, value in message.properties.items() if name not in (DELAY, *TIMERS)}
    return NewMessage.copy_of(message, topic=topic, queue_id=int(queue), properties=properties)
