"""Marks of ledgers that lack copies: keys of the metadata store, each with what is known of the ledger.

Who marks a ledger that is marked already writes the mark anew: a worker that looked before, and found nothing, does not
take it away then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from system_under_test.remoting.json_body import decode_json

MARKS: Final = "/underreplicated/"
LOCKS: Final = "/locks/"
AUDITOR: Final = "/auditor"
MAX_BOOKIES: Final = 10_000
"""The most bookies that a mark names."""


class MalformedMark(ValueError):
    """A value, or a key, that marks no ledger."""


@dataclass(frozen=True, slots=True)
class Mark:
    bookies: tuple[str, ...]
    """Those that are lost, or lack entries, as far as it was seen; sorted."""
    every_entry: bool
    """Some lack entries between their first and last ones: it takes a look at every entry to find them."""

    def with_more(self, other: Mark) -> Mark:
        return Mark(tuple(sorted({*self.bookies, *other.bookies})), self.every_entry or other.every_entry)


def mark_key(ledger: int) -> str:
    return f"{MARKS}{ledger:010d}"


def lock_key(ledger: int) -> str:
    return f"{LOCKS}{ledger:010d}"


def ledger_of(key: str) -> int:
    """Of the key of a mark. Raises MalformedMark."""
    digits = key.removeprefix(MARKS)
    if not (key.startswith(MARKS) and digits.isascii() and digits.isdigit()):
        raise MalformedMark(f"{key!r} marks no ledger")
    return int(digits)


def encode_mark(mark: Mark) -> str:
    return json.dumps({"bookies": mark.bookies, "everyEntry": mark.every_entry}, separators=(",", ":"))


def decode_mark(value: str) -> Mark:
    """Raises MalformedMark."""
    try:
        fields: Any = decode_json(value.encode())
        bookies, every_entry = fields["bookies"], fields["everyEntry"]
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedMark(f"no mark of a ledger: {error!r}") from error
    is_list = type(bookies) is list and len(bookies) <= MAX_BOOKIES and all(type(each) is str for each in bookies)
    if not is_list or type(every_entry) is not bool:
        raise MalformedMark("a mark names bookies in a list, and says whether every entry is to be looked for")
    return Mark(tuple(bookies), every_entry)
