"""What brokers say of a group of consumers, where a proxy has to know."""

from __future__ import annotations

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.refusals import Refused
from system_under_test.rocketmq.proxy.v2 import Subscription

MOST_TOPICS = 16
"""So many of a client's topics are tried."""


async def consumes_in_order(brokers: Brokers, subscription: Subscription) -> bool:
    """Whether the group is set so at the first master that tells; not where none does."""
    group = subscription.group.name if subscription.group is not None else ""
    command = RemotingCommand.request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": group})
    for entry in subscription.subscriptions[:MOST_TOPICS]:
        topic = "" if entry.topic is None else entry.topic.name
        try:
            for broker_group in (await brokers.route(topic)).groups:
                answer = await brokers.ask_master(topic, broker_group.broker_name, command)
                if answer.code == ResponseCode.SUCCESS:
                    return ConsumerGroup.from_json(group, decode_json(answer.body)).consumes_in_order
        except (Refused, ValueError, TypeError, AttributeError):
            continue
    return False
