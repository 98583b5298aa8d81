"""A group of consumers as brokers keep it and administrators ask for it (RocketMQ's SubscriptionGroupConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from system_under_test.rocketmq import topic

MAX_NAME: Final = 255
MAX_GROUPS: Final = 10_000
"""How many groups one broker group may have: all of them have to fit a frame."""


def check_name(name: str) -> None:
    """Raises ValueError unless a group may have this name."""
    topic.check_name(name, "group", MAX_NAME)


BROKER_ID_WHEN_SLOW: Final = 1
"""Whom to ask who is far behind, unless the group says otherwise: RocketMQ's first slave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """Only `may_consume` is acted upon; the rest is kept for those who ask."""

    name: str
    may_consume: bool = True
    may_consume_from_min: bool = True
    may_broadcast: bool = True
    consumes_in_order: bool = False
    retry_queues: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    broker_id_when_slow: int = BROKER_ID_WHEN_SLOW
    tells_changes_of_ids: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for what no group can be."""
        check_name(self.name)
        numbers = self.retry_queues, self.retry_max_times, self.broker_id, self.broker_id_when_slow
        if not all(type(number) is int and -1 <= number < 2**63 for number in numbers):
            raise ValueError(f"group {self.name}: expected whole numbers, got {numbers}")

    def as_json(self) -> dict[str, Any]:
        return {
            "brokerId": self.broker_id,
            "consumeBroadcastEnable": self.may_broadcast,
            "consumeEnable": self.may_consume,
            "consumeFromMinEnable": self.may_consume_from_min,
            "consumeMessageOrderly": self.consumes_in_order,
            "groupName": self.name,
            "notifyConsumerIdsChangedEnable": self.tells_changes_of_ids,
            "retryMaxTimes": self.retry_max_times,
            "retryQueueNums": self.retry_queues,
            "whichBrokerWhenConsumeSlowly": self.broker_id_when_slow,
        }

    @classmethod
    def from_json(cls, name: str, value: Mapping[str, Any]) -> ConsumerGroup:
        """Raises ValueError, TypeError, AttributeError."""
        default = cls(name=name)
        return cls(
            name=name,
            may_consume=value.get("consumeEnable", True) is True,
            may_consume_from_min=value.get("consumeFromMinEnable", True) is True,
            may_broadcast=value.get("consumeBroadcastEnable", True) is True,
            consumes_in_order=value.get("consumeMessageOrderly", False) is True,
            retry_queues=value.get("retryQueueNums", default.retry_queues),
            retry_max_times=value.get("retryMaxTimes", default.retry_max_times),
            broker_id=value.get("brokerId", default.broker_id),
            broker_id_when_slow=value.get("whichBrokerWhenConsumeSlowly", default.broker_id_when_slow),
            tells_changes_of_ids=value.get("notifyConsumerIdsChangedEnable", True) is True,
        )


def groups_as_json(groups: Mapping[str, ConsumerGroup]) -> dict[str, Any]:
    return {name: group.as_json() for name, group in groups.items()}


def groups_from_json(value: Mapping[str, Any]) -> dict[str, ConsumerGroup]:
    """Raises ValueError, TypeError, AttributeError."""
    if len(value) > MAX_GROUPS:
        raise ValueError(f"{len(value)} groups, at most {MAX_GROUPS} are possible")
    return {name: ConsumerGroup.from_json(name, entry) for name, entry in value.items()}
