"""Messages that are written with one write, and are never parted again.

All but the last say that their batch goes on (`CONTINUES` in `message.py`): who cuts, recovers or shows a log holds on
to that, so that a crash during the write, or a log that was replicated in part, leaves none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from system_under_test.storage.message import CONTINUES, encode_message, encode_properties, message_bytes
from system_under_test.storage.new_message import NewMessage
from system_under_test.storage.store_results import PutResult


class Batch:
    """At least one message, each of any topic and queue. `size` is what all of them take in the log.

    Raises MessageTooLarge where a length field would overflow.
    """

    def __init__(self, messages: Sequence[NewMessage]) -> None:
        assert messages, "a batch without messages"
        self._messages = messages
        self._topics = [message.topic.encode() for message in messages]
        self._properties = [encode_properties(message.properties) for message in messages]
        self._sizes = [
            message_bytes(topic, message.body, properties)
            for message, topic, properties in zip(messages, self._topics, self._properties, strict=True)
        ]
        self.size = sum(self._sizes)

    def encode(
        self,
        queue_offsets: Mapping[tuple[str, int], int],
        *,
        physical_offset: int,
        store_timestamp_ms: int,
        store_host: bytes,
    ) -> tuple[bytes, tuple[PutResult, ...]]:
        """The bytes of the batch whose first message stands at `physical_offset`, and where each message will be.

        `queue_offsets`: (topic, queue id) -> where the next message of the queue goes, 0 where it is not named.
        """
        encoded: list[bytes] = []
        results: list[PutResult] = []
        used: dict[tuple[str, int], int] = {}
        last = len(self._messages) - 1
        for number, message in enumerate(self._messages):
            size, key = self._sizes[number], (message.topic, message.queue_id)
            queue_offset = used.get(key, queue_offsets.get(key, 0))
            used[key] = queue_offset + 1
            born_ms = message.born_timestamp_ms
            encoded.append(
                encode_message(
                    topic=self._topics[number],
                    queue_id=message.queue_id,
                    queue_offset=queue_offset,
                    physical_offset=physical_offset,
                    body=message.body,
                    properties=self._properties[number],
                    born_timestamp_ms=store_timestamp_ms if born_ms is None else born_ms,
                    store_timestamp_ms=store_timestamp_ms,
                    born_host=message.born_host or store_host,
                    store_host=store_host,
                    flag=message.flag,
                    sys_flag=message.sys_flag & ~CONTINUES if number == last else message.sys_flag | CONTINUES,
                    reconsume_times=message.reconsume_times,
                    prepared_transaction_offset=message.prepared_transaction_offset,
                )
            )
            results.append(
                PutResult(
                    offset=physical_offset,
                    end_offset=physical_offset + size,
                    queue_offset=queue_offset,
                    size=size,
                    store_timestamp_ms=store_timestamp_ms,
                )
            )
            physical_offset += size
        return b"".join(encoded), tuple(results)
