"""Takes messages from producers; only the master does."""

from __future__ import annotations

from collections.abc import Mapping

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.administration import Administration
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.new_message import NewMessage
from system_under_test.rocketmq.broker.putting import Puts
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.broker.transactions import Transactions, is_half
from system_under_test.rocketmq.broker.waiting_rooms import WaitingRooms
from system_under_test.rocketmq.message_protocol import IPV6_FLAGS, TRANSACTION_FLAGS, SendAnswer, SendRequest
from system_under_test.rocketmq.transaction_protocol import HALF_MESSAGE, UNIQUE_KEY
from system_under_test.storage.message import decode_properties


class Sends:
    """SEND_MESSAGE in both forms."""

    def __init__(
        self,
        config: BrokerConfig,
        puts: Puts,
        waiting: WaitingRooms,
        transactions: Transactions,
        ha: HAService,
        administration: Administration,
    ) -> None:
        self._config = config
        self._puts = puts
        self._waiting = waiting
        self._transactions = transactions
        self._ha = ha
        self._administration = administration

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.SEND_MESSAGE: self._send, RequestCode.SEND_MESSAGE_V2: self._send}

    async def _send(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
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
        check_queue(topic, request.queue_id, topic.write_queues)
        properties = decode_properties(request.properties.encode())
        _check_message(request, properties)
        message = NewMessage(
            topic=request.topic,
            queue_id=request.queue_id,
            body=request.body,
            properties=properties,
            born_timestamp_ms=request.born_timestamp_ms,
            flag=request.flag,
            sys_flag=request.sys_flag,
            reconsume_times=request.reconsume_times,
        )
        if is_half(message):
            placed = self._transactions.half(message, request.producer_group)
        else:
            placed = self._waiting.place(message)
        pending = self._puts.put(mastership, placed)
        code, remark = await self._puts.acknowledged(pending)
        put = pending.put
        answer = SendAnswer(
            message_id=f"{put.offset:032X}",
            queue_id=request.queue_id,
            queue_offset=put.queue_offset,
            transaction_id=properties.get(UNIQUE_KEY, ""),
        )
        return answer.encode(code, remark)


def _check_message(request: SendRequest, properties: Mapping[str, str]) -> None:
    """What the message's layout has no room for is refused before anything is written, and what consumers would get
    to see at once although it says that they must not."""
    if not (
        -(2**63) <= request.born_timestamp_ms < 2**63
        and -(2**31) <= request.flag < 2**31
        and -(2**31) <= request.sys_flag < 2**31
        and -(2**31) <= request.reconsume_times < 2**31
    ):
        raise _illegal("bornTimestamp, flag, sysFlag or reconsumeTimes is out of range")
    if request.sys_flag & IPV6_FLAGS:
        raise _illegal("sysFlag says that the message's hosts have IPv6 addresses, which are not supported")
    if request.sys_flag & TRANSACTION_FLAGS and properties.get(HALF_MESSAGE, "").lower() != "true":
        raise _illegal(f"sysFlag says that the message is of a transaction, but it has no property {HALF_MESSAGE}")


def _illegal(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, remark)
