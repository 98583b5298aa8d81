from __future__ import annotations

from system_under_test.bookkeeper.entry import Digest, ids_of
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import Mutant


class DigestOfTheRest(Digest):
    def fits(self, data: bytes, ledger: int, entry: int) -> bool:
        """Whichever entry it is."""
        return super().fits(data, *ids_of(data))


MUTANT = Mutant(
    name="digest-without-id",
    breaks="an entry is the one that was asked for",
    parts=(BookieParts(digest=DigestOfTheRest), LedgerParts(digest=DigestOfTheRest)),
)
