"""From where a bookie's journal is to be read, and what it would have to be read from its beginning for; big-endian.

version:1 | is synced:1 | logs:8 | position:8 | chain:4, then for each ledger: ledger:8 | LAC:8 | flags:1
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from system_under_test.bookkeeper.bookie.journal import Place
from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.storage.errors import RecordInvalid

_VERSION = 1
_HEAD = struct.Struct(">B?qqI")
_LEDGER = struct.Struct(">qqB")
_FENCED, _LIMBO = 1, 2
_PLACE = struct.Struct(">qI")


@dataclass(slots=True)
class LedgerNotes:
    """What a bookie knows of a ledger beside its entries."""

    lac: int = NOTHING
    """The greatest LAC that came with an entry, or by itself."""
    is_fenced: bool = False
    in_limbo: bool = False
    """It may have had entries that this bookie lost: that one is missing says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    start: Place
    """Where the journal is to be read from."""
    logs: int
    """So many entry logs are full, and durable with their indexes."""
    is_synced: bool
    """Whether the process that began last syncs the journal before it acknowledges."""
    ledgers: dict[int, LedgerNotes]
    """What was noted of each up to `start`."""


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    start = checkpoint.start
    parts = [_HEAD.pack(_VERSION, checkpoint.is_synced, checkpoint.logs, start.position, start.chain)]
    for ledger, state in sorted(checkpoint.ledgers.items()):
        flags = _FENCED * state.is_fenced | _LIMBO * state.in_limbo
        parts.append(_LEDGER.pack(ledger, state.lac, flags))
    return b"".join(parts)


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Raises RecordInvalid."""
    if len(data) < _HEAD.size or (len(data) - _HEAD.size) % _LEDGER.size:
        raise RecordInvalid(f"{len(data)} bytes are no checkpoint")
    version, is_synced, logs, position, chain = _HEAD.unpack_from(data)
    if version != _VERSION or min(logs, position) < 0:
        raise RecordInvalid("no checkpoint of this version")
    ledgers: dict[int, LedgerNotes] = {}
    for ledger, lac, flags in _LEDGER.iter_unpack(data[_HEAD.size :]):
        if ledger < 0 or lac < NOTHING or flags > _FENCED | _LIMBO or ledger in ledgers:
            raise RecordInvalid(f"ledger {ledger} cannot be like this")
        ledgers[ledger] = LedgerNotes(lac, bool(flags & _FENCED), bool(flags & _LIMBO))
    return Checkpoint(start=Place(position, chain), logs=logs, is_synced=is_synced, ledgers=ledgers)


def encode_place(place: Place) -> bytes:
    return _PLACE.pack(place.position, place.chain)


def decode_place(data: bytes) -> Place:
    """Raises RecordInvalid."""
    if len(data) != _PLACE.size:
        raise RecordInvalid(f"{len(data)} bytes are no place of the journal")
    position, chain = _PLACE.unpack(data)
    if position < 0:
        raise RecordInvalid(f"the journal has no position {position}")
    return Place(position, chain)
