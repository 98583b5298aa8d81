"""Levels of delay, what becomes of a delayed message, and the order in which its delivery counts."""

from __future__ import annotations

import pytest

from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.delayed.delay_levels import DEFAULT_LEVELS, DelayLevels, due, waiting
from system_under_test.rocketmq.broker.delayed.delay_service import MAX_NOTES, Arrivals
from system_under_test.rocketmq.broker.delayed.delivered_prefix import DeliveredPrefix
from system_under_test.storage.message import Message
from system_under_test.storage.new_message import NewMessage

LEVELS = DelayLevels.parse(DEFAULT_LEVELS)


def test_the_usual_levels_are_rocketmqs() -> None:
    assert len(LEVELS) == 18
    assert [LEVELS.delay_ms(level) for level in (1, 4, 5, 14, 16, 18)] == [
        1_000,
        30_000,
        60_000,
        600_000,
        1_800_000,
        7_200_000,
    ]


@pytest.mark.parametrize("text", ["", "1", "s", "1s 5", "-1s", "1x", "1.5s", "٣s", "99999999999s", "367d", "1s " * 257])
def test_what_is_no_list_of_delays_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        DelayLevels.parse(text)


def message_of(properties: dict[str, str]) -> NewMessage:
    return NewMessage(topic="T", queue_id=3, body=b"b", properties=properties, born_timestamp_ms=5, reconsume_times=2)


def stored(message: NewMessage) -> Message:
    return Message(
        topic=message.topic,
        queue_id=message.queue_id,
        queue_offset=0,
        physical_offset=0,
        size=1,
        body=message.body,
        properties=message.properties,
        flag=0,
        sys_flag=0,
        born_timestamp_ms=5,
        born_host=b"12345678",
        store_timestamp_ms=9,
        store_host=b"12345678",
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=0,
    )


def test_a_message_without_a_level_is_written_as_it_is() -> None:
    for properties in ({}, {"DELAY": "0"}, {"DELAY": "-3"}, {"KEYS": "DELAY"}):
        message = message_of(properties)
        assert waiting(message, LEVELS) is message


def test_a_delayed_message_waits_in_the_queue_of_its_level_and_comes_out_as_it_was() -> None:
    message = waiting(message_of({"TAGS": "t", "DELAY": "77", "TIMER_DELAY_SEC": "1"}), LEVELS)
    assert (message.topic, message.queue_id) == ("SCHEDULE_TOPIC_XXXX", 17)
    assert message.properties == {"TAGS": "t", "DELAY": "18", "REAL_TOPIC": "T", "REAL_QID": "3"}
    out = due(stored(message))
    assert out is not None
    assert (out.topic, out.queue_id, out.body, out.born_timestamp_ms, out.reconsume_times) == ("T", 3, b"b", 5, 2)
    assert out.properties == {"TAGS": "t", "REAL_TOPIC": "T", "REAL_QID": "3"}


@pytest.mark.parametrize("level", ["soon", "", "1.5", "9" * 50])
def test_a_level_that_is_no_number_is_refused(level: str) -> None:
    with pytest.raises(RemotingError, match="expected a level"):
        waiting(message_of({"DELAY": level}), LEVELS)


@pytest.mark.parametrize("properties", [{}, {"REAL_TOPIC": "T"}, {"REAL_TOPIC": "T", "REAL_QID": "-1"}])
def test_a_message_that_does_not_say_where_it_belongs_comes_out_nowhere(properties: dict[str, str]) -> None:
    assert due(stored(message_of(properties))) is None


def test_a_queue_is_delivered_up_to_the_first_gap() -> None:
    prefix = DeliveredPrefix(5)
    assert not prefix.delivered(7, 300)
    assert prefix.delivered(5, 200)
    assert (prefix.end, prefix.copies_end) == (6, 200)
    assert prefix.delivered(6, 100)
    assert (prefix.end, prefix.copies_end) == (8, 300)
    prefix.begins_at(20)
    assert prefix.delivered(20, 400)
    assert prefix.end == 21


def test_a_message_had_arrived_when_the_queue_was_first_seen_to_reach_beyond_it() -> None:
    arrivals = Arrivals()
    arrivals.note(3, 10)
    arrivals.note(5, 20)
    assert [arrivals.arrived_ns(offset) for offset in (0, 2, 3, 4, 5)] == [10, 10, 20, 20, None]
    arrivals.passed(3)
    assert arrivals.arrived_ns(3) == 20


def test_notes_that_are_dropped_make_arrivals_later_and_never_earlier() -> None:
    arrivals = Arrivals()
    for number in range(5 * MAX_NOTES):
        arrivals.note(number + 1, number)
        shown = arrivals.arrived_ns(0)
        assert shown is not None and shown >= 0
    for offset in range(5 * MAX_NOTES):
        shown = arrivals.arrived_ns(offset)
        assert shown is not None and shown >= offset
