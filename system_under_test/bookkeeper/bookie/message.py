"""What a bookie is asked, and what it answers. Each request names the bookie that it means by identity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from system_under_test.bookkeeper.entry import NOTHING


class Code(IntEnum):
    OK = 0
    NO_SUCH_ENTRY = 60101
    """It never had the entry, or lost it and does not know; never said of a ledger in limbo."""
    NO_SUCH_LEDGER = 60102
    """It knows nothing of the ledger."""
    FENCED = 60103
    READ_ONLY = 60104
    """Its disk is full. Of an add or a fence nothing was done."""
    UNKNOWN = 60105
    """The ledger is in limbo: an entry that is missing may have been acknowledged and lost. Or another bookie was
    meant, and what became of that one is not known here."""
    WRONG_BOOKIE = 60106
    """It began with an empty disk in the place of the one that was meant, whose disk is gone for good: that one will
    never answer, nor acknowledge anything."""
    CORRUPT = 60107
    """The entry is there, or was sent, and is harmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    bookie: str
    data: bytes
    """An entry in its encoded form."""
    is_recovery: bool = False
    """Written again by recovery or repair, and not refused for a fence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    bookie: str
    ledger: int
    entry: int
    fences: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadManyRequest:
    """Those entries from `first` to `last` that are there, unharmed, and fit an answer. It does not fence."""

    bookie: str
    ledger: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLacRequest:
    bookie: str
    ledger: int
    fences: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLacRequest:
    """The writer says, without an entry, up to where it was acknowledged."""

    bookie: str
    ledger: int
    lac: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """Which entries there are, from `first` on."""

    bookie: str
    ledger: int
    first: int = 0


BookieRequest = AddRequest | ReadRequest | ReadManyRequest | ReadLacRequest | WriteLacRequest | ListRequest

MAX_READ_BYTES = 1024 * 1024
"""An answer with many entries has no more once they have so many bytes."""
MAX_LISTED = 65_536
"""So many entries an answer lists at most: where it has fewer there are no more."""


@dataclass(frozen=True, slots=True)
class BookieAnswer:
    code: Code
    data: bytes = b""
    """The entry that was read, in its encoded form."""
    many: tuple[tuple[int, bytes], ...] = ()
    """Each entry's number and encoded form, in an answer to `ReadManyRequest`."""
    lac: int = NOTHING
    """The greatest that the bookie heard of, in an answer to `ReadLacRequest`."""
    entries: tuple[int, ...] = ()
    """Those that there are, in an answer to `ListRequest`; with UNKNOWN those that are left."""
