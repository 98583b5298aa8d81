"""The tables of one broker, in the files in which RocketMQ keeps them: its topics, its groups of consumers, and which
groups pop which topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.topics.versioned_table import VersionedTable
from system_under_test.rocketmq.consumer_group import ConsumerGroup, groups_as_json, groups_from_json
from system_under_test.rocketmq.consumer_protocol import RequestModeSetting
from system_under_test.rocketmq.topic import (
    DEFAULT_TOPIC,
    INHERIT,
    MAX_TOPICS,
    READ_WRITE,
    TopicConfig,
    is_internal_topic,
    topics_as_json,
    topics_from_json,
)
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore

_DEFAULT = TopicConfig(name=DEFAULT_TOPIC, read_queues=8, write_queues=8, permission=READ_WRITE | INHERIT)


class Tables:
    def __init__(self, host: Host, config: BrokerConfig) -> None:
        self._auto_create_topics = config.auto_create_topics
        self._auto_create_groups = config.auto_create_groups
        self.topics = VersionedTable[TopicConfig](
            host,
            f"{config.store_path}/config/topics.json",
            label="topicConfigTable",
            write=topics_as_json,
            read=topics_from_json,
            initial=config.topics,
        )
        self.groups = VersionedTable[ConsumerGroup](
            host,
            f"{config.store_path}/config/subscriptionGroup.json",
            label="subscriptionGroupTable",
            write=groups_as_json,
            read=groups_from_json,
            initial={},
        )
        self.request_modes = VersionedTable[RequestModeSetting](
            host,
            f"{config.store_path}/config/messageRequestMode.json",
            label="messageRequestModeMap",
            write=_modes_as_json,
            read=_modes_from_json,
            initial={},
        )
        """By `mode_key`."""

    def group(self, name: str) -> ConsumerGroup | None:
        """What was made of this name, or what one is that nobody made, if there may be such; None if not."""
        made = self.groups.get(name)
        if made is not None or not self._auto_create_groups:
            return made
        try:
            return ConsumerGroup(name=name)
        except ValueError:
            return None

    def load(self) -> None:
        """Raises StorageCorrupt."""
        self.topics.load()
        self.groups.load()
        self.request_modes.load()
        if self._auto_create_topics:
            self.topics.assume({DEFAULT_TOPIC: _DEFAULT})

    async def keep_topics_with_messages(self, store: MessageStore, master_epoch: int) -> None:
        """A topic that the last master made, or gave more queues, and nobody copied, may have acknowledged messages."""
        missing: list[TopicConfig] = []
        narrow: list[TopicConfig] = []
        for name, queues in store.topics_with_messages().items():
            known = self.topics.entries.get(name)
            if is_internal_topic(name):
                continue
            if known is None:
                missing.append(TopicConfig.of(name, queues))
            elif known.read_queues < queues:
                narrow.append(replace(known, read_queues=queues))
        kept = [*missing[: MAX_TOPICS - len(self.topics.entries)], *narrow]
        if kept:
            await self.topics.put({topic.name: topic for topic in kept}, master_epoch)


MAX_REQUEST_MODES = 10_000
"""All of them have to fit a frame."""


def mode_key(topic: str, group: str) -> str:
    """Names have no `@`."""
    return f"{topic}@{group}"


def _modes_as_json(settings: Mapping[str, RequestModeSetting]) -> dict[str, Any]:
    """Topic -> group -> what is set."""
    table: dict[str, dict[str, Any]] = {}
    for setting in settings.values():
        table.setdefault(setting.topic, {})[setting.group] = setting.as_json()
    return table


def _modes_from_json(value: Mapping[str, Any]) -> dict[str, RequestModeSetting]:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    settings = [RequestModeSetting.from_json(one) for groups in value.values() for one in groups.values()]
    if len(settings) > MAX_REQUEST_MODES:
        raise ValueError(f"{len(settings)} request modes, at most {MAX_REQUEST_MODES} are possible")
    return {mode_key(setting.topic, setting.group): setting for setting in settings}
