from __future__ import annotations

import random

from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import Mutant


class GoesByItsAddress(Bookie):
    @staticmethod
    def draw_identity(draw: random.Random, registered_here: list[str]) -> str:
        return registered_here[-1] if registered_here else Bookie.draw_identity(draw, registered_here)


MUTANT = Mutant(
    name="replacement-unfenced",
    breaks="a bookie that comes back empty, and knows no fence, is another one",
    parts=(BookieParts(bookie=GoesByItsAddress),),
)
