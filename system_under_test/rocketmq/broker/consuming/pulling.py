"""Gives messages to consumers; a pull may wait until there is something to read.

What it shows is dispatched, so confirmed. A reader that wants only some of the messages is also told how far there is
nothing for it. A slave that does not hear its master answers: consumers go on from there. One that does refuses, unless
slaves are to be read (`slaveReadEnable`); then it answers at once, and sends a consumer that finds nothing back to the
master. A master sends one that is far behind to the slave that its group names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.consumer_progress import ConsumerProgress
from system_under_test.rocketmq.broker.consuming.filtering import subscribed
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers, check_queue
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.consumer_group import BROKER_ID_WHEN_SLOW
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest
from system_under_test.rocketmq.nameserver.registration import MASTER_ID
from system_under_test.runtime.places import Places
from system_under_test.storage.message_filter import MessageFilter
from system_under_test.storage.message_store import GetResult, GetStatus

MAX_PULL_COUNT = 1024
MAX_SUSPENDED_PULLS = 4096
MAX_SUSPEND_MS = 30_000


class Pulls:
    """PULL_MESSAGE."""

    def __init__(
        self,
        broker: BrokerContext,
        administration: Administration,
        progress: ConsumerProgress,
        places: Places,
        committed_by_pull: Callable[[PullRequest, int], int | None],
        own_role_id: Callable[[], int | None],
    ) -> None:
        self._host, self._store, self._config, self._ha = broker.host, broker.store, broker.config, broker.ha
        self._groups = broker.tables.groups
        self._administration = administration
        self._progress = progress
        self._places = places
        self._own_role_id = own_role_id
        self.subscription_of: Callable[[str, str], MessageFilter | None] = lambda group, topic: None
        """Group, topic -> what the group has said in its heartbeats that it wants; None: everything."""
        self._committed_by_pull = committed_by_pull
        self._suspended: dict[tuple[str, int], list[asyncio.Future[None]]] = {}
        self._suspended_count = 0
        broker.store.on_dispatched.append(self._dispatched)

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.PULL_MESSAGE: self._pull}

    def look_again(self) -> None:
        """Let every pull that waits read once more: the topics have changed."""
        for topic, queue_id in list(self._suspended):
            self._dispatched(topic, queue_id, 0)

    def _pull(self, command: RemotingCommand, _: Peer) -> Answer:
        request = PullRequest.decode(command)
        if request.max_count < 1 or request.queue_offset < 0:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "a pull needs a count from 1 and an offset from 0 on")
        if self._ha.hears_master and not self._config.slave_reads:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, "slaveReadEnable is off, and the master lives: ask it")
        self._check_readable(request)
        wanted = self._wanted(request)
        result = self._read(request, wanted)
        committed = self._committed_by_pull(request, result.next_offset)
        if committed is not None and self._ha.mastership is not None:
            # Where the queue does not reach so far the reader has to hear that from the answer, to go back.
            with suppress(RemotingError):
                self._progress.commit(request.consumer_group, request.topic, request.queue_id, committed)
        answer = self._pull_answer(request, result)
        may_wait = request.suspend_timeout_ms > 0 and self._suspended_count < MAX_SUSPENDED_PULLS
        return self._pull_later(request, wanted) if answer.code == ResponseCode.PULL_NOT_FOUND and may_wait else answer

    async def _pull_later(self, request: PullRequest, wanted: MessageFilter | None) -> RemotingCommand:
        """Wait until there is something to read, or the request's time is over; messages that the reader does not want
        wake nobody, until there are so many that one read does not pass all of them."""
        clock = self._host.clock
        deadline_ns = clock.monotonic_ns() + min(request.suspend_timeout_ms, MAX_SUSPEND_MS) * 1_000_000
        while True:
            await self._grown(request, (deadline_ns - clock.monotonic_ns()) / 1e9)
            self._check_readable(request)
            result = self._read(request, wanted)
            passes_all = result.status is GetStatus.NO_MATCHED_MESSAGE and result.next_offset == result.max_offset
            if not passes_all or clock.monotonic_ns() >= deadline_ns:
                return self._pull_answer(request, result)

    async def _grown(self, request: PullRequest, timeout_s: float) -> None:
        """Wait for the queue to grow, or for the topics to change."""
        key = request.topic, request.queue_id
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._suspended.setdefault(key, []).append(future)
        self._suspended_count += 1
        try:
            with self._places.waiting(), suppress(TimeoutError):
                await self._host.clock.within(timeout_s, future)
        finally:
            self._suspended_count -= 1
            waiting = self._suspended.get(key)
            if waiting is not None and future in waiting:
                waiting.remove(future)

    def _dispatched(self, topic: str, queue_id: int, end: int) -> None:
        for future in self._suspended.pop((topic, queue_id), ()):
            if not future.done():
                future.set_result(None)

    def _wanted(self, request: PullRequest) -> MessageFilter | None:
        """Raises RemotingError."""
        if request.subscription is None:
            return self.subscription_of(request.consumer_group, request.topic)
        return subscribed(self._config, request.subscription, request.expression_type)

    def _read(self, request: PullRequest, wanted: MessageFilter | None) -> GetResult:
        count = min(request.max_count, MAX_PULL_COUNT)
        topic, queue_id, offset = request.topic, request.queue_id, request.queue_offset
        return self._store.get_messages(topic, queue_id, offset, count, wanted=wanted)

    def _pull_answer(self, request: PullRequest, result: GetResult) -> RemotingCommand:
        next_offset = result.next_offset
        if result.messages:
            code = ResponseCode.SUCCESS
        elif result.status is GetStatus.NO_MATCHED_MESSAGE:
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
        elif self._ha.hears_master:
            code, next_offset = ResponseCode.PULL_RETRY_IMMEDIATELY, request.queue_offset
        elif (result.status is GetStatus.OFFSET_TOO_SMALL and not self._store.is_part) or (
            request.queue_offset > result.max_offset and not self._may_lag()
        ):
            code = ResponseCode.PULL_OFFSET_MOVED
        else:
            # A reader that is ahead of this replica stays where it is: sent back, it would read all again. So does one
            # that asks for what only this replica lacks: sent on, it would pass over what has not expired.
            code, next_offset = ResponseCode.PULL_NOT_FOUND, request.queue_offset
        return PullAnswer(
            next_offset=next_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            data=b"".join(result.messages),
            suggested_broker_id=self._next_to_ask(request, result),
        ).encode(code)

    def _next_to_ask(self, request: PullRequest, result: GetResult) -> int:
        """By its role id."""
        if self._ha.mastership is None and not self._ha.hears_master:
            return self._own_role_id() or MASTER_ID
        if not self._config.slave_reads:
            return MASTER_ID
        group = self._groups.get(request.consumer_group)
        if result.behind_bytes > self._config.in_memory_bytes:
            return BROKER_ID_WHEN_SLOW if group is None else group.broker_id_when_slow
        return MASTER_ID if group is None or self._ha.mastership is None else group.broker_id

    def _may_lag(self) -> bool:
        """Whether another replica may rightly have shown more than this one shows."""
        return self._ha.mastership is None or self._store.has_undispatched

    def _check_readable(self, request: PullRequest) -> None:
        topic = self._administration.topic(request.topic)
        if not topic.is_readable:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"topic {topic.name} may not be read")
        check_queue(topic, request.queue_id, topic.read_queues)
        group = self._groups.get(request.consumer_group)
        if group is None and not self._config.auto_create_groups:
            raise RemotingError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {request.consumer_group!r} does not exist"
            )
        if group is not None and not group.may_consume:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"group {group.name} may not consume")
