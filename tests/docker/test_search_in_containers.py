"""Storms of a search in containers: each a command of its own, the next cluster started in the calm of the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.progress import Moment
from harness.record.scenario import Scenario
from harness.run import CALM
from stormproof.search import live
from stormproof.search.trial import RANDOM, Task

pytestmark = [pytest.mark.docker, pytest.mark.gate, pytest.mark.xdist_group("storms in containers")]


def a_storm(number: int) -> Task:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=("kill one of brokers every 3 for 1",),
        environment="docker",
        concurrency=5,
        rate=40.0,
        time_limit_s=6.0,
        recovery_s=2.0,
        seed=number,
        settings={"controllers": 1, "brokers": 2, "min_in_sync_replicas": 1},
    )
    return Task(number=number, origin=RANDOM, scenario=scenario)


def test_two_clusters_stand_at_a_time_and_both_storms_are_judged(tmp_path: Path) -> None:
    said: list[object] = []
    with live.trying(tmp_path, said.append) as trier:
        rounds = [trier([a_storm(number)]) for number in range(2)]
        rows = [one.result().to_pylist()[0] for one in rounds]
    assert [row["verdict"] for row in rows] == ["valid", "valid"], [row["words"] for row in rows]
    assert said.count(Moment(CALM)) == 2
    assert list(tmp_path.iterdir()) == [], "what is valid is not kept"
