"""What excuses something excuses nothing else: a planted bug is still caught beside it, and the healthy system stays
silent in the same storms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import SettingValue
from stormproof.session.outcome import replay_line
from tests.rocketmq.mutants.campaign import catches, run_storm
from tests.rocketmq.mutants.planted_bugs import PLANTED_BUGS, PlantedBug

SEEDS = 10
BUGS = {f"{bug.mutant}-{bug.workload}": bug for bug in PLANTED_BUGS}


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What the adapter excuses something by, in a storm that is written for a planted bug."""

    bug: str
    nemesis: tuple[str, ...] = ()
    settings: Mapping[str, SettingValue] = field(default_factory=dict)

    @property
    def planted(self) -> PlantedBug:
        bug = BUGS[self.bug]
        return replace(bug, nemesis=(*bug.nemesis, *self.nemesis), settings={**bug.settings, **self.settings})


BESIDE = (
    Beside(bug="unheard-is-dead-log", nemesis=("rot disks of c2 every 20 for 1",)),
    Beside(bug="dispatch-to-max-log", nemesis=("rot disks of b3 every 25 for 1",)),
    Beside(bug="flush-lie-log", settings={"retention_s": 30.0}),
    Beside(bug="ignore-demotion-log", nemesis=("rot disks of b3 every 45 for 1",)),
    Beside(bug="ignore-demotion-log", nemesis=("wipe disks of c3 every 40 for 2",)),
    Beside(bug="truncate-by-epoch-only-log", nemesis=("skew clocks of brokers every 20 for 5",)),
)


@pytest.mark.gate
@pytest.mark.parametrize("beside", BESIDE, ids=lambda one: f"{one.bug}-beside-{one.nemesis or dict(one.settings)}")
def test_what_is_excused_hides_no_planted_bug(beside: Beside) -> None:
    bug = beside.planted
    for seed in range(bug.first_seed, bug.first_seed + SEEDS):
        well = run_storm(bug.scenario(seed, planted=False))
        assert well.verdict is not Verdict.INVALID, f"{replay_line(well.scenario)}\n{well.words()}"
        if catches(bug, run_storm(bug.scenario(seed, planted=True))):
            return
    pytest.fail(f"{bug.mutant} was not caught in {SEEDS} storms")
