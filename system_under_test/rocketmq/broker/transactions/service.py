"""Transactional messages: taken in halves, shown to consumers once their producer has said that it commits.

A half message waits in a topic of its own, with its real topic and queue in two properties. What ends it is written in
one step: the message for its consumers, if it commits, and right behind it, in the topic of ends, which half message
has ended. So a broker that holds the end holds the message. A producer that never says how it ends is asked, again and
again, and each time any producer of its group may be the one; after the last time the message is put aside.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import FrameTooLong, RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.delayed.delay_levels import REAL_QUEUE, REAL_TOPIC
from system_under_test.rocketmq.broker.delayed.delay_placement import WaitingRooms
from system_under_test.rocketmq.broker.delayed.delivery import Deliveries, read_waiting
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.putting import Pending, Puts
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.transactions.open_transactions import OpenTransaction, OpenTransactions
from system_under_test.rocketmq.broker.transactions.producers import Producers
from system_under_test.rocketmq.message_protocol import TRANSACTION_FLAGS
from system_under_test.rocketmq.topic import DISCARD_TOPIC, HALF_TOPIC, OP_TOPIC
from system_under_test.rocketmq.transaction_protocol import (
    CHECK_TIMES,
    COMMITTED_FLAG,
    HALF_MESSAGE,
    IMMUNITY,
    PRODUCER_GROUP,
    TRANSACTION_ID,
    UNIQUE_KEY,
    CheckTransaction,
    Decision,
    EndTransaction,
)
from system_under_test.runtime.host import ConnectionClosed, DiskFull
from system_under_test.storage.message import Message, encode_message, encode_properties
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.new_message import NewMessage

PROGRESS_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""How far both topics are done with is kept as this group's offsets, as in RocketMQ."""
END_TAG: Final = "d"
READ_COUNT: Final = 32
LOOK_S: Final = 1.0
MAX_IMMUNITY_S: Final = 86_400


def is_half(message: NewMessage) -> bool:
    """Whether it is sent as part of a transaction."""
    return message.properties.get(HALF_MESSAGE, "").lower() == "true"


def half_of(message: NewMessage, producer_group: str) -> NewMessage:
    """As it waits."""
    properties = dict(message.properties)
    properties.setdefault(PRODUCER_GROUP, producer_group)
    if UNIQUE_KEY in properties:
        properties[TRANSACTION_ID] = properties[UNIQUE_KEY]
    properties |= {REAL_TOPIC: message.topic, REAL_QUEUE: str(message.queue_id)}
    flags = message.sys_flag & ~TRANSACTION_FLAGS
    return replace(message, topic=HALF_TOPIC, queue_id=0, properties=properties, sys_flag=flags)


def whole_of(half: Message) -> NewMessage:
    """As consumers get it."""
    dropped = (REAL_TOPIC, REAL_QUEUE, HALF_MESSAGE)
    properties = {name: value for name, value in half.properties.items() if name not in dropped}
    queue_id = int(half.properties[REAL_QUEUE])
    copy = NewMessage.copy_of(half, topic=half.properties[REAL_TOPIC], queue_id=queue_id, properties=properties)
    flags = copy.sys_flag & ~TRANSACTION_FLAGS | COMMITTED_FLAG
    return replace(copy, sys_flag=flags, prepared_transaction_offset=half.physical_offset)


def end_of(half: Message) -> NewMessage:
    """What says that the half message has ended."""
    body = str(half.queue_offset).encode()
    return NewMessage(topic=OP_TOPIC, queue_id=0, body=body, properties={"TAGS": END_TAG})


def ended_by(message: Message) -> list[int]:
    """The queue offsets of the half messages that a message about ends says have ended; RocketMQ may list several."""
    if message.properties.get("TAGS") != END_TAG:
        return []
    parts = message.body.decode("ascii", "replace").split(",")
    return [int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 19]


