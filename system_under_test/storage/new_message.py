"""A message that is about to be written: all of it but its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from system_under_test.storage.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """What is to be written, before it has a place."""

    topic: str
    queue_id: int
    body: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    born_timestamp_ms: int | None = None
    """When it was born; None is now."""
    born_host: bytes | None = None
    """The host that it was born at; None is this broker."""
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @classmethod
    def copy_of(cls, message: Message, *, topic: str, queue_id: int, properties: Mapping[str, str]) -> NewMessage:
        """The same message, to be written elsewhere."""
        return cls(
            topic=topic,
            queue_id=queue_id,
            body=message.body,
            properties=properties,
            born_timestamp_ms=message.born_timestamp_ms,
            born_host=message.born_host,
            flag=message.flag,
            sys_flag=message.sys_flag,
            reconsume_times=message.reconsume_times,
        )
