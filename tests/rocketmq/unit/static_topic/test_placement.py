"""Queues are dealt to the least loaded groups, and moved once loads have drifted apart."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.static_topic.placement import Move, QueueLoad, group_loads, is_due, placed, plan

GROUPS = ("A", "B", "C", "D")
EMPTY = dict.fromkeys(GROUPS, 0.0)


def loaded(topic: str, groups: str, load: float) -> list[QueueLoad]:
    return [QueueLoad(topic=topic, queue_id=number, group=group, load=load) for number, group in enumerate(groups)]


def test_queues_of_a_new_topic_are_dealt_round() -> None:
    assert placed(3, EMPTY) == ["A", "B", "C"]
    assert placed(5, EMPTY) == ["A", "A", "B", "C", "D"]


def test_the_least_loaded_groups_come_first() -> None:
    assert placed(2, {"A": 9.0, "B": 3.0, "C": 5.0}) == ["B", "C"]
    with pytest.raises(ValueError, match="no broker group"):
        placed(1, {})


def test_loads_of_13_9_9_and_4_become_9_9_9_and_8() -> None:
    queues = [*loaded("topicA", "ABC", 5_000.0), *loaded("topicB", "AABCD", 4_000.0)]
    assert group_loads(queues, GROUPS) == {"A": 13_000.0, "B": 9_000.0, "C": 9_000.0, "D": 4_000.0}
    moves = plan(queues, GROUPS)
    assert moves == (Move(topic="topicB", queue_id=1, source="A", target="D"),)
    targets = {(move.topic, move.queue_id): move.target for move in moves}
    after = [
        QueueLoad(topic=q.topic, queue_id=q.queue_id, group=targets.get((q.topic, q.queue_id), q.group), load=q.load)
        for q in queues
    ]
    assert group_loads(after, GROUPS) == {"A": 9_000.0, "B": 9_000.0, "C": 9_000.0, "D": 8_000.0}


def test_nothing_moves_up_to_the_threshold() -> None:
    assert not is_due({"A": 5_000.0, "B": 0.0})
    assert is_due({"A": 5_001.0, "B": 0.0})
    assert plan(loaded("topicA", "A", 5_000.0), ("A", "B")) == ()


def test_a_group_that_joins_gets_its_share() -> None:
    moves = plan(loaded("topicA", "AABB", 6_000.0), ("A", "B", "C"))
    assert [move.target for move in moves] == ["C", "C"]
