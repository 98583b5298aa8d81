"""Requests of version 2 as tests make them, by few words."""

from __future__ import annotations

from system_under_test.rocketmq.proxy.v2 import (
    Address,
    AddressScheme,
    Broker,
    Endpoints,
    MessageQueue,
    MessageType,
    Resource,
    SystemProperties,
    UserMessage,
)
from tests.rocketmq.scenarios.broker_cluster import GROUP, TOPIC

NAMED = Resource(name=TOPIC)


def reached_by(proxy: str) -> Endpoints:
    return Endpoints(scheme=AddressScheme.DOMAIN_NAME, addresses=[Address(host=proxy, port=8081)])


def letter(body: str, **system: object) -> UserMessage:
    properties = {"message_id": f"id-{body}", "message_type": MessageType.NORMAL, **system}
    return UserMessage(topic=NAMED, body=body.encode(), system_properties=SystemProperties(**properties))


def queue(queue_id: int = 0) -> MessageQueue:
    return MessageQueue(topic=NAMED, id=queue_id, broker=Broker(name=GROUP))
