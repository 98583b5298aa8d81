"""A member that lost its disk while nobody writes is whole again in the end, or the run is INVALID."""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry


@pytest.mark.parametrize("mutant", [None, "wiped-not-pushed"])
def test_a_wiped_member_that_nobody_pushes_to_is_a_stuck_replica(mutant: str | None) -> None:
    scenario = Scenario(
        system="dledger",
        workload="log",
        mutant=mutant,
        schedule=("18.8 for 0.5 wipe disks of n2 [wipe 0]",),
        rate=50.0,
        time_limit_s=20.0,
        recovery_s=5.0,
        seed=5,
        settings={"send_share": 0.03},
    )
    judged = blown_and_judged(scenario, registry.resolve(scenario))
    assert judged.verdict is (Verdict.INVALID if mutant else Verdict.VALID), judged.words()
    assert ("stuck-replica" in judged.anomalies) is (mutant is not None)
