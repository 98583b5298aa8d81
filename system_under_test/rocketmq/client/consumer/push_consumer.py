"""A member of a group of consumers: messages are pulled for it and handed to its listener.

It tells all brokers that it lives, divides the queues with the other members (when they change, and from time to time),
pulls from those that are its own with requests that wait at the broker, and writes down how far it has come. All of it
happens in tasks of the host, from `start` until `shutdown`, which leaves everything in order, or `close`, which ends as
a process that is killed does.

What it promises: each message of the topics is given to a listener of the group (of each member, where queues are not
divided) until it was consumed or is a dead letter. It may be given again, after any failure and any change of members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.consumer.config import (
    ConsumerConfig,
    DividedBy,
    Listener,
    Mode,
    Outcome,
    wanted_tags,
)
from system_under_test.rocketmq.client.consumer.consuming import Concurrently, Consuming, Orderly, may_begin
from system_under_test.rocketmq.client.consumer.offset_store import LocalOffsets, OffsetStore, RemoteOffsets
from system_under_test.rocketmq.client.consumer.popping import Popping
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage, ProcessQueue
from system_under_test.rocketmq.client.consumer.requests import ConsumerRequests, Pulled
from system_under_test.rocketmq.consumer_protocol import (
    RETRY_PREFIX,
    Assignment,
    AssignmentRequest,
    ConsumeFromWhere,
    ConsumerData,
    Heartbeat,
    MessageQueue,
    RequestMode,
    Subscription,
    noticed_offsets,
    retry_topic,
)
from system_under_test.rocketmq.message_protocol import PullRequest
from system_under_test.rocketmq.nameserver.route import GroupRoute
from system_under_test.runtime.host import Host


@dataclass(slots=True)
class _Assigned:
    process_queue: ProcessQueue
    pulling: asyncio.Task[None]


class PushConsumer:
    def __init__(self, host: Host, config: ConsumerConfig, listener: Listener) -> None:
        """Raises StorageCorrupt if the file with the own offsets is harmed."""
        self._host = host
        self._config = config
        self._requests = ConsumerRequests(host, config.nameservers, config.request_timeout_s, self._handle_notice)
        self._offsets: OffsetStore = (
            RemoteOffsets(self._requests, config.group)
            if config.divides_queues
            else LocalOffsets(host.disk, f"rocketmq_offsets/{config.client_id}/{config.group}/offsets.json")
        )
        consuming = Orderly if config.mode is Mode.ORDERLY else Concurrently
        self._listener = listener
        self._consuming: Consuming = consuming(host, config, self._requests, self._offsets, self._listened)
        self._popping = Popping(host, config, self._requests, self._listened)
        self._topics = dict(config.subscriptions)
        if config.divides_queues:
            self._topics[retry_topic(config.group)] = "*"
        self._assigned: dict[MessageQueue, _Assigned] = {}
        self._rebalance_due = asyncio.Event()
        self._lock_requests = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """Those that are this member's at the moment."""
        return tuple(sorted(queue for queue, one in self._assigned.items() if not one.process_queue.is_dropped))

    def come_to(self, queue: MessageQueue) -> int | None:
        """The offset up to which everything is consumed, as far as this member knows."""
        return self._offsets.get(queue)

    def may_begin(self, queue: MessageQueue) -> bool:
        """Whether a listener that was given messages of the queue a while ago may still begin with them."""
        if not self._config.needs_locks:
            return True
        assigned, now_ns = self._assigned.get(queue), self._host.clock.monotonic_ns()
        return assigned is not None and may_begin(self._config, assigned.process_queue, now_ns)

    def begin_anew(self, queue: MessageQueue) -> None:
        """Give the queue up, and take it over again at the committed offset, if it is this member's still."""
        assigned = self._assigned.get(queue)
        if assigned is not None:
            assigned.process_queue.is_dropped = True
            self._rebalance_due.set()

    def start(self) -> None:
        config = self._config
        self._consuming.start()
        self._spawn(self._live(), "member of a group")
        self._spawn(self._every(config.heartbeat_s, self._tell_brokers), "heartbeats")
        self._spawn(self._every(config.persist_offsets_s, self._persist), "offsets")
        if config.needs_locks:
            self._spawn(self._every(config.lock_s, self._renew_locks), "locks")

    async def shutdown(self) -> None:
        """Stop to pull, let the listener finish what it has, write the offsets down, leave the group."""
        for task in self._tasks:
            task.cancel()
        for assigned in self._assigned.values():
            assigned.pulling.cancel()
        with suppress(TimeoutError):
            await self._host.clock.within(self._config.finish_s, self._finish())
        self._drop_all()
        await self._persist()
        if self._config.needs_locks:
            await self._unlock([queue for queue in self._assigned if not self._consuming.is_busy(queue)])
        for address in await self._brokers():
            with suppress(ClientError):
                await self._requests.leave(address, self._config.client_id, self._config.group)
        self.close()

    def close(self) -> None:
        """At once, as if the process had been killed: nothing is written down and nobody is told."""
        for task in self._tasks:
            task.cancel()
        for assigned in self._assigned.values():
            assigned.pulling.cancel()
        self._drop_all()
        self._consuming.close()
        self._popping.close()
        self._requests.close()

    async def _finish(self) -> None:
        await self._consuming.finish()
        await self._popping.finish()

    async def _listened(self, messages: tuple[ConsumerMessage, ...]) -> Outcome:
        try:
            return await self._listener(messages)
        except Exception as error:  # noqa: BLE001 - whatever a listener raises, it has not consumed the messages
            self._host.log("listener_failed", reason=repr(error))
            return Outcome.LATER

    def _drop_all(self) -> None:
        for assigned in self._assigned.values():
            assigned.process_queue.is_dropped = True

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(self._host.spawn(coroutine, name))

    async def _every(self, period_s: float, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            await self._host.clock.sleep(period_s)
            await do()

    # the group

    async def _live(self) -> None:
        """Join, then divide the queues whenever members have changed, and from time to time."""
        clock, config = self._host.clock, self._config
        await self._tell_brokers()
        while True:
            self._rebalance_due.clear()
            is_settled = await self._rebalance()
            with suppress(TimeoutError):
                wait_s = config.rebalance_s if is_settled else config.rebalance_again_s
                await clock.within(wait_s, self._rebalance_due.wait())

    def _handle_notice(self, address: str, command: RemotingCommand) -> None:
        if command.ext_fields.get("consumerGroup", command.ext_fields.get("group")) != self._config.group:
            return
        if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self._rebalance_due.set()
        elif command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
            with suppress(ValueError):
                self._set_offsets(noticed_offsets(command))

    def _set_offsets(self, offsets: dict[MessageQueue, int]) -> None:
        """An administrator has set the group elsewhere: begin there."""
        for queue, offset in offsets.items():
            assigned = self._assigned.get(queue)
            if assigned is not None:
                assigned.process_queue.is_dropped = assigned.process_queue.is_void = True
                self._offsets.update(queue, offset, may_lower=True)
        self._rebalance_due.set()

    async def _brokers(self) -> tuple[str, ...]:
        """All of them that have any of the topics."""
        found: dict[str, None] = {}
        for topic in self._topics:
            with suppress(ClientError):
                for group in (await self._requests.route(topic)).groups:
                    found.update(dict.fromkeys(group.brokers.values()))
        return tuple(found)

    async def _tell_brokers(self) -> None:
        await asyncio.gather(*(self._tell(address) for address in await self._brokers()))

    async def _tell(self, address: str) -> None:
        with suppress(ClientError):
            await self._requests.heartbeat(address, self._heartbeat())

    def _heartbeat(self) -> Heartbeat:
        config = self._config
        data = ConsumerData(
            group=config.group,
            message_model=config.model,
            from_where=config.from_where,
            subscriptions=tuple(
                Subscription(topic=topic, expression=expression, tags=wanted_tags(expression))
                for topic, expression in self._topics.items()
            ),
        )
        return Heartbeat(client_id=config.client_id, consumers=(data,))

    # the queues

    async def _rebalance(self) -> bool:
        """Take over the queues that are this member's, give up the others; whether all that was to be done is."""
        is_settled = True
        for topic in self._topics:
            try:
                own = await self._own(topic)
            except ClientError:
                self._requests.forget_route(topic)
                is_settled = False
                continue
            pulled = [one.queue for one in own if one.mode is RequestMode.PULL]
            is_settled &= await self._give_up_others(topic, pulled)
            is_settled &= await self._take_over([queue for queue in pulled if queue not in self._assigned])
            self._popping.assign(topic, [one.queue for one in own if one.mode is RequestMode.POP])
        return is_settled

    async def _own(self, topic: str) -> Sequence[Assignment]:
        """The queues that are to be this member's. Raises ClientError where that is not known."""
        config = self._config
        if config.divided_by is DividedBy.BROKERS:
            return await self._assigned_queues(topic)
        queues = await self._requests.queues(topic)
        own = config.allocation(config.client_id, sorted(queues), sorted(await self._members(topic)))
        return [Assignment(queue, RequestMode.PULL) for queue in (own if config.divides_queues else queues)]

    async def _assigned_queues(self, topic: str) -> Sequence[Assignment]:
        """As a broker says that knows this member. Raises ClientError."""
        config = self._config
        request = AssignmentRequest(
            topic=topic, group=config.group, client_id=config.client_id, strategy=config.strategy, model=config.model
        )
        await self._members(topic)
        error = ClientError("no-route", True, f"{topic} has no broker")
        for address in self._addresses((await self._requests.route(topic)).groups):
            try:
                assignments = await self._requests.assignment(address, request)
            except ClientError as failure:
                error = failure
                continue
            if assignments is not None:
                return assignments
            error = ClientError("no-assignment", True, f"{address} does not know which queues are whose")
        raise error

    async def _members(self, topic: str) -> tuple[str, ...]:
        """Who is in the group, as some broker knows. Raises ClientError if none tells."""
        if not self._config.divides_queues:
            return (self._config.client_id,)
        groups = (await self._requests.route(topic)).groups
        error = ClientError("no-route", True, f"{topic} has no broker")
        for address in self._addresses(groups):
            try:
                members = await self._requests.members(address, self._config.group)
                if self._config.client_id not in members:
                    # The broker is new, or has lost the connection on which it knew this member.
                    await self._requests.heartbeat(address, self._heartbeat())
                    members = await self._requests.members(address, self._config.group)
                return members
            except ClientError as failure:
                error = failure
        raise error

    def _addresses(self, groups: Sequence[GroupRoute]) -> list[str]:
        """Of some broker group, its master first."""
        if not groups:
            return []
        brokers = groups[self._host.random.randrange(len(groups))].brokers
        return [brokers[broker_id] for broker_id in sorted(brokers)]

    async def _give_up_others(self, topic: str, own: Sequence[MessageQueue]) -> bool:
        """Whether all are given up that are not this member's, or are to begin anew."""
        wanted = dict.fromkeys(own)
        for queue, assigned in list(self._assigned.items()):
            if queue.topic != topic or (queue in wanted and not assigned.process_queue.is_dropped):
                continue
            assigned.process_queue.is_dropped = True
            assigned.pulling.cancel()
            if self._consuming.is_busy(queue):
                continue  # Its lock is kept until the listener is done.
            self._consuming.give_up(queue)
            del self._assigned[queue]
            await self._offsets.persist([queue])
            self._offsets.forget(queue)
            if self._config.needs_locks:
                await self._unlock([queue])
        return not any(one.process_queue.is_dropped for queue, one in self._assigned.items() if queue.topic == topic)

    async def _take_over(self, queues: Sequence[MessageQueue]) -> bool:
        """Whether all of them could be."""
        asked_ns = self._host.clock.monotonic_ns()
        locked = await self._locked(queues) if self._config.needs_locks else tuple(queues)
        is_settled = len(locked) == len(queues)
        for queue in queues:
            if queue not in locked:
                continue
            try:
                begin = await self._begin(queue)
            except ClientError:
                self._requests.forget_route(queue.topic)
                is_settled = False
                continue
            process_queue = ProcessQueue(begin)
            process_queue.locked_ns = asked_ns
            self._consuming.take_over(queue, process_queue)
            pulling = self._host.spawn(self._pull(queue, process_queue), f"pulls of {queue}")
            self._assigned[queue] = _Assigned(process_queue, pulling)
        return is_settled

    async def _begin(self, queue: MessageQueue) -> int:
        """Where the group has come to. Where it has never been, the place is written down at once: a member that takes
        the queue over before anything was consumed has to begin there, too. Raises ClientError."""
        committed = await self._offsets.read(queue)
        if committed is not None:
            return committed
        is_first = self._config.from_where is ConsumeFromWhere.FIRST_OFFSET
        if is_first or queue.topic.startswith(RETRY_PREFIX):
            return 0
        offset = await self._requests.max_offset(queue)
        self._offsets.update(queue, offset)
        await self._offsets.persist([queue])
        return offset

    # locks

    async def _locked(self, queues: Sequence[MessageQueue]) -> tuple[MessageQueue, ...]:
        """Those of the queues whose locks this member is given."""
        config = self._config
        locked: list[MessageQueue] = []
        for broker_name in dict.fromkeys(queue.broker_name for queue in queues):
            with suppress(ClientError):
                of_group = [queue for queue in queues if queue.broker_name == broker_name]
                locked += await self._requests.lock(config.group, config.client_id, of_group)
        return tuple(locked)

    async def _unlock(self, queues: Sequence[MessageQueue]) -> None:
        config = self._config
        for broker_name in dict.fromkeys(queue.broker_name for queue in queues):
            of_group = [queue for queue in queues if queue.broker_name == broker_name]
            async with self._lock_requests:
                with suppress(ClientError):
                    await self._requests.unlock(config.group, config.client_id, of_group)

    async def _renew_locks(self) -> None:
        """Who is refused a lock that it had gives the queue up, and begins anew once it has the lock again."""
        config = self._config
        asked_ns = self._host.clock.monotonic_ns()
        for broker_name in dict.fromkeys(queue.broker_name for queue in self._assigned):
            # A queue that is given up meanwhile would be locked again by a request that comes later.
            async with self._lock_requests:
                held = {queue: one for queue, one in self._assigned.items() if queue.broker_name == broker_name}
                try:
                    locked = await self._requests.lock(config.group, config.client_id, list(held)) if held else ()
                except ClientError:
                    self._requests.forget_route(next(iter(held)).topic)
                    continue
            for queue, assigned in held.items():
                if queue in locked:
                    assigned.process_queue.locked_ns = asked_ns
                else:
                    assigned.process_queue.locked_ns = None
                    assigned.process_queue.is_dropped = True
                    self._rebalance_due.set()

    # messages

    async def _pull(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        config, clock = self._config, self._host.clock
        tags = wanted_tags(self._topics[queue.topic])
        while not process_queue.is_dropped:
            if process_queue.is_full(config.limits, in_order=config.mode is Mode.ORDERLY):
                await clock.sleep(config.flow_control_s)
                continue
            try:
                pulled = await self._pulled(queue, process_queue)
            except ClientError:
                self._requests.forget_route(queue.topic)
                await clock.sleep(config.pull_retry_s)
                continue
            if process_queue.is_dropped:
                return
            if pulled.is_moved:
                self._offsets.update(queue, process_queue.moved(pulled.next_offset), may_lower=True)
                await self._offsets.persist([queue])
                process_queue.is_dropped = True
                self._rebalance_due.set()
                return
            wanted = [one for one in pulled.messages if not tags or one.properties.get("TAGS") in tags]
            fresh = process_queue.put([ConsumerMessage.of(one, queue) for one in wanted], pulled.next_offset)
            if fresh:
                self._consuming.pulled(queue, process_queue, fresh)
            elif not len(process_queue):
                self._offsets.update(queue, process_queue.commit_offset)

    async def _pulled(self, queue: MessageQueue, process_queue: ProcessQueue) -> Pulled:
        """From the master, or from a replica where there is none. Raises ClientError."""
        config = self._config
        group = await self._requests.broker_group(queue)
        address = group.master or next(iter(group.brokers.values()), None)
        if address is None:
            raise ClientError("no-route", True, f"{queue.broker_name} has no broker")
        is_committed = config.divides_queues and address == group.master
        request = PullRequest(
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=process_queue.next_offset,
            max_count=config.pull_batch,
            consumer_group=config.group,
            suspend_timeout_ms=round(config.suspend_pull_s * 1000),
            commit_offset=self._offsets.get(queue) if is_committed else None,
            subscription=self._topics[queue.topic],
        )
        return await self._requests.pull(address, request)

    async def _persist(self) -> None:
        await self._offsets.persist(list(self._assigned))
