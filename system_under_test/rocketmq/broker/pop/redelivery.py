"""What becomes of a message that was given out and not acknowledged in time: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from system_under_test.rocketmq.broker.pop.records import CheckpointKey
from system_under_test.rocketmq.consumer_protocol import RETRY_PREFIX, one_more
from system_under_test.rocketmq.pop_protocol import dead_letter_topic, retry_topic
from system_under_test.storage.message import Message
from system_under_test.storage.new_message import NewMessage

FIRST_POP_TIME: Final = "1ST_POP_TIME"
DEAD_LETTER_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
CAME_AGAIN: Final = "POP_REVIVED"
"""The property that says which delivery of which message this one comes again for."""
DEFAULT_RETRIES: Final = 16


class PutAgain(NamedTuple):
    """How a message is to be written again."""

    topic: str
    properties: Mapping[str, str]
    reconsume_times: int


def original_topic(group: str, topic: str) -> str:
    """The topic whose messages come again through `topic`, if that is the group's retry topic; else itself."""
    prefix = f"{RETRY_PREFIX}{group}_"
    return topic[len(prefix) :] if topic.startswith(prefix) else topic


def delivery_name(key: CheckpointKey, offset: int) -> str:
    return f"{key.topic}@{key.group}@{key.queue_id}@{key.start_offset}@{key.pop_time_ms}@{offset}"


def written_again(message: Message, again: PutAgain) -> NewMessage:
    copy = NewMessage.copy_of(message, topic=again.topic, queue_id=0, properties=again.properties)
    return replace(copy, reconsume_times=again.reconsume_times)


def put_again(message: Message, key: CheckpointKey, offset: int, max_retries: int) -> PutAgain:
    """Into the retry topic of its group and topic, or among the dead letters where it came too often already."""
    properties = {FIRST_POP_TIME: str(key.pop_time_ms), **message.properties, CAME_AGAIN: delivery_name(key, offset)}
    topic = original_topic(key.group, key.topic)
    if message.reconsume_times >= (max_retries if max_retries >= 0 else DEFAULT_RETRIES):
        return PutAgain(dead_letter_topic(key.group), {**properties, DEAD_LETTER_TOPIC: topic}, message.reconsume_times)
    return PutAgain(retry_topic(key.group, topic), properties, one_more(message.reconsume_times))
