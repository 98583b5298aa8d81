"""The messages that a member has pulled: what may be committed while some of them are not consumed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage, FlowLimits, ProcessQueue
from system_under_test.rocketmq.consumer_protocol import MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)


def message(offset: int, size: int = 1, tries: int = 0) -> ConsumerMessage:
    return ConsumerMessage(
        topic="T",
        queue=QUEUE,
        queue_offset=offset,
        physical_offset=offset * 100,
        body=b"x" * size,
        properties={},
        reconsume_times=tries,
        born_timestamp_ms=0,
        store_timestamp_ms=0,
    )


@given(st.permutations(range(8)), st.integers(0, 8))
def test_what_is_committed_is_never_beyond_a_message_that_is_not_consumed(order: list[int], count: int) -> None:
    queue = ProcessQueue(0)
    queue.put([message(offset) for offset in range(8)], 8)
    done = order[:count]
    committed = queue.commit_offset
    for offset in done:
        committed = queue.consumed([message(offset)])
    assert committed == min((offset for offset in range(8) if offset not in done), default=8)
    assert len(queue) == 8 - count


def test_offsets_that_hold_nothing_for_this_member_are_committed_with_those_before_them() -> None:
    queue = ProcessQueue(5)
    queue.put([message(6), message(9)], 12)
    assert queue.commit_offset == 6
    assert queue.consumed([message(6)]) == 9
    assert queue.consumed([message(9)]) == 12


def test_what_comes_twice_is_taken_once() -> None:
    queue = ProcessQueue(0)
    assert [one.queue_offset for one in queue.put([message(0), message(1)], 2)] == [0, 1]
    assert [one.queue_offset for one in queue.put([message(1), message(2)], 3)] == [2]
    assert queue.next_offset == 3


def test_a_message_that_is_to_be_tried_again_waits_with_its_new_count() -> None:
    queue = ProcessQueue(0)
    queue.put([message(0), message(1)], 2)
    queue.change([message(0).tried_again()])
    assert [one.reconsume_times for one in queue.first(2)] == [1, 0]


def test_it_is_full_by_messages_by_bytes_or_by_their_span() -> None:
    queue = ProcessQueue(0)
    queue.put([message(0, size=10), message(1)], 50)
    assert not queue.is_full(FlowLimits(messages=2, bytes=11, span=50), in_order=False)
    assert queue.is_full(FlowLimits(messages=1), in_order=True)
    assert queue.is_full(FlowLimits(bytes=10), in_order=True)
    assert queue.is_full(FlowLimits(span=49), in_order=False)
    assert not queue.is_full(FlowLimits(span=49), in_order=True)


def test_a_lock_lasts_from_when_it_was_asked_for() -> None:
    queue = ProcessQueue(0)
    assert not queue.is_locked(0, 100)
    queue.locked_ns = 50
    assert queue.is_locked(150, 100)
    assert not queue.is_locked(151, 100)
