"""The tables of one broker: its topics and its groups of consumers, in the files in which RocketMQ keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.versioned_table import VersionedTable
from system_under_test.rocketmq.consumer_group import ConsumerGroup, groups_as_json, groups_from_json
from system_under_test.rocketmq.topic import (
    DEFAULT_TOPIC,
    INHERIT,
    READ_WRITE,
    TopicConfig,
    topics_as_json,
    topics_from_json,
)
from system_under_test.runtime.host import Host

_DEFAULT_QUEUES = 8


class Tables:
    def __init__(self, host: Host, config: BrokerConfig) -> None:
        self.topics = VersionedTable[TopicConfig](
            host,
            f"{config.store_path}/config/topics.json",
            label="topicConfigTable",
            write=topics_as_json,
            read=topics_from_json,
            initial={topic.name: topic for topic in _initial_topics(config)},
        )
        self.groups = VersionedTable[ConsumerGroup](
            host,
            f"{config.store_path}/config/subscriptionGroup.json",
            label="subscriptionGroupTable",
            write=groups_as_json,
            read=groups_from_json,
            initial={},
        )

    def load(self) -> None:
        """Raises StorageCorrupt."""
        self.topics.load()
        self.groups.load()


def _initial_topics(config: BrokerConfig) -> Iterator[TopicConfig]:
    yield from config.topics.values()
    if config.auto_create_topics:
        yield TopicConfig(
            name=DEFAULT_TOPIC,
            read_queues=_DEFAULT_QUEUES,
            write_queues=_DEFAULT_QUEUES,
            permission=READ_WRITE | INHERIT,
        )
