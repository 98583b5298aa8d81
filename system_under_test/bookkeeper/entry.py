"""An entry of a ledger, as it goes over the wire and stands on disks; big-endian.

    ledger:8 | entry:8 | LAC:8 | length:8 | digest:4 | payload

The digest covers all of it, the ids among them: so an entry that stands where another one should, or was sent in its
place, is as harmful as rot, and found like it. It is checked with the ids of the entry that was asked for, and with
those that the bytes bear: what rotted there could be read, and not be written anywhere else.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

NOTHING = -1
"""The LAC of a ledger of which no entry is confirmed."""

MAX_PAYLOAD_BYTES = 5 * 1024 * 1024

_HEAD = struct.Struct(">qqqqI")
_IDS = struct.Struct(">qq")
_COVERED = struct.Struct(">qqqq")
HEAD_BYTES = _HEAD.size


class EntryCorrupt(Exception):
    """These bytes are not the entry that was asked for. It says nothing of whether there is such an entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    ledger: int
    entry: int
    """Its number in the ledger, from 0."""
    lac: int
    """Last add confirmed: up to which entry the writer had been acknowledged when it sent this one."""
    length: int
    """Bytes of the payloads of all entries up to this one."""
    payload: bytes


class Digest:
    """What tells an entry from anything else."""

    def of(self, ledger: int, entry: int, lac: int, length: int, payload: bytes) -> int:
        """32 bits."""
        return crc32(payload, crc32(_COVERED.pack(ledger, entry, lac, length)))

    def fits(self, data: bytes, ledger: int, entry: int) -> bool:
        """Whether these bytes, as many as a head has at least, are this entry, unharmed: also by what they say of
        themselves."""
        own_ledger, own_entry, lac, length, checksum = _HEAD.unpack_from(data)
        ids = {(ledger, entry), (own_ledger, own_entry)}
        return all(self.of(*each, lac, length, data[HEAD_BYTES:]) == checksum for each in ids)


def encode_entry(entry: Entry, digest: Digest) -> bytes:
    """Raises ValueError for a number that no entry can have, or a payload that is too long."""
    if not _is_sound(entry.ledger, entry.entry, entry.lac, entry.length, len(entry.payload)):
        raise ValueError(f"there can be no entry {entry.entry} of ledger {entry.ledger} like this")
    checksum = digest.of(entry.ledger, entry.entry, entry.lac, entry.length, entry.payload)
    return _HEAD.pack(entry.ledger, entry.entry, entry.lac, entry.length, checksum) + entry.payload


def decode_entry(data: bytes, digest: Digest, ledger: int, entry: int) -> Entry:
    """The entry that was asked for. Raises EntryCorrupt unless these bytes are that one, unharmed."""
    if len(data) < HEAD_BYTES:
        raise EntryCorrupt(f"{len(data)} bytes are no entry")
    _, _, lac, length, _ = _HEAD.unpack_from(data)
    payload = data[HEAD_BYTES:]
    if not _is_sound(ledger, entry, lac, length, len(payload)):
        raise EntryCorrupt(f"entry {entry} of ledger {ledger} is harmed")
    if not digest.fits(data, ledger, entry):
        raise EntryCorrupt(f"entry {entry} of ledger {ledger} is harmed, or another one stands in its place")
    return Entry(ledger, entry, lac, length, payload)


def ids_of(data: bytes) -> tuple[int, int]:
    """Ledger and entry that these bytes say they are. Raises EntryCorrupt where they are too few."""
    if len(data) < HEAD_BYTES:
        raise EntryCorrupt(f"{len(data)} bytes are no entry")
    ledger, entry = _IDS.unpack_from(data)
    return ledger, entry


def _is_sound(ledger: int, entry: int, lac: int, length: int, payload_bytes: int) -> bool:
    return ledger >= 0 and entry >= 0 and lac >= NOTHING and payload_bytes <= min(length, MAX_PAYLOAD_BYTES)
