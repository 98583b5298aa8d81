from __future__ import annotations

from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import Mutant


class RemembersFences(Bookie):
    def write_fence(self, ledger: int) -> int:
        self._store.state(ledger).is_fenced = True
        return 0


MUTANT = Mutant(
    name="fence-not-journaled",
    breaks="a fence that was answered holds for ever",
    parts=(BookieParts(bookie=RemembersFences),),
)
