from __future__ import annotations

from system_under_test.bookkeeper.ledger.metadata import Fragment
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.writer import Writer
from system_under_test.node.mutant import Mutant


class WritesAhead(Writer):
    def change(self, fragment: Fragment) -> None:
        """And write to the new ensemble before the metadata have it."""
        super().change(fragment)
        self._pending.place_anew(fragment)
        self._effects += self._pending.sends()

    def may_acknowledge(self) -> bool:
        return True


MUTANT = Mutant(
    name="deferred-failure",
    breaks="what is acknowledged is where the metadata say",
    parts=(LedgerParts(writer=WritesAhead),),
)
