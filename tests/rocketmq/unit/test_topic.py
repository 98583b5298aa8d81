"""Topics and groups of consumers as values: which there can be, and how they travel."""

from __future__ import annotations

import json

import pytest

from system_under_test.rocketmq import consumer_group
from system_under_test.rocketmq.consumer_group import ConsumerGroup, groups_as_json, groups_from_json
from system_under_test.rocketmq.topic import (
    INHERIT,
    MAX_TOPICS,
    READ,
    READ_WRITE,
    WRITE,
    TopicConfig,
    check_name,
    is_system_topic,
    topic_after,
    topics_as_json,
    topics_from_json,
)

TOPIC = TopicConfig(name="%RETRY%g", read_queues=3, write_queues=2, permission=READ, system_flag=1, is_ordered=True)


@pytest.mark.parametrize("name", ["a", "A-b_9", "%RETRY%group", "a|b", "x" * 127])
def test_a_topic_may_have_a_name_of_letters_digits_and_four_signs(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", " ", "a b", "a+b", "a/b", "a.b", "a\n", "ü", "٣", "a@b", "x" * 128])
def test_a_topic_may_have_no_other_name(name: str) -> None:
    with pytest.raises(ValueError, match="a topic's name"):
        check_name(name)


def test_topics_of_the_system_are_known_by_name_and_prefix() -> None:
    assert all(map(is_system_topic, ("TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_x")))
    assert not any(map(is_system_topic, ("news", "%RETRY%g", "rmq_sy", "tbw102")))


def test_topics_travel_in_json_and_in_header_fields() -> None:
    topics = {TOPIC.name: TOPIC, "T": TopicConfig.of("T", 8)}
    assert topics_from_json(json.loads(json.dumps(topics_as_json(topics)))) == topics
    assert TopicConfig.from_fields(TOPIC.as_fields()) == TOPIC


def test_a_table_of_more_topics_than_a_broker_keeps_is_refused() -> None:
    one = TopicConfig.of("T", 1).as_json()
    with pytest.raises(ValueError, match="at most"):
        topics_from_json({f"T{number}": one for number in range(MAX_TOPICS + 1)})


@pytest.mark.parametrize(
    ("permission", "expected"),
    [(0, (False, False, False)), (READ, (True, False, False)), (WRITE | INHERIT, (False, True, True))],
)
def test_a_permission_is_a_sum(permission: int, expected: tuple[bool, ...]) -> None:
    topic = TopicConfig(name="T", read_queues=1, write_queues=1, permission=permission)
    assert (topic.is_readable, topic.is_writable, topic.is_inherited) == expected


@pytest.mark.parametrize(("wanted", "queues"), [(-5, 1), (0, 1), (3, 3), (8, 8), (9, 8), (10**30, 8)])
def test_a_topic_made_after_another_has_no_more_queues_and_hands_nothing_on(wanted: int, queues: int) -> None:
    default = TopicConfig(name="TBW102", read_queues=16, write_queues=8, permission=READ_WRITE | INHERIT)
    made = topic_after(default, "T", wanted)
    assert made == TopicConfig.of("T", queues)


def test_groups_travel_in_json_with_rocketmqs_names_and_defaults() -> None:
    groups = {"g": ConsumerGroup(name="g", may_consume=False, retry_max_times=-1), "h": ConsumerGroup(name="h")}
    assert groups_from_json(json.loads(json.dumps(groups_as_json(groups)))) == groups
    assert ConsumerGroup.from_json("h", {}) == groups["h"]
    assert groups["g"].as_json()["consumeEnable"] is False


def test_a_group_has_a_name_that_a_topic_could_have_and_may_have_a_longer_one() -> None:
    consumer_group.check_name("x" * 255)
    for name in ("", "a b", "x" * 256):
        with pytest.raises(ValueError, match="a group's name"):
            consumer_group.check_name(name)
