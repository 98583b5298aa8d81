"""Where a queue of a workload lies: in which group of brokers, and which queue of the topic it is there."""

from __future__ import annotations

from typing import NamedTuple

from harness.operation import Operation
from workloads.systems.rocketmq.settings import BrokerGroup, RocketmqSettings, broker_groups


class Queue(NamedTuple):
    group: BrokerGroup
    queue_id: int


class Queues:
    """The workload's queues are dealt out to the groups one after the other."""

    def __init__(self, settings: RocketmqSettings) -> None:
        self._groups = broker_groups(settings)

    def of(self, operation: Operation) -> Queue:
        """By the operation's key, `topic/number`."""
        assert operation.key is not None
        number = int(operation.key.rpartition("/")[2])
        queue_id, group = divmod(number, len(self._groups))
        return Queue(self._groups[group], queue_id)

    def name(self, topic: str, group_name: str, queue_id: int) -> str:
        """The key of a group's queue, of this topic or another."""
        group = next(number for number, group in enumerate(self._groups) if group.name == group_name)
        return f"{topic}/{queue_id * len(self._groups) + group}"
