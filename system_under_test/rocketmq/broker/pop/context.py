"""What POP needs of the broker around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.pop.polls import Polls
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore


@dataclass(frozen=True, kw_only=True)
class PopContext:
    host: Host
    store: MessageStore
    config: BrokerConfig
    ensure_topic: Callable[[TopicConfig], Awaitable[None]]
    """Have this topic, durably, unless there is one of its name. Raises RemotingError."""
    groups: Callable[[str], ConsumerGroup | None]
    polls: Polls
