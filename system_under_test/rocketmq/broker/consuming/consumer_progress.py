"""How far groups of consumers have come in queues, and how far queues reach."""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.ha.replication import Replication
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.consumer_group import MAX_NAME
from system_under_test.rocketmq.message_protocol import QueueRequest
from system_under_test.storage.message import decode_header
from system_under_test.storage.message_store import MessageStore

RECENT_BYTES = 1 << 30
"""Messages of which the log has not grown by more since are young: RocketMQ has them in memory."""


class ConsumerProgress:
    """The requests about one queue and one group."""

    def __init__(
        self,
        store: MessageStore,
        ha: Replication,
        administration: Administration,
        known_progress: Callable[[int | None, int], int | None],
    ) -> None:
        self._store = store
        self._ha = ha
        self._administration = administration
        self._known_progress = known_progress

    @property
    def handlers(self) -> Handlers:
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self._query,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update,
            RequestCode.GET_MAX_OFFSET: lambda command, _: _offset(self._queue_range(command)[1]),
            RequestCode.GET_MIN_OFFSET: lambda command, _: _offset(self._queue_range(command)[0]),
        }

    def _query(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = QueueRequest.decode(command)
        committed = self._store.consumer_offsets.get(request.consumer_group, request.topic, request.queue_id)
        offset = self._known_progress(committed, self._store.queue_range(request.topic, request.queue_id)[1])
        if offset is None and request.is_zero_if_unknown and self._begins_recently(request.topic, request.queue_id):
            return _offset(0)
        if offset is None:
            raise RemotingError(ResponseCode.QUERY_NOT_FOUND, "the group has reported no offset for this queue")
        return _offset(offset)

    def _update(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = QueueRequest.decode(command)
        if self._ha.mastership is None:
            # A slave's own would be overwritten by its master's.
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        self._check_known(request)
        if request.commit_offset is None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "commitOffset is missing")
        self.commit(request.consumer_group, request.topic, request.queue_id, request.commit_offset)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Take over how far a group has come. Raises RemotingError (INVALID_PARAMETER)."""
        if not 0 < len(group) <= MAX_NAME:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"a group's name has 1 to {MAX_NAME} characters")
        end = self._store.queue_end(topic, queue_id)
        if not 0 <= offset <= end:
            # Beyond the end the group would pass over what is written there next.
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"offset {offset} is outside of the queue, 0 to {end}")
        self._store.consumer_offsets.commit(group, topic, queue_id, offset)

    def _begins_recently(self, topic: str, queue_id: int) -> bool:
        """Whether the queue's first message is still there and young. A group whose offset was lost in a failover
        begins there even if it wants to begin at the end: it reads again what it has read, and passes nothing over."""
        least, _ = self._store.queue_range(topic, queue_id)
        found = self._store.get_messages(topic, queue_id, 0, 1).messages if least == 0 else ()
        return bool(found) and self._store.max_offset - decode_header(found[0], 0).physical_offset <= RECENT_BYTES

    def _queue_range(self, command: RemotingCommand) -> tuple[int, int]:
        request = QueueRequest.decode(command)
        self._check_known(request)
        return self._store.queue_range(request.topic, request.queue_id)

    def _check_known(self, request: QueueRequest) -> None:
        topic = self._administration.topic(request.topic)
        check_queue(topic, request.queue_id, max(topic.read_queues, topic.write_queues))


def _offset(offset: int) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, {"offset": str(offset)})
