"""What becomes of a message that a group could not consume: a later try, or a dead letter in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import (
    FIRST_RETRY_LEVEL,
    RETRY_PREFIX,
    SendBackRequest,
    dead_letter_topic,
    one_more,
    retry_topic,
)
from system_under_test.storage.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """What becomes of a message that was sent back."""

    topic: str
    queues: int
    reconsume_times: int
    delay_level: int = 0
    """0: it may be read at once."""


def what_becomes_of(message: Message, request: SendBackRequest, group: ConsumerGroup) -> Return:
    """Another try, or the dead-letter topic if there have been as many as there may be, or the consumer says so."""
    most = group.retry_max_times if request.max_reconsume_times is None else request.max_reconsume_times
    times = message.reconsume_times
    if times >= most or request.delay_level < 0:
        return Return(topic=dead_letter_topic(group.name), queues=1, reconsume_times=one_more(times))
    return Return(
        topic=retry_topic(group.name),
        queues=group.retry_queues,
        reconsume_times=one_more(times),
        delay_level=request.delay_level or FIRST_RETRY_LEVEL + times,
    )


WhatBecomes = Callable[[Message, SendBackRequest, ConsumerGroup], Return | None]
"""Decides where a message goes that was sent back; None: nowhere."""


def topic_after_tries(topic: str, reconsume_times: int, most: int) -> str:
    """Where a message goes that a consumer itself sends to a retry topic, its count of times grown already."""
    return dead_letter_topic(topic.removeprefix(RETRY_PREFIX)) if reconsume_times > most else topic
