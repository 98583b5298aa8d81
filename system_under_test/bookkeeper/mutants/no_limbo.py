from __future__ import annotations

from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import Mutant


class TakesWhatItHasForAll(Bookie):
    @property
    def may_have_lost(self) -> bool:
        return False


MUTANT = Mutant(
    name="no-limbo",
    breaks="a bookie that may have lost an entry does not say that there is none",
    parts=(BookieParts(bookie=TakesWhatItHasForAll),),
)
