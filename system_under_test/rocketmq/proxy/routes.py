"""QueryRoute and QueryAssignment: which queues clients may use, all of them by way of the proxy they ask."""

from __future__ import annotations

from collections.abc import Iterator

from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.pop_protocol import ANY_QUEUE
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.messages import group_of, topic_of
from system_under_test.rocketmq.proxy.refusals import OK, Refused
from system_under_test.rocketmq.proxy.v2 import (
    Assignment,
    Broker,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryRouteRequest,
    QueryRouteResponse,
    Resource,
)
from system_under_test.rocketmq.topic import READ, READ_WRITE, WRITE

_TAKEN = [MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION]


async def route_of(brokers: Brokers, request: QueryRouteRequest) -> QueryRouteResponse:
    """Raises Refused."""
    topic = topic_of(request.topic)
    route = await brokers.route(topic)
    queues = list(_queues(route, request.topic, _endpoints(request.endpoints)))
    return QueryRouteResponse(status=OK, message_queues=queues)


async def assignment_of(brokers: Brokers, request: QueryAssignmentRequest, is_fifo: bool) -> QueryAssignmentResponse:
    """Every consumer may pop from every broker; in order of queues, from each queue. Raises Refused."""
    topic = topic_of(request.topic)
    group_of(request.group)
    endpoints = _endpoints(request.endpoints)
    assignments = []
    for group in (await brokers.route(topic)).groups:
        if group.permission & READ and group.master is not None:
            broker = Broker(name=group.broker_name, id=0, endpoints=endpoints)
            for queue_id in range(group.read_queues) if is_fifo else (ANY_QUEUE,):
                queue = MessageQueue(
                    topic=request.topic,
                    id=queue_id,
                    permission=_permission(group.permission),
                    broker=broker,
                    accept_message_types=list(_TAKEN),
                )
                assignments.append(Assignment(message_queue=queue))
    if not assignments:
        raise Refused(Code.FORBIDDEN, f"no broker lets topic {topic} be read")
    return QueryAssignmentResponse(status=OK, assignments=assignments)


def _queues(route: TopicRoute, topic: Resource | None, endpoints: Endpoints) -> Iterator[MessageQueue]:
    for group in route.groups:
        if group.master is None:
            continue
        broker = Broker(name=group.broker_name, id=0, endpoints=endpoints)
        readable = group.read_queues if group.permission & READ else 0
        writable = group.write_queues if group.permission & WRITE else 0
        for queue_id in range(max(readable, writable)):
            permission = (READ if queue_id < readable else 0) | (WRITE if queue_id < writable else 0)
            yield MessageQueue(
                topic=topic,
                id=queue_id,
                permission=_permission(permission),
                broker=broker,
                accept_message_types=list(_TAKEN),
            )


def _permission(permission: int) -> Permission:
    return {READ: Permission.READ, WRITE: Permission.WRITE, READ_WRITE: Permission.READ_WRITE}.get(
        permission & READ_WRITE, Permission.NONE
    )


def _endpoints(endpoints: Endpoints | None) -> Endpoints:
    """The proxy's, by the name that the client knows it by. Raises Refused."""
    if endpoints is None or not endpoints.addresses:
        raise Refused(Code.ILLEGAL_ACCESS_POINT, "the call does not say by which address the client reached the proxy")
    return endpoints
