"""A filtered read whose page is full says that the reader is to go on behind the next message.

Where to read on is computed from the entries that were begun, and not from those that were looked at: it is off by
one where a page ends early. Broken rule: what a reader is sent past was held against its filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.message_filter import MessageFilter, select_messages
from system_under_test.storage.store_config import StorageParts


def begun_counts_as_passed(
    entries: Iterable[tuple[int, int, int]],
    read: Callable[[int, int], bytes],
    max_count: int,
    max_bytes: int,
    wanted: MessageFilter | None,
) -> tuple[list[bytes], int]:
    queued = list(entries)
    messages, passed = select_messages(queued, read, max_count, max_bytes, wanted)
    is_full = wanted is not None and len(messages) == max_count and passed < len(queued)
    return messages, passed + is_full


MUTANT = Mutant(
    name="filter-skips-one",
    breaks="a filter takes away nothing that its reader wants",
    parts=(BrokerParts(storage=StorageParts(select_messages=begun_counts_as_passed)),),
)
