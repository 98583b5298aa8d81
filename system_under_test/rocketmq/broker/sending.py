"""Takes messages from producers; only the master does."""

from __future__ import annotations

from collections.abc import Mapping

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.acknowledgement import acknowledged, send_on
from system_under_test.rocketmq.broker.administration import Administration
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.message_protocol import IPV6_FLAGS, TRANSACTION_FLAGS, SendAnswer, SendRequest
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.errors import MessageTooLarge
from system_under_test.storage.message import decode_properties
from system_under_test.storage.message_store import MessageStore

HALF_MESSAGE = "TRAN_MSG"
"""The property of a message whose transaction is still open."""
DELAYS = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""Properties by which a message is to be shown later: a level, spans of time, a time."""


class Sends:
    """SEND_MESSAGE in both forms."""

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
        replicated = send_on(self._host, mastership, put.end_offset)
        code, remark = await acknowledged(self._host, self._store, self._config, mastership, put.end_offset, replicated)
        answer = SendAnswer(message_id=f"{put.offset:032X}", queue_id=request.queue_id, queue_offset=put.queue_offset)
        return answer.encode(code, remark)


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


def _illegal(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, remark)
