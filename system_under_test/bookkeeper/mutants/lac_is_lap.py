from __future__ import annotations

from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.writer import Writer
from system_under_test.node.mutant import Mutant


class ShowsAll(Writer):
    @property
    def visible_lac(self) -> int:
        return self.lap


MUTANT = Mutant(
    name="lac-is-lap",
    breaks="readers see what is acknowledged",
    parts=(LedgerParts(writer=ShowsAll),),
)
