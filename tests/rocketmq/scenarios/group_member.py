"""A member of a group of consumers whose listener notes what it gets, for stories."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.consumer.config import ConsumerConfig, Outcome
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage
from system_under_test.rocketmq.client.consumer.push_consumer import PushConsumer
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import ConsumeFromWhere
from system_under_test.rocketmq.message_protocol import SendRequest
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, TOPIC, Cluster

OK = "SUCCESS"


class Member:
    """A member of a group whose listener notes what it gets, and fails as it is told to."""

    def __init__(self, cluster: Cluster, name: str, group: str = "readers", **config: Any) -> None:
        self.got: list[str] = []
        """`body` the first time, `body+2` the third time."""
        self.fails: Callable[[ConsumerMessage], bool] = lambda message: False
        self.takes_s = 0.0
        self._host = cluster.host(name)
        defaults = {"from_where": ConsumeFromWhere.FIRST_OFFSET, "subscriptions": {TOPIC: "*"}}
        self.consumer = PushConsumer(
            self._host,
            ConsumerConfig(
                nameservers=tuple(f"{name}:9876" for name in CONTROLLERS),
                group=group,
                client_id=name,
                **{**defaults, **config},
            ),
            self.listen,
        )
        self.consumer.start()

    async def listen(self, messages: Sequence[ConsumerMessage]) -> Outcome:
        for message in messages:
            tries = f"+{message.reconsume_times}" if message.reconsume_times else ""
            self.got.append(message.body.decode() + tries)
        await self._host.clock.sleep(self.takes_s)
        return Outcome.LATER if any(map(self.fails, messages)) else Outcome.SUCCESS

    @property
    def queues(self) -> list[int]:
        return [queue.queue_id for queue in self.consumer.queues if queue.topic == TOPIC]

    async def has(self, *queues: int) -> bool:
        return self.queues == list(queues)


async def send(cluster: Cluster, node: str, queue: int, *bodies: str) -> None:
    for body in bodies:
        request = SendRequest(topic=TOPIC, queue_id=queue, body=body.encode(), born_timestamp_ms=0)
        assert await cluster.ask(node, request.encode()) == OK


async def until_got(cluster: Cluster, what: Sequence[str], *members: Member, within_s: float = 30) -> None:
    async def is_got() -> bool:
        return sorted(one for member in members for one in member.got) == sorted(what)

    try:
        await cluster.until(is_got, within_s)
    except AssertionError:
        assert sorted(one for member in members for one in member.got) == sorted(what)


async def set_retry_queues(cluster: Cluster, node: str, queues: int) -> None:
    group = ConsumerGroup(name="readers", retry_queues=queues).as_json()
    made = RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(group).encode())
    assert await cluster.ask(node, made) == OK
