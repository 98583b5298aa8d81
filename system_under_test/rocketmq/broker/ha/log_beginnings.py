"""Where queues stood at a place of the log: what a slave has to know whose log begins there, asked of its master.

Bytes of the log tell the queue offsets of the messages in them, and of no queue that has none there. See
`storage.log_beginning`. The request is this system's own, for RocketMQ's slaves do not ask.
"""

from __future__ import annotations

import json

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.topics.administration import MASTER_EPOCH
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from system_under_test.storage.errors import BadOffset
from system_under_test.storage.log_beginning import QueueOffsets
from system_under_test.storage.message_store import MessageStore

OFFSET = "physicalOffset"
MAX_DIGITS = 20
NO_EPOCH = 0
"""Stands for the epoch of masters that are configured as such, and not elected."""


class LogBeginnings:
    """Answers at the master of the epoch that is asked for."""

    def __init__(self, store: MessageStore, ha: HAService) -> None:
        self._store = store
        self._ha = ha

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.GET_QUEUE_OFFSETS_AT: self._tell}

    def _tell(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        mastership, epoch = self._ha.mastership, command.ext_fields.get(MASTER_EPOCH)
        if mastership is None or mastership.ended or str(mastership.master_epoch) != epoch:
            raise RemotingError(ResponseCode.NOT_MASTER, f"this broker is not the master of epoch {epoch}")
        asked = command.ext_fields.get(OFFSET, "")
        if not asked.isascii() or not asked.isdigit() or len(asked) > MAX_DIGITS:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"{OFFSET}: expected an offset, got {asked[:40]!r}")
        try:
            offsets = self._store.queue_offsets_at(int(asked))
        except BadOffset as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from error
        rows = sorted([topic, queue_id, offset] for (topic, queue_id), offset in offsets.items())
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(rows, separators=(",", ":")).encode())


class MastersBeginnings:
    """Asks one master of one epoch."""

    def __init__(self, host: Host, master_address: str, master_epoch: int, timeout_s: float) -> None:
        self._master_address = master_address
        self._master_epoch = master_epoch
        self._timeout_s = timeout_s
        self._remoting = RemotingClient(host, timeout_s)

    def close(self) -> None:
        """Questions under way end with ConnectionClosed."""
        self._remoting.close()

    async def at(self, offset: int) -> QueueOffsets:
        """Raises ConnectionClosed or TimeoutError where there is no answer, or none that says it: ask again later."""
        fields = {MASTER_EPOCH: str(self._master_epoch), OFFSET: str(offset)}
        command = RemotingCommand.request(RequestCode.GET_QUEUE_OFFSETS_AT, fields)
        try:
            answer = await self._remoting.invoke(self._master_address, command, self._timeout_s)
        except ConnectFailed as error:
            raise ConnectionClosed(str(error)) from error
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            # A master of version 4. Its slaves are never promoted, so they give out no offset twice.
            return {}
        if answer.code != ResponseCode.SUCCESS:
            raise ConnectionClosed(f"{self._master_address}: {answer.code} {answer.remark}")
        try:
            rows = [(topic, queue_id, queue_offset) for topic, queue_id, queue_offset in decode_json(answer.body)]
        except (ValueError, TypeError) as error:
            raise ConnectionClosed(f"{self._master_address}: malformed queue offsets: {error}") from error
        for topic, queue_id, queue_offset in rows:
            if type(topic) is not str or type(queue_id) is not int or type(queue_offset) is not int or queue_offset < 0:
                raise ConnectionClosed(f"{self._master_address}: no queue offset: {(topic, queue_id, queue_offset)!r}")
        return {(topic, queue_id): queue_offset for topic, queue_id, queue_offset in rows}
