"""Administrators set a group back, or forward, on a topic: INVOKE_BROKER_TO_RESET_OFFSET.

The new offsets are committed here and told to the members that are online, who go on from there.
"""

from __future__ import annotations

import json
from contextlib import suppress

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.consumer_progress import ConsumerProgress
from system_under_test.rocketmq.broker.consuming.group_members import GroupMembers
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.request_handler import Handlers, check_queue, text_field
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.consumer_protocol import MessageQueue, offsets_notice
from system_under_test.rocketmq.message_protocol import number
from system_under_test.runtime.host import ConnectionClosed
from system_under_test.storage.message import store_timestamp_ms

ALL_QUEUES = -1
LATEST = -1
"""Stands for the end of the queue in place of a time."""


class OffsetReset:
    def __init__(
        self, broker: BrokerContext, administration: Administration, progress: ConsumerProgress, members: GroupMembers
    ) -> None:
        self._store, self._config, self._ha = broker.store, broker.config, broker.ha
        self._administration = administration
        self._progress = progress
        self._members = members

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self._reset}

    def _reset(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        if self._ha.mastership is None:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        group, topic = text_field(command, "group"), self._administration.topic(text_field(command, "topic"))
        fields = command.ext_fields
        try:
            queue_id, timestamp_ms = number(fields.get("queueId") or "-1"), number(fields["timestamp"])
            wanted = number(fields["offset"]) if fields.get("offset") else None
        except (KeyError, ValueError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"queueId, timestamp or offset: {error}") from error
        if queue_id != ALL_QUEUES:
            check_queue(topic, queue_id, topic.read_queues)
        offsets: dict[MessageQueue, int] = {}
        for one in range(topic.read_queues) if queue_id == ALL_QUEUES else (queue_id,):
            offset = self._offset_at(topic.name, one, timestamp_ms) if wanted is None else wanted
            self._progress.commit(group, topic.name, one, offset)
            offsets[MessageQueue(topic.name, self._config.group, one)] = offset
        self._tell(group, topic.name, offsets)
        table = [{**queue.as_json(), "offset": offset} for queue, offset in sorted(offsets.items())]
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps({"offsetTable": table}).encode())

    def _tell(self, group: str, topic: str, offsets: dict[MessageQueue, int]) -> None:
        found = self._members.get(group)
        frame = offsets_notice(topic, group, offsets).encode()
        for member in [] if found is None else list(found.members.values()):
            with suppress(ConnectionClosed):
                member.peer.write(frame)

    def _offset_at(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """The first message that was stored at this time or later; the end of the queue if there is none."""
        least, end = self._store.queue_range(topic, queue_id)
        if timestamp_ms == LATEST:
            return end
        while least < end:
            middle = (least + end) // 2
            found = self._store.get_messages(topic, queue_id, middle, 1).messages
            if found and store_timestamp_ms(found[0], 0) < timestamp_ms:
                least = middle + 1
            else:
                end = middle
        return least
