"""A queue moves step by step; each step may be asked again, none may be undone by an older one."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.static_topic.acceptance import ChangeRefused, accepted_queue
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment
from system_under_test.rocketmq.static_topic.mapping import StaticTopic, first_queues
from system_under_test.rocketmq.static_topic.remapping import CannotMove, Freeze, Moved, Open, next_step, rounded_up

TOTAL = 4
AT_A = first_queues(["a"])[0]


def end_of(queue_id: int) -> int:
    return 12


def frozen() -> LogicQueue:
    step = next_step({"a": AT_A, "b": AT_A}, 0, "b", TOTAL)
    assert isinstance(step, Freeze) and step.group == "a"
    return accepted_queue(AT_A, step.queue, "a", end_of)


def moved() -> LogicQueue:
    step = next_step({"a": frozen(), "b": AT_A}, 0, "b", TOTAL)
    assert isinstance(step, Open) and step.group == "b"
    return accepted_queue(AT_A, step.queue, "b", end_of)


@pytest.mark.parametrize(("offset", "begin"), [(0, 10), (4, 10), (5, 20), (9, 20), (10, 20), (15, 30)])
def test_a_segment_begins_at_a_block_half_a_block_away_at_least(offset: int, begin: int) -> None:
    assert rounded_up(offset, 10) == begin


def test_who_freezes_its_segment_decides_its_end() -> None:
    queue = frozen()
    assert (queue.leader, queue.is_pending, queue.segments[0].end_offset) == (None, True, 12)
    assert queue.decided == queue.segments[:1]


def test_the_next_segment_begins_behind_the_end() -> None:
    queue = moved()
    assert (queue.leader, queue.last.logic_offset, queue.last.queue_id) == ("b", 10_000, 4)
    assert next_step({"a": frozen(), "b": queue}, 0, "b", TOTAL) == Moved(queue, ("a",))


def test_a_move_that_was_begun_is_ended_whatever_is_asked_for() -> None:
    assert isinstance(next_step({"a": frozen(), "b": None, "c": None}, 0, "c", TOTAL), Open)
    assert isinstance(next_step({"a": frozen()}, 0, None, TOTAL), Open)


def test_nothing_is_decided_without_the_leaders_answer() -> None:
    with pytest.raises(CannotMove, match="a, which leads queue 0, does not answer"):
        next_step({"b": AT_A}, 0, "b", TOTAL)


def test_the_same_change_is_none() -> None:
    queue = frozen()
    again = next_step({"a": AT_A}, 0, "b", TOTAL)
    assert isinstance(again, Freeze)
    assert accepted_queue(queue, again.queue, "a", lambda queue_id: 99) == queue


def test_an_older_change_is_refused() -> None:
    with pytest.raises(ChangeRefused, match="epoch 0 is older than 2"):
        accepted_queue(moved(), AT_A, "a", end_of)


def test_another_change_of_the_same_epoch_is_refused() -> None:
    other = next_step({"a": AT_A}, 0, "c", TOTAL)
    assert isinstance(other, Freeze)
    with pytest.raises(ChangeRefused, match="epoch 1 is that of another change"):
        accepted_queue(frozen(), other.queue, "a", end_of)


def test_segments_do_not_overlap() -> None:
    first = Segment(generation=0, broker_name="a", queue_id=0, logic_offset=0, end_offset=12)
    second = Segment(generation=1, broker_name="b", queue_id=4, logic_offset=11)
    with pytest.raises(ChangeRefused, match="segment 1 begins before segment 0 ends"):
        accepted_queue(AT_A, LogicQueue(epoch=2, segments=(first, second)), "c", end_of)


def test_offsets_are_found_in_their_segments() -> None:
    queue = moved()
    assert [queue.at(offset).broker_name for offset in (0, 11, 12, 9_999, 10_000)] == ["a"] * 4 + ["b"]
    assert (queue.segments[0].physical(9_999), queue.segments[1].physical(10_003)) == (12, 3)
    assert queue.after(queue.segments[0]) == queue.last
    assert queue.after(queue.last) is None


def test_a_topic_travels_as_it_is() -> None:
    topic = StaticTopic(name="orders", total_queues=TOTAL, queues={**first_queues(["a", "b", "a", "b"]), 0: moved()})
    assert StaticTopic.decode(topic.encode("b")) == topic
    assert topic.led_by("b") == {0: 4, 1: 1, 3: 3}
