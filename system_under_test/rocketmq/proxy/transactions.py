"""EndTransaction, and the questions of brokers about transactions that nobody has ended.

To brokers the proxy is one producer of the groups named after the topics that its clients publish to; a question is
handed on to one client of the topic, on the stream where clients can be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from system_under_test.grpc.errors import StreamEnded
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.consumer_protocol import Heartbeat
from system_under_test.rocketmq.proxy.brokers import Brokers
from system_under_test.rocketmq.proxy.messages import TransactionId, delivered, topic_of
from system_under_test.rocketmq.proxy.refusals import OK, Refused, refused_by_broker
from system_under_test.rocketmq.proxy.sessions import Session, Sessions
from system_under_test.rocketmq.proxy.v2 import (
    Code,
    EndTransactionRequest,
    EndTransactionResponse,
    RecoverOrphanedTransactionCommand,
    TelemetryCommand,
    TransactionResolution,
    TransactionSource,
)
from system_under_test.rocketmq.transaction_protocol import CheckTransaction, Decision, EndTransaction
from system_under_test.runtime.host import ConnectFailed, Host
from system_under_test.storage.message import MessageInvalid, decode_message

HEARTBEAT_S = 10.0
MAX_QUESTIONS = 1_024
"""How many questions are handed on at one time; brokers ask again."""
_DECISIONS = {TransactionResolution.COMMIT: Decision.COMMIT, TransactionResolution.ROLLBACK: Decision.ROLLBACK}


class ProxyTransactions:
    """`asked` hears what brokers ask; `tend` keeps brokers aware of the proxy, for as long as it runs."""

    def __init__(self, host: Host, brokers: Brokers, sessions: Sessions) -> None:
        self._host = host
        self._brokers = brokers
        self._sessions = sessions
        self._client_id = f"{host.name}@proxy-{host.random.getrandbits(64):016x}"
        self._announced: dict[str, None] = {}
        """Topics of which brokers know that the proxy is a producer."""
        self._news = asyncio.Event()
        self._turn = 0
        self._questions = 0

    async def end(self, request: EndTransactionRequest) -> EndTransactionResponse:
        """Raises Refused."""
        topic = topic_of(request.topic)
        try:
            transaction = TransactionId.decode(request.transaction_id)
        except ValueError as error:
            raise Refused(Code.INVALID_TRANSACTION_ID, str(error)) from error
        decision = {int(key): value for key, value in _DECISIONS.items()}.get(request.resolution)
        if decision is None:
            raise Refused(Code.BAD_REQUEST, "a transaction ends with COMMIT or ROLLBACK")
        ending = EndTransaction(
            producer_group=topic,
            queue_offset=transaction.queue_offset,
            log_offset=transaction.log_offset,
            decision=decision,
            is_answer=request.source == TransactionSource.SOURCE_SERVER_CHECK,
            message_id=request.message_id,
            transaction_id=request.message_id,
        )
        response = await self._brokers.ask_master(topic, transaction.broker_name, ending.encode())
        if response.code != ResponseCode.SUCCESS:
            raise refused_by_broker(response)
        return EndTransactionResponse(status=OK)

    def published(self, topics: Iterable[str]) -> None:
        """A client may send half messages to these topics: their brokers are to know whom to ask."""
        if any(topic not in self._announced for topic in topics):
            self._news.set()

    async def tend(self, remoting: RemotingClient) -> None:
        while True:
            self._news.clear()
            await self._tell_brokers(remoting)
            try:
                await self._host.clock.within(HEARTBEAT_S, self._news.wait())
            except TimeoutError:
                continue

    async def _tell_brokers(self, remoting: RemotingClient) -> None:
        topics = self._sessions.published_topics()
        addresses: dict[str, list[str]] = {}
        for topic in topics:
            try:
                groups = (await self._brokers.route(topic)).groups
            except Refused:
                continue
            for group in groups:
                if group.master is not None:
                    addresses.setdefault(group.master, []).append(topic)
        for address, producer_groups in addresses.items():
            heartbeat = Heartbeat(client_id=self._client_id, producer_groups=tuple(producer_groups)).encode()
            try:
                await remoting.oneway(address, RemotingCommand.oneway(RequestCode.HEART_BEAT, {}, heartbeat.body))
            except ConnectFailed:
                continue  # the next heartbeat tries again
        self._announced = dict.fromkeys(topics)

    def asked(self, _: str, command: RemotingCommand) -> None:
        """What a broker asks on a connection of the proxy."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE and self._questions < MAX_QUESTIONS:
            self._questions += 1
            self._host.spawn(self._hand_on(command), "question about a transaction")

    async def _hand_on(self, command: RemotingCommand) -> None:
        try:
            question = CheckTransaction.decode(command)
            message = decode_message(question.message, 0)
            told = delivered(message, None, 1)
        except (RemotingError, MessageInvalid, Refused) as error:
            # Its broker asks again, and puts the message aside in the end.
            self._host.log("question_unreadable", reason=str(error))
            return
        finally:
            self._questions -= 1
        session = self._one_of(message.topic)
        if session is None or session.stream is None:
            return
        transaction = TransactionId(question.broker_name, question.log_offset, question.queue_offset)
        ask = RecoverOrphanedTransactionCommand(message=told, transaction_id=transaction.encode())
        try:
            await session.stream.send(TelemetryCommand(recover_orphaned_transaction_command=ask).encode())
        except StreamEnded:
            return  # the broker asks again

    def _one_of(self, topic: str) -> Session | None:
        """A client that publishes to the topic and can be told, each in its turn."""
        able = [session for session in self._sessions.publishing(topic) if session.stream is not None]
        self._turn += 1
        return able[self._turn % len(able)] if able else None
