"""Members of groups of consumers, and who asks brokers how far groups have come.

A member is a push consumer as applications use it. What its listener is given waits here until an operation takes it
over; the listener returns when the operation that finishes it says with which outcome.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import PRECONDITION_FAILED, SERVICE_NOT_AVAILABLE, OperationError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.broker.runtime_info import DELAY_PROGRESS
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.client.consumer.config import ConsumerConfig, DividedBy, Mode, Outcome
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage, FlowLimits
from system_under_test.rocketmq.client.consumer.push_consumer import PushConsumer
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import (
    ConsumeFromWhere,
    MessageModel,
    MessageQueue,
    RequestMode,
    RequestModeSetting,
    dead_letter_topic,
    retry_topic,
)
from system_under_test.rocketmq.pop_protocol import retry_topic as pop_retry_topic
from workloads.systems.rocketmq.clients.connect import carry_out, message_client, request_timeout_s
from workloads.systems.rocketmq.clients.queues import Queues
from workloads.systems.rocketmq.settings import (
    NAMESERVER_PORT,
    TOPIC,
    RocketmqSettings,
    addresses,
    broker_groups,
    name_server_names,
    node_of,
    topic_of,
)

PATIENCE_S = 0.7
"""So long a member waits for its next messages, until it says that there are none."""
BATCH = 4
"""Messages at once for a listener that does not consume in order."""
TASKS = 4
PULL_BATCH = 8
WAITING = 16
"""Messages of one queue that a member has and has not begun."""
POPPING = "popping"
POP_AGAIN_S = 0.5
RETRY_LEVEL = 1
"""What is sent back comes again after the shortest delay: a storm is too short for the usual ones."""
READ_BATCH = 64


@dataclass(slots=True, eq=False)
class _Delivery:
    messages: tuple[ConsumerMessage, ...]
    outcome: asyncio.Future[Outcome]


class ConsumptionClient:
    """A producer, and a member of a group from `join` until `leave` or `crash`."""

    def __init__(self, host: Any, settings: RocketmqSettings, process: int) -> None:
        self._host = host
        self._settings = settings
        self._process = process
        self._topic = topic_of(settings, "consumption")
        self._queues = Queues(settings)
        self._client = message_client(host, settings)
        self._admin = AdminClient(host, request_timeout_s(settings))
        self._consumer: PushConsumer | None = None
        self._member = ""
        self._is_broadcast = False
        self._is_popping = False
        self._deliveries: deque[_Delivery] = deque()
        self._came = asyncio.Event()
        self._in_hand: _Delivery | None = None
        self._requests = {
            "send": self._send,
            "join": self._join,
            "consume": self._consume,
            "finish": self._finish,
            "leave": self._leave,
            "crash": self._crash,
            "committed": self._committed,
            "settled": self._settled,
            "dead-letters": self._dead_letters,
        }

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._end()
        self._client.close()
        self._admin.close()

    async def invoke(self, operation: Operation) -> Operation:
        return await carry_out(self._requests, operation)

    async def _send(self, operation: Operation) -> Operation:
        value = _value(operation)
        group, queue = self._queues.of(operation)
        sent = await self._client.send(self._topic, queue, b"%d" % value["message"], broker_name=group.name)
        return operation._replace(type="ok", value={**value, "offset": sent.queue_offset}, node=node_of(sent.broker))

    # a member

    async def _join(self, operation: Operation) -> Operation:
        value, settings = _value(operation), self._settings
        self._is_broadcast = value["model"] == "broadcasting"
        # Where each member keeps its own place, who comes back is the same one.
        self._member = self._host.name if self._is_broadcast else f"{self._host.name}@{self._process}"
        self._is_popping = value["mode"] == POPPING
        if self._is_popping:
            await self._have_popped(value["group"], value["limit"])
        mode = Mode.CONCURRENTLY if self._is_popping else Mode(value["mode"])
        is_divided_by_brokers = self._is_popping or (
            settings.assignment == "broker" and mode is Mode.CONCURRENTLY and not self._is_broadcast
        )
        config = ConsumerConfig(
            nameservers=tuple(addresses(name_server_names(settings), NAMESERVER_PORT)),
            group=value["group"],
            client_id=self._member,
            subscriptions={self._topic: "*"},
            mode=mode,
            divided_by=DividedBy.BROKERS if is_divided_by_brokers else DividedBy.MEMBERS,
            model=MessageModel.BROADCASTING if self._is_broadcast else MessageModel.CLUSTERING,
            from_where=ConsumeFromWhere.FIRST_OFFSET,
            max_reconsume_times=value["limit"],
            retry_delay_level=RETRY_LEVEL,
            pull_batch=PULL_BATCH,
            consume_batch=1 if mode is Mode.ORDERLY else BATCH,
            consume_tasks=TASKS,
            limits=FlowLimits(messages=WAITING),
            request_timeout_s=request_timeout_s(settings),
        )
        # The workload brings its checkers along, which are heavy: completing a name would wait for them.
        from workloads.consumption import POP_INVISIBLE_S

        paced = replace(config.paced(settings.time_scale), pop_invisible_s=POP_INVISIBLE_S, pop_again_s=POP_AGAIN_S)
        self._consumer = PushConsumer(self._host, paced, self._listen)
        self._consumer.start()
        return operation._replace(type="ok", value={**value, "member": self._member})

    async def _have_popped(self, group: str, limit: int) -> None:
        """All masters are to know that this group pops, and how often. Raises ClientError."""
        setting = RequestModeSetting(topic=self._topic, group=group, mode=RequestMode.POP)
        for broker_group in broker_groups(self._settings):
            master = await self._master(broker_group.name)
            await self._admin.put_consumer_group(master, ConsumerGroup(name=group, retry_max_times=limit))
            await self._admin.set_request_mode(master, setting)

    async def _listen(self, messages: tuple[ConsumerMessage, ...]) -> Outcome:
        delivery = _Delivery(messages, asyncio.get_running_loop().create_future())
        self._deliveries.append(delivery)
        self._came.set()
        try:
            return await delivery.outcome
        finally:
            if delivery in self._deliveries:
                self._deliveries.remove(delivery)

    async def _consume(self, operation: Operation) -> Operation:
        consumer = self._joined()
        self._in_hand = self._taken(consumer)
        if self._in_hand is None:
            self._came.clear()
            try:
                await self._host.clock.within(PATIENCE_S, self._came.wait())
            except TimeoutError:
                return operation._replace(type="ok", value=self._answer_with(operation, ()))
            self._in_hand = self._taken(consumer)
        messages = () if self._in_hand is None else self._in_hand.messages
        return operation._replace(type="ok", value=self._answer_with(operation, messages))

    def _taken(self, consumer: PushConsumer) -> _Delivery | None:
        """What came first, without what this member may not begin with any more: it came while the client was at
        something else, and locks ran out meanwhile."""
        while self._deliveries:
            delivery = self._deliveries.popleft()
            queues = dict.fromkeys(message.queue for message in delivery.messages)
            if all(map(consumer.may_begin, queues)):
                return delivery
            for queue in queues:
                consumer.begin_anew(queue)
            delivery.outcome.cancel()
        return None

    async def _finish(self, operation: Operation) -> Operation:
        self._joined()
        delivery, self._in_hand = self._in_hand, None
        if delivery is None:
            raise OperationError(PRECONDITION_FAILED, "this member has nothing to finish")
        if not delivery.outcome.done():
            delivery.outcome.set_result(Outcome(_value(operation)["outcome"]))
        return operation._replace(type="ok", value={**_value(operation), "member": self._member})

    async def _leave(self, operation: Operation) -> Operation:
        consumer = self._joined()
        for delivery in (*self._deliveries, *([self._in_hand] if self._in_hand else ())):
            # What the listener has not been asked about yet is not consumed.
            delivery.outcome.cancel()
        self._deliveries.clear()
        self._in_hand = None
        await consumer.shutdown()
        self._consumer = None
        return operation._replace(type="ok")

    async def _crash(self, operation: Operation) -> Operation:
        self._joined()
        self._end()
        return operation._replace(type="ok")

    def _end(self) -> None:
        consumer, self._consumer = self._consumer, None
        self._in_hand = None
        if consumer is not None:
            consumer.close()
        self._deliveries.clear()

    def _joined(self) -> PushConsumer:
        if self._consumer is None:
            raise OperationError(PRECONDITION_FAILED, "this client is no member of a group")
        return self._consumer

    def _answer_with(self, operation: Operation, messages: tuple[ConsumerMessage, ...]) -> dict[str, Any]:
        given = [
            {
                "message": int(message.body),
                "queue": self._queue_name(message.queue, _value(operation)["group"]),
                "offset": message.queue_offset,
                "tries": message.reconsume_times,
            }
            for message in messages
        ]
        return {**_value(operation), "member": self._member, "messages": given}

    def _queue_name(self, queue: MessageQueue, group: str) -> str:
        """As workloads call it."""
        again = retry_topic(group), pop_retry_topic(group, self._topic)
        topic = f"retry/{group}" if queue.topic in again else TOPIC
        return self._queues.name(topic, queue.broker_name, queue.queue_id)

    # how far groups have come

    async def _committed(self, operation: Operation) -> Operation:
        value = _value(operation)
        group, queue = self._queues.of(operation)
        offset = await self._client.query_offset(value["group"], self._topic, queue, broker_name=group.name)
        return operation._replace(type="ok", value={**value, "offset": offset})

    async def _settled(self, operation: Operation) -> Operation:
        """Ok if the group, or this member of it, has consumed all that its queues hold."""
        consumer, value = self._joined(), _value(operation)
        topics = {self._topic: self._settings.topic_queues}
        if not self._is_broadcast:
            topics[retry_topic(value["group"])] = 1
        if self._is_popping:
            if self._deliveries:
                # What is popped counts as passed at once.
                raise OperationError(PRECONDITION_FAILED, "this member has messages to consume")
            topics[pop_retry_topic(value["group"], self._topic)] = 1
        groups = broker_groups(self._settings)
        masters = [await self._master(group.name) for group in groups]
        places = [
            (MessageQueue(topic, group.name, queue_id), master)
            for group, master in zip(groups, masters, strict=True)
            for topic, queues in topics.items()
            for queue_id in range(queues)
        ]
        left_in = [self._left(value["group"], consumer, *place) for place in places]
        if not self._is_broadcast:
            left_in += [self._waiting(master) for master in masters]
        # Side by side: one after the other they take longer than an operation may.
        for left in await asyncio.gather(*left_in):
            if left:
                raise OperationError(PRECONDITION_FAILED, left)
        return operation._replace(type="ok", value={**value, "member": self._member})

    async def _left(self, group: str, consumer: PushConsumer, queue: MessageQueue, master: str) -> str:
        """What of a queue is not consumed, in words."""
        end = await self._end_of(queue.topic, queue.queue_id, master)
        if not end:
            return ""
        if self._is_broadcast:
            come = consumer.come_to(queue)
        else:
            come = await self._client.query_offset(group, queue.topic, queue.queue_id, address=master)
        return "" if come == end else f"{queue.topic}/{queue.queue_id} of {queue.broker_name}: {come} of {end} consumed"

    async def _waiting(self, master: str) -> str:
        """What was sent back and has not come again yet, in words: a level may have fallen behind."""
        come, _, end = (await self._admin.runtime_info(master)).get(f"{DELAY_PROGRESS}{RETRY_LEVEL}", "").partition(",")
        return "" if come == end else f"delay level {RETRY_LEVEL} of {master}: {come} of {end} delivered"

    async def _dead_letters(self, operation: Operation) -> Operation:
        """All of the group's, from the one queue that it has for them at each master."""
        value = _value(operation)
        topic = dead_letter_topic(value["group"])
        found: list[dict[str, Any]] = []
        for group in broker_groups(self._settings):
            master, read = await self._master(group.name), 0
            end, queue = (
                await self._end_of(topic, 0, master),
                self._queues.name(f"dead/{value['group']}", group.name, 0),
            )
            while read < end:
                pulled = await self._client.pull(topic, 0, read, READ_BATCH, "final", master)
                # What lies before the queue's beginning has expired.
                read = pulled.messages[-1][0] + 1 if pulled.messages else max(read, pulled.next_offset)
                found += [
                    {"message": int(body), "queue": queue, "offset": offset, "tries": None}
                    for offset, body in pulled.messages
                ]
        return operation._replace(type="ok", value={**value, "messages": found})

    async def _master(self, group_name: str) -> str:
        self._client.forget_route(self._topic)
        for group in (await self._client.route(self._topic)).groups:
            if group.broker_name == group_name and group.master is not None:
                return group.master
        raise OperationError(SERVICE_NOT_AVAILABLE, f"{group_name} has no master")

    async def _end_of(self, topic: str, queue_id: int, master: str) -> int:
        """0 where there is no such topic: NameServers may not have heard of it, its master must have."""
        try:
            return (await self._client.pull(topic, queue_id, 0, 1, "final", master)).max_offset
        except ClientError as error:
            if error.code == "no-route":
                return 0
            raise


def _value(operation: Operation) -> Mapping[str, Any]:
    assert operation.value is not None
    return operation.value
