"""Skeleton keeps its promises under faults, and a storm notices where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormproof import Outcome, Verdict, chosen, register, run, storm


def after_a_storm(runs: Path, mutant: str | None = None) -> Outcome:
    scenario = storm(
        system=chosen("skeleton"),
        workload=register(),
        nemesis=["partition", "kill all every 10 for 2"],
        mutant=mutant,
        time_limit_s=30,
        seed=1,
    )
    return run(scenario, runs=runs)


def test_what_was_acknowledged_survives_partitions_and_kills(tmp_path: Path) -> None:
    after_a_storm(tmp_path).assert_valid()


def test_a_store_that_forgets_is_found_out(tmp_path: Path) -> None:
    outcome = after_a_storm(tmp_path, mutant="forgets")
    assert outcome.verdict is Verdict.INVALID
    with pytest.raises(AssertionError, match="nonlinearizable"):
        outcome.assert_valid()
