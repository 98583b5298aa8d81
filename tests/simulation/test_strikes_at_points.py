"""A node that is killed when it reaches a point does not do what comes next, and the same seed shows it again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.record.fault_log import FaultLog
from tests.simulation import strikes
from tests.simulation.strikes import STEPS, Strikes


@pytest.fixture(scope="module")
def storm() -> Strikes:
    return strikes.run()


@pytest.mark.parametrize("point", STEPS)
def test_the_kill_comes_before_the_next_step_of_the_node(storm: Strikes, point: str) -> None:
    (struck,) = (row for row in storm.rows if row.starts and row.point == point)
    assert struck.happened, struck.evidence
    (node,) = struck.nodes
    place = storm.place_of(struck)
    assert storm.trace.events[place][1:] == (node, "process killed")
    assert storm.step_after(place, node) is None
    others = [storm.step_after(at, who) for at, who, what in storm.reached if what == point and at != place]
    lived_on = [step for step in others if step is not None]
    assert sum(step.startswith(STEPS[point]) for step in lived_on) > 0.8 * len(lived_on) > 0


def test_what_struck_at_points_is_healed_and_the_group_serves_again(storm: Strikes) -> None:
    log = FaultLog.of(storm.rows)
    assert log.unhealed == ()
    assert {window.point for window in log.struck} == set(STEPS)
    assert storm.served_at_the_end


def test_the_same_seed_strikes_in_the_same_moments_in_another_process(storm: Strikes) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    program = [sys.executable, "-m", "tests.simulation.strikes"]
    again = subprocess.run(program, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert (again.stdout.strip(), again.stderr) == (storm.trace.digest(), "")
