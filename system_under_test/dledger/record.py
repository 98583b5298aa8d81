"""Entries, and what the index says of them, as they stand in files; big-endian.

- entry: `magic:4 | size:4 | index:8 | term:8 | position:8 | channel:4 | chain CRC:4 | body CRC:4 | body size:4 | body`;
- record of the index, at 32 times the entry's index: `magic:4 | position:8 | size:4 | index:8 | term:8`;
- blank, which fills the end of a data file: `magic -1:4 | its size:4`, then zeros. At least its head stays free.

The body's CRC is a CRC-32; the chain's continues that of the entry before over index, term, position, channel and the
body's CRC. Before the first entry of a log, or of one that began anew, it is 0. An entry so fits behind one history
only, and neither what was torn nor what was cut and came back with a loss of power is taken for its continuation.

Source: DLedger 0.3.1, `DLedgerEntryCoder` and `DLedgerMmapFileStore`; there the chain's CRC is reserved.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

from system_under_test.dledger.entry import HEAD_BYTES, Entry
from system_under_test.storage.errors import RecordInvalid
from system_under_test.storage.record_format import BLANK_BYTES, RecordFormat

_MAGIC = 1
_BLANK_MAGIC = -1
_HEAD = struct.Struct(">iiqqqiIIi")
_START = struct.Struct(">ii")
_CHAINED = struct.Struct(">qqqiI")
_INDEX = struct.Struct(">iqiqq")
INDEX_BYTES = _INDEX.size
"""How long a record of the index is."""


@dataclass(frozen=True, slots=True)
class IndexRecord:
    position: int
    size: int
    index: int
    term: int


def encode_entry(entry: Entry, chain_before: int) -> tuple[bytes, int]:
    """Its bytes, and its chain's CRC."""
    body_crc = crc32(entry.body)
    chain = _chain(entry, body_crc, chain_before)
    place = (entry.index, entry.term, entry.position, entry.channel)
    return _HEAD.pack(_MAGIC, entry.size, *place, chain, body_crc, len(entry.body)) + entry.body, chain


def decode_entry(buffer: bytes, at: int = 0, chain_before: int | None = None) -> tuple[Entry, int]:
    """The entry that begins at `at`, and its chain's CRC, which is compared where that of the entry before is given.

    Raises RecordInvalid unless it is whole and unharmed.
    """
    if len(buffer) - at < HEAD_BYTES:
        raise RecordInvalid("the head of an entry is cut")
    magic, size, index, term, position, channel, chain, body_crc, body_size = _HEAD.unpack_from(buffer, at)
    if magic != _MAGIC or body_size < 0 or size != HEAD_BYTES + body_size or min(index, term, position) < 0:
        raise RecordInvalid("no entry begins here")
    body = bytes(buffer[at + HEAD_BYTES : at + size])
    if len(body) != body_size or crc32(body) != body_crc:
        raise RecordInvalid(f"the body of entry {index} is cut or harmed")
    entry = Entry(index, term, position, body, channel)
    if chain_before is not None and _chain(entry, body_crc, chain_before) != chain:
        raise RecordInvalid(f"entry {index} does not follow the one before it")
    return entry, chain


def _chain(entry: Entry, body_crc: int, chain_before: int) -> int:
    return crc32(_CHAINED.pack(entry.index, entry.term, entry.position, entry.channel, body_crc), chain_before)


def encode_index_record(entry: Entry) -> bytes:
    return _INDEX.pack(_MAGIC, entry.position, entry.size, entry.index, entry.term)


def decode_index_record(data: bytes) -> IndexRecord:
    """Raises RecordInvalid."""
    if len(data) != INDEX_BYTES:
        raise RecordInvalid(f"a record of the index has {len(data)} bytes")
    magic, position, size, index, term = _INDEX.unpack(data)
    if magic != _MAGIC or size < HEAD_BYTES or min(position, index, term) < 0:
        raise RecordInvalid("no record of the index stands here")
    return IndexRecord(position, size, index, term)


def encode_blank(size: int) -> bytes:
    """What fills the last `size` bytes of a data file."""
    return _START.pack(_BLANK_MAGIC, size) + bytes(size - BLANK_BYTES)


def _claimed(magic: int, least: int, buffer: bytes, at: int) -> int:
    """The size that a head with this magic claims, 0 where there is another one."""
    found, size = _START.unpack_from(buffer, at)
    return size if found == magic and size >= least else 0


def _entry_size(buffer: bytes, at: int) -> int:
    return _claimed(_MAGIC, HEAD_BYTES, buffer, at) if len(buffer) - at >= BLANK_BYTES else -1


def _blank_size(buffer: bytes, at: int) -> int:
    return _claimed(_BLANK_MAGIC, BLANK_BYTES, buffer, at) if len(buffer) - at >= BLANK_BYTES else 0


def _check(buffer: bytes, at: int, position: int) -> int:
    entry, _ = decode_entry(buffer, at)
    if entry.position != position:
        raise RecordInvalid(f"entry {entry.index} belongs at {entry.position}")
    return entry.size


ENTRIES = RecordFormat(
    head_bytes=BLANK_BYTES,
    size=_entry_size,
    goes_on=lambda buffer, at: False,
    check=_check,
    encode_blank=encode_blank,
    blank_size=_blank_size,
)
"""A log of entries, each looked at by itself."""
