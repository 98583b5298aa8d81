"""Which messages a reader of a queue wants: what a store asks of the code that knows the reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

MAX_FILTERED: Final = 800
"""So many messages of a queue one read looks at; the reader comes again for the next ones."""


class MessageFilter(Protocol):
    def may_match(self, code: int) -> bool:
        """By the tags' code alone, which the consume queue has; False only if the message certainly is not wanted."""

    def matches(self, message: bytes) -> bool:
        """By the whole message, as the log has it."""


def select_messages(
    entries: Iterable[tuple[int, int, int]],
    read: Callable[[int, int], bytes],
    max_count: int,
    max_bytes: int,
    wanted: MessageFilter | None,
) -> tuple[list[bytes], int]:
    """The messages of these entries of a queue (physical offset, size, tags code) that are wanted, and how many entries
    were passed, wanted or not. At least one entry is passed if there is any; beyond that at most `max_bytes` are read.
    """
    messages: list[bytes] = []
    passed = total = 0
    for offset, size, code in entries:
        if len(messages) == max_count:
            break
        if wanted is None or wanted.may_match(code):
            total += size
            if passed and total > max_bytes:
                break
            message = read(offset, size)
            if wanted is None or wanted.matches(message):
                messages.append(message)
        passed += 1
    return messages, passed
