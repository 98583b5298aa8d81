"""What clients may send leaves room for all that a broker adds to it, and says nothing that is a broker's to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.admission import (
    ADDED_BYTES,
    BROKERS_OWN,
    SENT_AGAIN_BYTES,
    most_bytes,
    require_room,
    without_brokers_own,
)
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.consuming.returned_messages import returned
from system_under_test.rocketmq.broker.delayed.delay_levels import at_level, due, waiting
from system_under_test.rocketmq.broker.delayed.timer_messages import rolled, timed, timer_due
from system_under_test.rocketmq.broker.pop.records import CheckpointKey
from system_under_test.rocketmq.broker.pop.redelivery import put_again, written_again
from system_under_test.rocketmq.broker.transactions.service import end_of, half_of, whole_of
from system_under_test.rocketmq.pop_protocol import retry_topic
from system_under_test.rocketmq.topic import MAX_NAME
from system_under_test.storage.batch import Batch
from system_under_test.storage.message import Message, decode_message
from system_under_test.storage.new_message import NewMessage
from system_under_test.storage.record_format import BLANK_BYTES

NOW_MS = 10**13 - 1
FAR = 10**18 - 1
"""An offset of a queue with as many digits as are read."""
GROUP = "g" * (MAX_NAME - len(retry_topic("", "t")))
CONFIG = BrokerConfig(name_servers=("n:1",), controllers=(), max_message_bytes=1 << 20, file_bytes=1 << 20)


def stored(message: NewMessage) -> Message:
    """As it lies in the log, far behind its beginning."""
    data, _ = Batch((message,)).encode(
        {(message.topic, message.queue_id): FAR},
        physical_offset=2**63 - 1,
        store_timestamp_ms=NOW_MS,
        store_host=bytes(8),
    )
    return decode_message(data, 0)


def copied(message: Message) -> NewMessage:
    return NewMessage.copy_of(message, topic=message.topic, queue_id=0, properties=message.properties)


def forms(sent: NewMessage) -> list[tuple[NewMessage, ...]]:
    """All that a broker may write of it, each what is written in one go."""
    key = CheckpointKey(GROUP, retry_topic(GROUP, "t"), 2**16, FAR, NOW_MS)
    popped = stored(written_again(stored(sent), put_again(stored(sent), key, FAR, 16)))
    dead = stored(written_again(popped, put_again(popped, key, FAR, 0)))
    back = [returned(each, topic="r" * MAX_NAME, queue_id=65_535, times=2**31 - 1) for each in (popped, dead)]
    written = [
        NewMessage.copy_of(each, topic=each.topic, queue_id=0, properties=each.properties) for each in (popped, dead)
    ]
    for each in (*back, sent):
        waits = waiting(at_level(each, 18), CONFIG.delays.levels)
        comes_out = due(stored(waits))
        assert comes_out is not None
        written += [waits, comes_out]
        clock = timed(replace(each, properties={**each.properties, "TIMER_DELAY_SEC": "9"}), CONFIG.timer, NOW_MS)
        rolls = rolled(stored(rolled(stored(clock), NOW_MS)), NOW_MS)
        rang = timer_due(stored(rolls))
        assert rang is not None
        written += [clock, rolls, rang]
    half = stored(half_of(sent, ""))
    whole = whole_of(half)
    ends = [(waiting(at_level(whole, 18), CONFIG.delays.levels), end_of(half)), (whole, end_of(half))]
    return [*((each,) for each in written), *ends]


@pytest.mark.parametrize("topic", ["t", "t" * MAX_NAME])
def test_the_room_is_enough_for_all_that_a_broker_adds(topic: str):
    sent = NewMessage(topic=topic, queue_id=65_535, body=b"x", properties={})
    size = Batch((sent,)).size
    most = max(Batch(each).size - size for each in forms(sent))
    assert 600 < most <= ADDED_BYTES - SENT_AGAIN_BYTES


def test_a_message_as_large_as_may_be_fits_and_one_beyond_is_refused():
    def of(size: int) -> NewMessage:
        return NewMessage(
            topic="t", queue_id=0, body=b"x" * (size - Batch((NewMessage(topic="t", queue_id=0, body=b""),)).size)
        )

    for config in (CONFIG, replace(CONFIG, max_message_bytes=1000), replace(CONFIG, file_bytes=2048)):
        most = most_bytes(config)
        require_room([of(most)], config)
        with pytest.raises(RemotingError):
            require_room([of(most + 1)], config)
        assert most <= config.file_bytes - BLANK_BYTES
        again = replace(of(most + SENT_AGAIN_BYTES), topic="%RETRY%g")
        require_room([replace(again, body=again.body[: -len("%RETRY%g") + 1])], config)


def test_what_is_a_brokers_to_say_is_taken_from_no_client():
    given = dict.fromkeys([*BROKERS_OWN, "KEYS", "RETRY_TOPIC", "TIMER_OUT_MS"], "1")
    assert set(without_brokers_own(given)) == {"KEYS", "RETRY_TOPIC", "TIMER_OUT_MS"}