class Transactions:
    """END_TRANSACTION, and the questions to producers; `begin` at the begin of each mastership."""

    def __init__(
        self, broker: BrokerContext, puts: Puts, deliveries: Deliveries, waiting: WaitingRooms, producers: Producers
    ) -> None:
        self._host, self._store, self._config = broker.host, broker.store, broker.config
        self._puts = puts
        self._deliveries = deliveries
        self._waiting = waiting
        self._producers = producers
        self._term: _Term | None = None
        self._changed = asyncio.Event()
        broker.store.on_dispatched.append(self._dispatched)

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.END_TRANSACTION: self._end}

    def half(self, message: NewMessage, producer_group: str) -> NewMessage:
        """As it is to be written. Raises RemotingError (NO_PERMISSION, MESSAGE_ILLEGAL)."""
        if self._config.transactions.rejected:
            raise RemotingError(ResponseCode.NO_PERMISSION, "the broker takes no transactional messages")
        # It has to be possible to write what comes of it.
        self._waiting.place(message)
        return half_of(message, producer_group)

    def begin(self, mastership: AnyMastership) -> None:
        """The role is taken; consume queues reach to the confirm offset."""
        self._term = _Term(self._store, mastership, self.first_offsets())
        mastership.on_end.append(self._changed.set)
        self._host.spawn(self._serve(self._term), "transactions")

    def first_offsets(self) -> tuple[int, int]:
        """From where on half messages and ends are read."""
        offsets = self._store.consumer_offsets
        return offsets.get(PROGRESS_GROUP, HALF_TOPIC, 0) or 0, offsets.get(PROGRESS_GROUP, OP_TOPIC, 0) or 0

    # the end of a transaction

    async def _end(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = EndTransaction.decode(command)
        term = self._term
        if term is None or term.mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        decision = self.decision_of(request)
        if decision is Decision.UNKNOWN:
            return RemotingCommand.response(ResponseCode.SUCCESS, remark="its producer will be asked")
        self._read(term)
        if not term.is_caught_up:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, "what the last master left is being read")
        half, transaction = self._find(term, request)
        transaction.is_ending = True
        pending = None
        try:
            pending = await self.write_end(term.mastership, half, decision)
        finally:
            # What is written may be confirmed at any time: only another master may find that it was not.
            transaction.is_ending = pending is not None
        code, remark = await self._puts.acknowledged(pending)
        self._host.reached("transaction-ended")
        return RemotingCommand.response(code, remark=remark)

    def decision_of(self, request: EndTransaction) -> Decision:
        return request.decision

    def _find(self, term: _Term, request: EndTransaction) -> tuple[Message, OpenTransaction]:
        """Raises RemotingError unless it is open."""
        messages, first = read_waiting(self._store, HALF_TOPIC, 0, request.queue_offset, 1)
        if not messages or first != request.queue_offset or messages[0].physical_offset != request.log_offset:
            raise RemotingError(
                ResponseCode.SYSTEM_ERROR,
                f"there is no half message at {request.log_offset} with queue offset {request.queue_offset}",
            )
        if messages[0].properties.get(PRODUCER_GROUP) != request.producer_group:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, f"it is not of producer group {request.producer_group!r}")
        transaction = term.open.get(request.queue_offset)
        if transaction is None:
            raise RemotingError(ResponseCode.ILLEGAL_OPERATION, "the transaction has ended already")
        if transaction.is_ending:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, "the transaction is being ended")
        return messages[0], transaction

    async def write_end(self, mastership: AnyMastership, half: Message, decision: Decision) -> Pending:
        """Raises RemotingError: refused."""
        if decision is Decision.COMMIT and not self._deliveries.is_void(half, whole := whole_of(half)):
            return await self._write(
                mastership, whole, self._waiting.place(self._deliveries.readable(whole)), end_of(half)
            )
        self._host.reached("about-to-end-transaction")
        return self._puts.put(mastership, end_of(half))

    async def _write(self, mastership: AnyMastership, whole: NewMessage, *messages: NewMessage) -> Pending:
        try:
            await self._deliveries.have_topic(mastership, whole)
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        if mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "the role was lost")
        self._host.reached("about-to-commit-transaction")
        return self._puts.put(mastership, *messages)

    # what is open

    def _dispatched(self, topic: str, queue_id: int, end: int) -> None:
        if topic in (HALF_TOPIC, OP_TOPIC):
            self._changed.set()

    async def _serve(self, term: _Term) -> None:
        """Keep up with both topics, ask producers, note progress."""
        while not term.mastership.ended:
            self._changed.clear()
            more = self._read(term)
            if more:
                await self._host.clock.sleep(0)
                continue
            await self._ask_producers(term)
            if term.mastership.ended:
                return
            self._note_progress(term)
            wait_s = self._wait_s(term)
            if wait_s is None:
                await self._changed.wait()
                continue
            with suppress(TimeoutError):
                await self._host.clock.within(wait_s, self._changed.wait())

    def _read(self, term: _Term) -> bool:
        """Some of what has come in both topics, ends first; whether there was any."""
        ends, first = read_waiting(self._store, OP_TOPIC, 0, term.open.op_offset, READ_COUNT)
        term.open.skip_ends_to(first)
        for message in ends:
            term.open.ended(message.queue_offset, ended_by(message))
        if len(ends) == READ_COUNT:
            return True
        halves, first = read_waiting(self._store, HALF_TOPIC, 0, term.open.half_offset, READ_COUNT)
        term.open.skip_halves_to(first)
        now_ns = self._host.clock.monotonic_ns()
        for message in halves:
            term.open.half(message.queue_offset, now_ns + int(self._first_check_s(message) * 1e9))
        return bool(ends or halves)

    def _first_check_s(self, half: Message) -> float:
        wish = half.properties.get(IMMUNITY, "")
        wish_s = int(wish) if wish.isascii() and wish.isdigit() and len(wish) < 9 else 0
        return max(self._config.transactions.timeout_s, min(wish_s, MAX_IMMUNITY_S))

    def _wait_s(self, term: _Term) -> float | None:
        """Until there is something to do; None: when something has come."""
        if term.noted is not None:
            return LOOK_S
        due_ns = term.open.next_due_ns
        return None if due_ns is None else max(0.0, (due_ns - self._host.clock.monotonic_ns()) / 1e9)

    def _note_progress(self, term: _Term) -> None:
        """It counts once all that the log holds now is durable: what has ended must not be open again without its
        message, nor the other way round."""
        progress = term.open.progress()
        if term.noted is not None and term.noted[0] <= self._store.flushed_offset:
            (_, half_offset, op_offset), term.noted = term.noted, None
            self._store.consumer_offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, half_offset)
            self._store.consumer_offsets.commit(PROGRESS_GROUP, OP_TOPIC, 0, op_offset)
            term.progress = half_offset, op_offset
        if term.noted is None and progress != term.progress:
            term.noted = self._store.max_offset, *progress

    # questions to producers

    async def _ask_producers(self, term: _Term) -> None:
        now_ns = self._host.clock.monotonic_ns()
        again_ns = now_ns + int(self._config.transactions.check_interval_s * 1e9)
        for transaction in term.open.due(now_ns, again_ns):
            if term.mastership.ended:
                return
            messages, first = read_waiting(self._store, HALF_TOPIC, 0, transaction.queue_offset, 1)
            if first > transaction.queue_offset:
                self._host.log("transaction_expired", offset=transaction.queue_offset)
                term.open.expired(transaction.queue_offset)
                continue
            if transaction.is_ending or not messages:
                continue
            if transaction.checks > self._config.transactions.check_max:
                await self._discard(term, messages[0], transaction)
            else:
                self._ask(messages[0], transaction)

    def _ask(self, half: Message, transaction: OpenTransaction) -> None:
        producer = self._producers.one_of(half.properties.get(PRODUCER_GROUP, ""))
        if producer is None:
            self._host.reached("no-producer-to-ask")
            return
        question = CheckTransaction(
            topic=HALF_TOPIC,
            queue_offset=half.queue_offset,
            log_offset=half.physical_offset,
            message_id=half.properties.get(UNIQUE_KEY, ""),
            broker_name=self._config.group,
            message=_encode_half(half, transaction.checks),
        )
        try:
            producer.write(question.encode().encode())
            self._host.reached("producer-asked")
        except ConnectionClosed:
            return
        except FrameTooLong as error:
            self._host.log("question_untold", offset=half.physical_offset, reason=str(error))

    async def _discard(self, term: _Term, half: Message, transaction: OpenTransaction) -> None:
        """Nobody could say how it ends: it is kept for those who want to look, and not asked about any more."""
        aside = NewMessage.copy_of(half, topic=DISCARD_TOPIC, queue_id=0, properties=half.properties)
        transaction.is_ending = True
        try:
            await self._write(term.mastership, aside, aside, end_of(half))
            self._host.log("transaction_discarded", offset=half.physical_offset, checks=transaction.checks - 1)
        except RemotingError:
            transaction.is_ending = False


