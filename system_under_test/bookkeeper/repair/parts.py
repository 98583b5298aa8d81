"""What repair is made of, where a planted bug may put something else."""

from __future__ import annotations

from dataclasses import dataclass, field

from system_under_test.bookkeeper.repair.auditor import Auditor
from system_under_test.bookkeeper.repair.holdings import EveryEntry, OwnEnds
from system_under_test.bookkeeper.repair.round import RepairRound


@dataclass(frozen=True, kw_only=True)
class RepairParts:
    auditor: type[Auditor] = Auditor
    repair_round: type[RepairRound] = RepairRound
    probes: OwnEnds = field(default_factory=OwnEnds)
    every_entry: OwnEnds = field(default_factory=EveryEntry)
