"""Which messages of clients a broker takes: those that it, and somebody who reads them, can work on later.

Pure. A message that was taken is written again when it is due, when its transaction commits, when a group could not
consume it: each time with something that the broker adds. So a client's message is shorter, by ADDED_BYTES, than what a
broker can write. What is added is a few properties with names and numbers of bounded lengths, and a longer topic:
tests hold the sum of all of them against the room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from system_under_test.dledger.entry import HEAD_BYTES
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.delayed.delay_levels import REAL_QUEUE, REAL_TOPIC
from system_under_test.rocketmq.broker.delayed.timer_messages import ROLL_TIMES, ROLLED_FROM
from system_under_test.rocketmq.broker.pop.redelivery import CAME_AGAIN
from system_under_test.rocketmq.compression import NotSpoken, compression_of
from system_under_test.rocketmq.consumer_protocol import RETRY_PREFIX
from system_under_test.rocketmq.transaction_protocol import CHECK_TIMES
from system_under_test.storage.batch import Batch
from system_under_test.storage.errors import MessageTooLarge
from system_under_test.storage.message import MAX_PROPERTIES_BYTES, encode_properties
from system_under_test.storage.new_message import NewMessage
from system_under_test.storage.record_format import BLANK_BYTES

ADDED_BYTES: Final = 2048
"""What a broker adds to a message, all in all, is no longer."""
SENT_AGAIN_BYTES: Final = 512
"""So many of ADDED_BYTES may be a consumer's, that sends what it could not consume to its group's retry topic
itself."""
BROKERS_OWN: Final = frozenset({CAME_AGAIN, CHECK_TIMES, REAL_QUEUE, REAL_TOPIC, ROLL_TIMES, ROLLED_FROM})
"""Properties that only brokers write, and believe."""


def without_brokers_own(properties: Mapping[str, str]) -> Mapping[str, str]:
    """What a client may say of its message. A consumer that sends on what it has read may have these from there."""
    if BROKERS_OWN.isdisjoint(properties):
        return properties
    return {name: value for name, value in properties.items() if name not in BROKERS_OWN}


def require_known_compression(sys_flag: int) -> None:
    """Raises RemotingError (MESSAGE_ILLEGAL) for a body that nobody could read, whatever is installed."""
    try:
        compression_of(sys_flag)
    except NotSpoken as error:
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"sysFlag: {error}") from error


def most_bytes(config: BrokerConfig) -> int:
    """So much of the log may what a client sends take: a file has to hold it with what is added. Where files are tiny,
    as only tests have them, half of one is left for that."""
    file_bytes = config.file_bytes - BLANK_BYTES - (HEAD_BYTES if config.dledger.is_on else 0)
    return min(config.max_message_bytes, max(file_bytes - ADDED_BYTES, file_bytes // 2))


def require_room(messages: Sequence[NewMessage], config: BrokerConfig) -> None:
    """For what the broker adds, of all that is sent together. Raises RemotingError (MESSAGE_ILLEGAL)."""
    more = SENT_AGAIN_BYTES if messages[0].topic.startswith(RETRY_PREFIX) else 0
    most, most_of_properties = most_bytes(config) + more, MAX_PROPERTIES_BYTES - ADDED_BYTES + more
    try:
        size = Batch(messages).size
    except MessageTooLarge as error:
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    longest = max(len(encode_properties(message.properties)) for message in messages)
    if size > most:
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"{size} bytes in the log, at most {most}")
    if longest > most_of_properties:
        raise RemotingError(
            ResponseCode.MESSAGE_ILLEGAL, f"properties of {longest} bytes, at most {most_of_properties}"
        )


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What is asked of each message, or of a batch, before it is written; each raises RemotingError."""

    require_known_compression: Callable[[int], None] = require_known_compression
    require_room: Callable[[Sequence[NewMessage], BrokerConfig], None] = require_room