class _Term:
    """What belongs to one mastership."""

    def __init__(self, store: MessageStore, mastership: AnyMastership, first_offsets: tuple[int, int]) -> None:
        self.mastership = mastership
        self.open = OpenTransactions(*first_offsets)
        self.progress = first_offsets
        self.noted: tuple[int, int, int] | None = None
        """Progress that counts once the log is durable so far: (end, half messages, ends)."""
        self._half_end, self._op_end = store.queue_end(HALF_TOPIC, 0), store.queue_end(OP_TOPIC, 0)

    @property
    def is_caught_up(self) -> bool:
        """Whether all that was there at the begin is read, so that what has ended is known to have."""
        return self.open.half_offset >= self._half_end and self.open.op_offset >= self._op_end


def _encode_half(half: Message, checks: int) -> bytes:
    """The half message as it stands in questions: with its real topic and queue."""
    return encode_message(
        topic=half.properties.get(REAL_TOPIC, "").encode(),
        queue_id=int(half.properties.get(REAL_QUEUE, "0")),
        queue_offset=half.queue_offset,
        physical_offset=half.physical_offset,
        body=half.body,
        properties=encode_properties({**half.properties, CHECK_TIMES: str(checks)}),
        born_timestamp_ms=half.born_timestamp_ms,
        store_timestamp_ms=half.store_timestamp_ms,
        born_host=half.born_host,
        store_host=half.store_host,
        flag=half.flag,
        sys_flag=half.sys_flag,
        reconsume_times=half.reconsume_times,
        prepared_transaction_offset=half.prepared_transaction_offset,
    )
