"""Messages that are written with one write, at consecutive offsets of one queue, and are never parted again.

All but the last say that their batch goes on (`CONTINUES` in `message.py`): who cuts, recovers or shows a log holds on
to that, so that a crash in the midst of the write, or a log that was replicated up to its midst, leaves none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from system_under_test.storage.message import CONTINUES, encode_message, encode_properties, message_bytes
from system_under_test.storage.store_results import PutResult


class NewMessage(NamedTuple):
    """What a producer says of one message."""

    body: bytes
    properties: Mapping[str, str]
    flag: int = 0


class Batch:
    """At least one message. `size` is what all of them take in the log.

    Raises MessageTooLarge where a length field would overflow.
    """

    def __init__(self, topic: str, messages: Sequence[NewMessage]) -> None:
        assert messages, "a batch without messages"
        self._topic = topic.encode()
        self._messages = messages
        self._properties = [encode_properties(message.properties) for message in messages]
        self._sizes = [
            message_bytes(self._topic, message.body, properties)
            for message, properties in zip(messages, self._properties, strict=True)
        ]
        self.size = sum(self._sizes)

    def encode(
        self,
        *,
        queue_id: int,
        queue_offset: int,
        physical_offset: int,
        born_timestamp_ms: int,
        store_timestamp_ms: int,
        born_host: bytes,
        store_host: bytes,
        sys_flag: int,
    ) -> tuple[bytes, tuple[PutResult, ...]]:
        """The bytes of the batch whose first message stands at these two offsets, and where each message will be."""
        encoded: list[bytes] = []
        results: list[PutResult] = []
        last = len(self._messages) - 1
        for number, message in enumerate(self._messages):
            size = self._sizes[number]
            encoded.append(
                encode_message(
                    topic=self._topic,
                    queue_id=queue_id,
                    queue_offset=queue_offset + number,
                    physical_offset=physical_offset,
                    body=message.body,
                    properties=self._properties[number],
                    born_timestamp_ms=born_timestamp_ms,
                    store_timestamp_ms=store_timestamp_ms,
                    born_host=born_host,
                    store_host=store_host,
                    flag=message.flag,
                    sys_flag=sys_flag & ~CONTINUES if number == last else sys_flag | CONTINUES,
                )
            )
            results.append(
                PutResult(
                    offset=physical_offset,
                    end_offset=physical_offset + size,
                    queue_offset=queue_offset + number,
                    size=size,
                    store_timestamp_ms=store_timestamp_ms,
                )
            )
            physical_offset += size
        return b"".join(encoded), tuple(results)
