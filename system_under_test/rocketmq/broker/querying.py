"""Finds single messages for clients: by key, by place in the log, by time; at the master and at slaves alike.

What it shows is dispatched, so confirmed.
"""

from __future__ import annotations

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.message_protocol import KeyQuery, QueueRequest, TimeQuery, whole_number
from system_under_test.storage.message_store import MessageStore

MAX_MESSAGES = 64
UNIQUE_KEY_MESSAGES = 32
"""So many at most where a unique key is asked for, whatever the request says."""


class Queries:
    """QUERY_MESSAGE, VIEW_MESSAGE_BY_ID, SEARCH_OFFSET_BY_TIMESTAMP and GET_EARLIEST_MSG_STORETIME."""

    def __init__(self, store: MessageStore, administration: Administration) -> None:
        self._lookups = store.lookups
        self._administration = administration

    @property
    def handlers(self) -> Handlers:
        return {
            RequestCode.QUERY_MESSAGE: self._by_key,
            RequestCode.VIEW_MESSAGE_BY_ID: self._by_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._offset_at_time,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._earliest_time,
        }

    def _by_key(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        query = KeyQuery.decode(command)
        self._administration.topic(query.topic)
        most = UNIQUE_KEY_MESSAGES if query.is_unique else max(1, min(query.max_count, MAX_MESSAGES))
        messages = self._lookups.by_key(query.topic, query.key, most, query.begin_ms, query.end_ms)
        if not messages:
            raise RemotingError(ResponseCode.QUERY_NOT_FOUND, "no message with this key within this time")
        updated_ms, updated_at = self._lookups.last_indexed
        fields = {"indexLastUpdateTimestamp": str(updated_ms), "indexLastUpdatePhyoffset": str(updated_at)}
        return RemotingCommand.response(ResponseCode.SUCCESS, fields, b"".join(messages))

    def _by_offset(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        offset = whole_number(command.ext_fields, "offset")
        message = self._lookups.at(offset)
        if message is None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, f"no message stands at {offset}")
        return RemotingCommand.response(ResponseCode.SUCCESS, body=message)

    def _offset_at_time(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        query = TimeQuery.decode(command)
        self._check_known(query.topic, query.queue_id)
        offset = self._lookups.offset_at_time(query.topic, query.queue_id, query.time_ms, query.boundary)
        return RemotingCommand.response(ResponseCode.SUCCESS, {"offset": str(offset)})

    def _earliest_time(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = QueueRequest.decode(command)
        self._check_known(request.topic, request.queue_id)
        stored_ms = self._lookups.first_stored(request.topic, request.queue_id)
        return RemotingCommand.response(
            ResponseCode.SUCCESS, {"timestamp": str(-1 if stored_ms is None else stored_ms)}
        )

    def _check_known(self, name: str, queue_id: int) -> None:
        topic = self._administration.topic(name)
        check_queue(topic, queue_id, max(topic.read_queues, topic.write_queues))
