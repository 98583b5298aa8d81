"""Skeleton keeps its promises under faults, and a storm notices where it does not. Needs a Docker engine."""

from __future__ import annotations

from pathlib import Path

import docker
import pytest

from stormproof import Outcome, Verdict, chosen, register, run, storm


def engine_answers() -> bool:
    try:
        return bool(docker.from_env(timeout=10).ping())
    except docker.errors.DockerException:
        return False


pytestmark = pytest.mark.skipif(not engine_answers(), reason="no Docker engine answers")


def after_a_storm(runs: Path, mutant: str | None = None) -> Outcome:
    scenario = storm(
        system=chosen("skeleton"),
        workload=register(),
        nemesis=["kill all every 8 for 2"],
        environment="docker",
        mutant=mutant,
        time_limit_s=16,
        recovery_s=3,
        seed=1,
    )
    return run(scenario, runs=runs)


def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    after_a_storm(tmp_path).assert_valid()


def test_a_store_that_forgets_is_found_out(tmp_path: Path) -> None:
    outcome = after_a_storm(tmp_path, mutant="forgets")
    assert outcome.verdict is Verdict.INVALID
    with pytest.raises(AssertionError, match="nonlinearizable"):
        outcome.assert_valid()
