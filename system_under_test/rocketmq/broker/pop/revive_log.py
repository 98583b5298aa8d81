"""The revive log as a topic of the store: records are appended to it, and read by each new master."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

from system_under_test.rocketmq.broker.pop.ledger import RevivePosition
from system_under_test.rocketmq.broker.pop.records import (
    REVIVE_GROUP,
    REVIVE_QUEUES,
    REVIVE_TOPIC_PREFIX,
    Record,
    Settlement,
    decode_record,
    encode_record,
)
from system_under_test.rocketmq.broker.pop.redelivery import CAME_AGAIN, delivery_name, original_topic
from system_under_test.rocketmq.topic import MAX_NAME, READ, TopicConfig
from system_under_test.runtime.host import Host
from system_under_test.storage.message import MessageInvalid, decode_message
from system_under_test.storage.message_store import GetStatus, MessageStore, PutResult

READ_COUNT = 1024


def revive_topic(cluster: str) -> str:
    """A cluster's name may have characters that no topic's may have, and any length."""
    return f"{REVIVE_TOPIC_PREFIX}{re.sub('[^%|a-zA-Z0-9_-]', '_', cluster)}"[:MAX_NAME]


class ReviveLog:
    def __init__(self, host: Host, store: MessageStore, cluster: str) -> None:
        # Clients may read it, and write nothing into it.
        self.topic = TopicConfig.of(revive_topic(cluster), REVIVE_QUEUES, READ)
        self._host = host
        self._store = store

    def queue_of(self, group: str, topic: str) -> int:
        """All of a group and a topic, or of its retry topic, is in one queue, so in order."""
        return crc32(f"{group}@{original_topic(group, topic)}".encode()) % REVIVE_QUEUES

    def append(self, record: Record, queue_id: int) -> PutResult:
        """Raises DiskFull."""
        tag, body = encode_record(record)
        return self._store.put(self.topic.name, queue_id, body, {"TAGS": tag})

    def end(self, queue_id: int) -> int:
        """Of what is confirmed."""
        return self._store.queue_range(self.topic.name, queue_id)[1]

    def settled(self, queue_id: int) -> int:
        """All before it is settled, as far as that was noted."""
        return self._store.consumer_offsets.get(REVIVE_GROUP, self.topic.name, queue_id) or 0

    def note_settled(self, queue_id: int, offset: int) -> None:
        if offset > self.settled(queue_id):
            self._store.consumer_offsets.commit(REVIVE_GROUP, self.topic.name, queue_id, offset)

    def records(self, queue_id: int, first: int) -> Iterator[tuple[RevivePosition, Record]]:
        """From this offset on, or where the queue begins. What is no record is passed over: clients cannot write here,
        so it is of another version, or rotten."""
        least, end = self._store.queue_range(self.topic.name, queue_id)
        offset = max(least, first)
        while offset < end:
            read = self._store.get_messages(self.topic.name, queue_id, offset, READ_COUNT)
            if not read.messages:
                return
            for place, data in enumerate(read.messages, offset):
                try:
                    message = decode_message(data, 0)
                    record = decode_record(message.properties.get("TAGS", ""), message.body)
                except (MessageInvalid, ValueError) as error:
                    self._host.log("revive_record_refused", queue=queue_id, offset=place, reason=str(error))
                    continue
                yield RevivePosition(queue_id, place), record
            offset += len(read.messages)

    def really_settled(self, settlement: Settlement) -> tuple[int, ...]:
        """Those of its messages that are settled. Where it says that they come again, it was written before they were
        put there, and the log may have been cut between."""
        if settlement.again is None:
            return settlement.offsets
        topic, places = settlement.again
        both = zip(settlement.offsets, places, strict=True)
        return tuple(o for o, place in both if self._is_there(topic, place, delivery_name(settlement.key, o)))

    def _is_there(self, topic: str, place: int, name: str) -> bool:
        read = self._store.get_messages(topic, 0, place, 1)
        if read.status is GetStatus.OFFSET_TOO_SMALL:
            return True  # it was there, and was deleted since
        try:
            return bool(read.messages) and decode_message(read.messages[0], 0).properties.get(CAME_AGAIN) == name
        except MessageInvalid:
            return False
