"""Answers the requests of clients, controllers and administrators.

Only the master takes sends. Readers, at the master and at slaves alike, see what is dispatched, so what is confirmed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.administration import Administration
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.replicas_manager import ReplicasManager
from system_under_test.rocketmq.broker.tables import Tables
from system_under_test.rocketmq.consumer_group import MAX_NAME
from system_under_test.rocketmq.controller.protocol import MalformedRequest, ReplicaInfo
from system_under_test.rocketmq.message_protocol import (
    IPV6_FLAGS,
    TRANSACTION_FLAGS,
    PullAnswer,
    PullRequest,
    QueueRequest,
    SendAnswer,
    SendRequest,
)
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.errors import LogTruncated, MessageTooLarge
from system_under_test.storage.message import decode_properties
from system_under_test.storage.message_store import FlushMode, GetResult, GetStatus, MessageStore, PutResult

MAX_PULL_COUNT = 1024
MAX_SUSPENDED_PULLS = 4096
MAX_SUSPEND_MS = 30_000

HALF_MESSAGE = "TRAN_MSG"
"""The property of a message whose transaction is still open."""
DELAYS = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""Properties by which a message is to be shown later: a level, spans of time, a time."""

Answer = RemotingCommand | None


class Processor:
    """`on_topics` is called when the topics have changed."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        tables: Tables,
        config: BrokerConfig,
        ha: HAService,
        manager: ReplicasManager,
        *,
        on_topics: Callable[[], None],
    ) -> None:
        self._host = host
        self._store = store
        self._groups = tables.groups
        self._administration = Administration(host, store, tables, ha, self._topics_changed)
        self._on_topics = on_topics
        self._config = config
        self._ha = ha
        self._manager = manager
        self._suspended: dict[tuple[str, int], list[asyncio.Future[None]]] = {}
        self._suspended_count = 0
        store.on_dispatched = self._dispatched

    def handle(self, command: RemotingCommand, peer: Peer) -> Answer | Coroutine[Any, Any, Answer]:
        """Raises RemotingError for whatever is wrong with the request."""
        for value in command.ext_fields.values():
            if type(value) is not str:
                raise RemotingError(ResponseCode.INVALID_PARAMETER, f"a header field is {value!r}, not text")
        match command.code:
            case RequestCode.SEND_MESSAGE | RequestCode.SEND_MESSAGE_V2:
                return self._send(command)
            case RequestCode.PULL_MESSAGE:
                return self._pull(PullRequest.decode(command))
            case RequestCode.QUERY_CONSUMER_OFFSET:
                return self._query_consumer_offset(QueueRequest.decode(command))
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                return self._update_consumer_offset(QueueRequest.decode(command))
            case RequestCode.GET_MAX_OFFSET:
                return _offset(self._queue_range(QueueRequest.decode(command))[1])
            case RequestCode.GET_MIN_OFFSET:
                return _offset(self._queue_range(QueueRequest.decode(command))[0])
            case RequestCode.GET_BROKER_EPOCH_CACHE:
                return self._epochs()
            case RequestCode.HEART_BEAT:
                return RemotingCommand.response(ResponseCode.SUCCESS)
            case RequestCode.NOTIFY_BROKER_ROLE_CHANGED:
                return self._role_notice(command)
            case _:
                return self._administration.handle(command)

    async def _send(self, command: RemotingCommand) -> Answer:
        # All of it is in the coroutine, for the server may refuse to run it, and says then that nothing was done.
        request = SendRequest.decode(command)
        if self._config.auto_create_topics and self._ha.mastership is not None:
            await self._administration.make_topic_after(request.default_topic, request.topic, request.default_queues)
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        topic = self._administration.topic(request.topic)
        if not topic.is_writable:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"topic {topic.name} takes no messages")
        _check_queue(topic, request.queue_id, topic.write_queues)
        properties = decode_properties(request.properties.encode())
        _check_message(request, properties)
        if not mastership.enough_in_sync():
            raise RemotingError(
                ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH,
                f"in-sync replicas {list(mastership.view.members)}, at least "
                f"{self._config.min_in_sync_replicas} are needed",
            )
        try:
            put = self._store.put(
                request.topic,
                request.queue_id,
                request.body,
                properties,
                born_timestamp_ms=request.born_timestamp_ms,
                flag=request.flag,
                sys_flag=request.sys_flag,
            )
        except MessageTooLarge as error:
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        self._host.reached("put-appended", end=put.end_offset, in_sync=len(mastership.view.members))
        replicated = mastership.replicated(put.end_offset)
        mastership.appended()
        self._host.reached("put-sent-on")
        code, remark = await self._acknowledged(mastership, put, replicated)
        if code is ResponseCode.SUCCESS:
            self._host.reached("put-confirmed", end=put.end_offset)
        else:
            self._host.reached("put-unconfirmed")
        answer = SendAnswer(message_id=f"{put.offset:032X}", queue_id=request.queue_id, queue_offset=put.queue_offset)
        return answer.encode(code, remark)

    async def _acknowledged(
        self, mastership: Mastership, put: PutResult, replicated: asyncio.Future[bool]
    ) -> tuple[ResponseCode, str | None]:
        """SUCCESS, or a code that leaves open whether the message will stay."""
        if self._config.flush_mode is FlushMode.SYNC:
            try:
                await self._store.flush_to(put.end_offset, self._config.flush_wait_s)
            except TimeoutError:
                replicated.cancel()
                return ResponseCode.FLUSH_DISK_TIMEOUT, "not durable in time"
            except LogTruncated:
                replicated.cancel()
                return ResponseCode.FLUSH_DISK_TIMEOUT, "the role was lost and the log cut"
            self._host.reached("put-flushed")
            mastership.advance()
        try:
            if not replicated.done():
                await self._host.clock.within(self._config.replication_wait_s, replicated)
        except TimeoutError:
            return ResponseCode.FLUSH_SLAVE_TIMEOUT, "not replicated in time"
        if not replicated.result():
            return ResponseCode.FLUSH_SLAVE_TIMEOUT, "the role was lost before the message was replicated"
        return ResponseCode.SUCCESS, None

    def _pull(self, request: PullRequest) -> Answer | Coroutine[Any, Any, Answer]:
        if request.max_count < 1 or request.queue_offset < 0:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "a pull needs a count from 1 and an offset from 0 on")
        self._check_readable(request)
        if request.commit_offset is not None and self._ha.mastership is not None:
            # Where the queue does not reach so far the reader has to hear that from the answer, to go back.
            with suppress(RemotingError):
                self._commit(request.consumer_group, request.topic, request.queue_id, request.commit_offset)
        result = self._read(request)
        if result.messages or request.suspend_timeout_ms <= 0 or self._suspended_count >= MAX_SUSPENDED_PULLS:
            return self._pull_answer(request, result)
        return self._pull_later(request)

    async def _pull_later(self, request: PullRequest) -> Answer:
        """Wait until the queue has grown, or the request's time is over, and read once more."""
        key = request.topic, request.queue_id
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._suspended.setdefault(key, []).append(future)
        self._suspended_count += 1
        try:
            with suppress(TimeoutError):
                await self._host.clock.within(min(request.suspend_timeout_ms, MAX_SUSPEND_MS) / 1000, future)
        finally:
            self._suspended_count -= 1
            waiting = self._suspended.get(key)
            if waiting is not None and future in waiting:
                waiting.remove(future)
        self._check_readable(request)
        return self._pull_answer(request, self._read(request))

    def _dispatched(self, topic: str, queue_id: int, end: int) -> None:
        for future in self._suspended.pop((topic, queue_id), ()):
            if not future.done():
                future.set_result(None)

    def _read(self, request: PullRequest) -> GetResult:
        count = min(request.max_count, MAX_PULL_COUNT)
        return self._store.get_messages(request.topic, request.queue_id, request.queue_offset, count)

    def _pull_answer(self, request: PullRequest, result: GetResult) -> RemotingCommand:
        next_offset = result.next_offset
        if result.messages:
            code = ResponseCode.SUCCESS
        elif result.status is GetStatus.OFFSET_TOO_SMALL or (
            request.queue_offset > result.max_offset and not self._may_lag()
        ):
            code = ResponseCode.PULL_OFFSET_MOVED
        else:
            # A reader that is ahead of this replica stays where it is: sent back, it would read all again.
            code, next_offset = ResponseCode.PULL_NOT_FOUND, request.queue_offset
        return PullAnswer(
            next_offset=next_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            data=b"".join(result.messages),
            suggested_broker_id=0,
        ).encode(code)

    def _may_lag(self) -> bool:
        """Whether another replica may rightly have shown more than this one shows."""
        return self._ha.mastership is None or self._store.dispatched_offset < self._store.max_offset

    def _query_consumer_offset(self, request: QueueRequest) -> RemotingCommand:
        offset = self._store.consumer_offsets.get(request.consumer_group, request.topic, request.queue_id)
        if offset is None:
            raise RemotingError(ResponseCode.QUERY_NOT_FOUND, "the group has reported no offset for this queue")
        return _offset(offset)

    def _update_consumer_offset(self, request: QueueRequest) -> RemotingCommand:
        if self._ha.mastership is None:
            # A slave's own would be overwritten by its master's.
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        self._check_known(request)
        if request.commit_offset is None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "commitOffset is missing")
        self._commit(request.consumer_group, request.topic, request.queue_id, request.commit_offset)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        if not 0 < len(group) <= MAX_NAME:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"a group's name has 1 to {MAX_NAME} characters")
        end = self._store.queue_end(topic, queue_id)
        if not 0 <= offset <= end:
            # Beyond the end the group would pass over what is written there next.
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"offset {offset} is outside of the queue, 0 to {end}")
        self._store.consumer_offsets.commit(group, topic, queue_id, offset)

    def _queue_range(self, request: QueueRequest) -> tuple[int, int]:
        self._check_known(request)
        return self._store.queue_range(request.topic, request.queue_id)

    def _check_readable(self, request: PullRequest) -> None:
        topic = self._administration.topic(request.topic)
        if not topic.is_readable:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"topic {topic.name} may not be read")
        _check_queue(topic, request.queue_id, topic.read_queues)
        group = self._groups.get(request.consumer_group)
        if group is None and not self._config.auto_create_groups:
            raise RemotingError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {request.consumer_group!r} does not exist"
            )
        if group is not None and not group.may_consume:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"group {group.name} may not consume")

    def _check_known(self, request: QueueRequest) -> None:
        topic = self._administration.topic(request.topic)
        _check_queue(topic, request.queue_id, max(topic.read_queues, topic.write_queues))

    def _topics_changed(self) -> None:
        """Pulls that wait look once more: their topic may be gone."""
        for topic, queue_id in list(self._suspended):
            self._dispatched(topic, queue_id, 0)
        self._on_topics()

    def _epochs(self) -> RemotingCommand:
        entries = self._store.epochs.map.entries
        body = {
            "clusterName": self._config.cluster,
            "brokerName": self._config.group,
            "brokerId": self._manager.broker_id,
            "epochList": [{"epoch": entry.master_epoch, "startOffset": entry.start_offset} for entry in entries],
            "maxOffset": self._store.max_offset,
            "confirmOffset": self._store.confirm_offset,
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(body).encode())

    def _role_notice(self, command: RemotingCommand) -> RemotingCommand:
        try:
            info = ReplicaInfo.from_answer(command.ext_fields, command.body)
        except MalformedRequest as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from error
        self._manager.notified(info)
        return RemotingCommand.response(ResponseCode.SUCCESS)


def _check_message(request: SendRequest, properties: Mapping[str, str]) -> None:
    """What the message's layout has no room for is refused before anything is written, and what consumers would get
    to see at once although it says that they must not."""
    if not (
        -(2**63) <= request.born_timestamp_ms < 2**63
        and -(2**31) <= request.flag < 2**31
        and -(2**31) <= request.sys_flag < 2**31
    ):
        raise _illegal("bornTimestamp, flag or sysFlag is out of range")
    if request.sys_flag & IPV6_FLAGS:
        raise _illegal("sysFlag says that the message's hosts have IPv6 addresses, which are not supported")
    if request.sys_flag & TRANSACTION_FLAGS or properties.get(HALF_MESSAGE, "").lower() == "true":
        raise _illegal("half messages, so transactions, are not supported yet")
    for name in DELAYS:
        if properties.get(name, "0") != "0":
            raise _illegal(f"delayed messages ({name}={properties[name]}) are not supported yet")


def _check_queue(topic: TopicConfig, queue_id: int, queues: int) -> None:
    if not 0 <= queue_id < queues:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, f"topic {topic.name} has queues 0 to {queues - 1}")


def _illegal(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, remark)


def _offset(offset: int) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, {"offset": str(offset)})
