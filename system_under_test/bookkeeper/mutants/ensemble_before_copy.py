from __future__ import annotations

from system_under_test.bookkeeper.repair.parts import RepairParts
from system_under_test.bookkeeper.repair.round import RepairRound, Step
from system_under_test.node.mutant import Mutant


class PublishesFirst(RepairRound):
    steps = (Step.PUBLISH, Step.COPY)


MUTANT = Mutant(
    name="ensemble-before-copy",
    breaks="a bookie that an ensemble names has what it should hold",
    parts=(RepairParts(repair_round=PublishesFirst),),
)
