"""Takes messages from producers; only the master does."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.administration import Administration
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.message_batch import decode_batch
from system_under_test.rocketmq.message_id import host_bytes, message_id
from system_under_test.rocketmq.message_protocol import IPV6_FLAGS, TRANSACTION_FLAGS, SendAnswer, SendRequest
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.batch import NewMessage
from system_under_test.storage.errors import LogTruncated, MessageTooLarge
from system_under_test.storage.message import decode_properties
from system_under_test.storage.message_store import FlushMode, MessageStore, PutResult

HALF_MESSAGE = "TRAN_MSG"
"""The property of a message whose transaction is still open."""
DELAYS = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""Properties by which a message is to be shown later: a level, spans of time, a time."""


class Sends:
    """SEND_MESSAGE in both forms, and batches in either."""

    def __init__(
        self, host: Host, store: MessageStore, config: BrokerConfig, ha: HAService, administration: Administration
    ) -> None:
        self._host = host
        self._store = store
        self._config = config
        self._ha = ha
        self._administration = administration

    @property
    def handlers(self) -> Handlers:
        codes = RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
        return dict.fromkeys(codes, self._send)

    async def _send(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
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
        if request.queue_id < 0:
            request = replace(request, queue_id=self._host.random.randrange(topic.write_queues))
        check_queue(topic, request.queue_id, topic.write_queues)
        messages = _messages(request)
        for message in messages:
            _check_message(request, message)
        if not mastership.enough_in_sync():
            raise RemotingError(
                ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH,
                f"in-sync replicas {list(mastership.view.members)}, at least "
                f"{self._config.min_in_sync_replicas} are needed",
            )
        try:
            puts = self._put(request, messages, host_bytes(peer.remote))
        except MessageTooLarge as error:
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        end_offset = puts[-1].end_offset
        self._host.reached("put-appended", end=end_offset, in_sync=len(mastership.view.members))
        replicated = mastership.replicated(end_offset)
        mastership.appended()
        self._host.reached("put-sent-on")
        code, remark = await self._acknowledged(mastership, end_offset, replicated)
        if code is ResponseCode.SUCCESS:
            self._host.reached("put-confirmed", end=end_offset)
        else:
            self._host.reached("put-unconfirmed")
        ids = ",".join([message_id(self._store.store_host, put.offset) for put in puts])
        answer = SendAnswer(message_id=ids, queue_id=request.queue_id, queue_offset=puts[0].queue_offset)
        return answer.encode(code, remark)

    def _put(self, request: SendRequest, messages: tuple[NewMessage, ...], born_host: bytes) -> tuple[PutResult, ...]:
        """Raises MessageTooLarge, DiskFull."""
        topic, queue_id, born_ms = request.topic, request.queue_id, request.born_timestamp_ms
        if request.is_batch:
            return self._store.put_batch(
                topic, queue_id, messages, born_timestamp_ms=born_ms, born_host=born_host, sys_flag=request.sys_flag
            )
        (message,) = messages
        put = self._store.put(
            topic,
            queue_id,
            message.body,
            message.properties,
            born_timestamp_ms=born_ms,
            born_host=born_host,
            flag=message.flag,
            sys_flag=request.sys_flag,
        )
        return (put,)

    async def _acknowledged(
        self, mastership: Mastership, end_offset: int, replicated: asyncio.Future[bool]
    ) -> tuple[ResponseCode, str | None]:
        """SUCCESS, or a code that leaves open whether the message will stay."""
        if self._config.flush_mode is FlushMode.SYNC:
            try:
                await self._store.flush_to(end_offset, self._config.flush_wait_s)
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


def _messages(request: SendRequest) -> tuple[NewMessage, ...]:
    """Raises RemotingError (MESSAGE_ILLEGAL)."""
    if request.is_batch:
        return decode_batch(request.body)
    return (NewMessage(request.body, decode_properties(request.properties.encode()), request.flag),)


def _check_message(request: SendRequest, message: NewMessage) -> None:
    """What the message's layout has no room for is refused before anything is written, and what consumers would get
    to see at once although it says that they must not."""
    if not (
        -(2**63) <= request.born_timestamp_ms < 2**63
        and -(2**31) <= message.flag < 2**31
        and -(2**31) <= request.sys_flag < 2**31
    ):
        raise _illegal("bornTimestamp, flag or sysFlag is out of range")
    if request.sys_flag & IPV6_FLAGS:
        raise _illegal("sysFlag says that the message's hosts have IPv6 addresses, which are not supported")
    if request.sys_flag & TRANSACTION_FLAGS or message.properties.get(HALF_MESSAGE, "").lower() == "true":
        raise _illegal("half messages, so transactions, are not supported yet")
    for name in DELAYS:
        if message.properties.get(name, "0") != "0":
            raise _illegal(f"delayed messages ({name}={message.properties[name]}) are not supported yet")


def _illegal(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, remark)
