"""A producer of transactional messages: sends halves, says how they end, and answers brokers that ask.

How a transaction ends is for the application to know: `decide` says it for a message's body, at any time and as often
as it is asked. One call is at most one request that can take effect; nothing is retried hidden, for what was not
heard of, brokers ask about.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.transaction_protocol import (
    HALF_MESSAGE,
    PREPARED_FLAG,
    PRODUCER_GROUP,
    UNIQUE_KEY,
    CheckTransaction,
    Decision,
    EndTransaction,
)
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from system_under_test.storage.message import MessageInvalid, decode_message

Decide = Callable[[bytes], Decision]
MAX_ANSWERS = 1_000
"""Answers to brokers that are under way; further questions are dropped, for brokers ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfSent:
    """A half message that a broker has acknowledged."""

    broker: str
    queue_offset: int
    log_offset: int
    message_id: str


class TransactionProducer:
    """`start` registers it with the brokers of a topic, by heartbeats, so that they may ask it; `close` ends that."""

    def __init__(
        self,
        host: Host,
        nameservers: Sequence[str],
        group: str,
        decide: Decide,
        *,
        timeout_s: float = 3.0,
        heartbeat_s: float = 30.0,
    ) -> None:
        self._host = host
        self._group = group
        self._decide = decide
        self._timeout_s = timeout_s
        self._heartbeat_s = heartbeat_s
        self._messages = MessageClient(host, nameservers, timeout_s)
        self._remoting = RemotingClient(host, timeout_s, self._asked)
        self._client_id = f"{host.name}@{host.random.getrandbits(64):016x}"
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closed = False

    def start(self, topic: str) -> None:
        self._spawn(self._beat(topic), "heartbeats of a producer")

    def close(self) -> None:
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        self._messages.close()
        self._remoting.close()

    async def send_half(self, topic: str, queue_id: int, body: bytes, *, broker_name: str | None = None) -> HalfSent:
        """Raises ClientError."""
        key = f"{self._host.random.getrandbits(128):032X}"
        named = {HALF_MESSAGE: "true", PRODUCER_GROUP: self._group, UNIQUE_KEY: key}
        properties = "".join(f"{name}\x01{value}\x02" for name, value in named.items())
        sent = await self._messages.send(
            topic, queue_id, body, properties=properties, sys_flag=PREPARED_FLAG, broker_name=broker_name
        )
        try:
            log_offset = int(sent.message_id[-16:], 16)
        except ValueError as error:
            raise ClientError("outcome-unknown", False, f"message id {sent.message_id!r}", sent.broker) from error
        return HalfSent(broker=sent.broker, queue_offset=sent.queue_offset, log_offset=log_offset, message_id=key)

    async def end(self, half: HalfSent, decision: Decision) -> None:
        """Say how it ends to the broker that took it. Raises ClientError: then that broker will ask."""
        request = EndTransaction(
            producer_group=self._group,
            queue_offset=half.queue_offset,
            log_offset=half.log_offset,
            decision=decision,
            message_id=half.message_id,
            transaction_id=half.message_id,
        )
        try:
            response = await self._remoting.invoke(half.broker, request.encode(), self._timeout_s)
        except ConnectFailed as error:
            raise ClientError("connect-failed", True, str(error), half.broker) from error
        except ConnectionClosed as error:
            raise ClientError("connection-lost", False, str(error), half.broker) from error
        except TimeoutError as error:
            raise ClientError("client-timeout", False, str(error), half.broker) from error
        if response.code != ResponseCode.SUCCESS:
            raise ClientError("outcome-unknown", False, f"{response.code} {response.remark}", half.broker)

    async def _beat(self, topic: str) -> None:
        body = json.dumps(
            {"clientID": self._client_id, "producerDataSet": [{"groupName": self._group}], "consumerDataSet": []}
        ).encode()
        while not self._is_closed:
            with suppress(ClientError):
                groups = (await self._messages.route(topic)).groups
                for address in [address for group in groups for address in group.brokers.values()]:
                    heartbeat = RemotingCommand.oneway(RequestCode.HEART_BEAT, {}, body)
                    with suppress(ConnectFailed):
                        await self._remoting.oneway(address, heartbeat)
            await self._host.clock.sleep(self._heartbeat_s)

    def _asked(self, address: str, command: RemotingCommand) -> None:
        if command.code == RequestCode.CHECK_TRANSACTION_STATE and not self._is_closed:
            self._tasks = [task for task in self._tasks if not task.done()]
            if len(self._tasks) <= MAX_ANSWERS:
                self._spawn(self._answer(address, command), "answer about a transaction")

    async def _answer(self, address: str, command: RemotingCommand) -> None:
        try:
            question = CheckTransaction.decode(command)
            decision = self._decide(decode_message(question.message, 0).body)
        except (RemotingError, MessageInvalid):
            return
        answer = EndTransaction(
            producer_group=self._group,
            queue_offset=question.queue_offset,
            log_offset=question.log_offset,
            decision=decision,
            is_answer=True,
            message_id=question.message_id,
            transaction_id=question.message_id,
        )
        with suppress(ConnectFailed):
            await self._remoting.oneway(address, answer.encode_oneway())

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(self._host.spawn(coroutine, name))
