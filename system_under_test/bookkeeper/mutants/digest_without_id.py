from __future__ import annotations

import struct
from zlib import crc32

from system_under_test.bookkeeper.entry import Digest
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import Mutant

_COVERED = struct.Struct(">qq")


class DigestOfTheRest(Digest):
    def of(self, ledger: int, entry: int, lac: int, length: int, payload: bytes) -> int:
        return crc32(payload, crc32(_COVERED.pack(lac, length)))


MUTANT = Mutant(
    name="digest-without-id",
    breaks="an entry is the one that was asked for",
    parts=(BookieParts(digest=DigestOfTheRest), LedgerParts(digest=DigestOfTheRest)),
)
