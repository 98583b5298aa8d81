"""Storms of a search in real time: what is drawn for them, and what becomes of those that cannot be carried out."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.explore import live
from harness.explore.draw import drawn_storm
from harness.explore.row import RANDOM, Task
from harness.explore.search import Search
from harness.explore.space import LIVE, Space
from harness.progress import unwatched
from harness.record.scenario import DRAWN
from harness.session import resolve as registry

SPACE = Space(system="rocketmq", settings={}, environment="docker")


def test_they_wait_for_no_points_and_ask_for_no_world() -> None:
    known = registry.environment("docker").faults
    storms = [drawn_storm(SPACE, 3, number) for number in range(40)]
    assert {storm.world for storm in storms} == {DRAWN}
    assert all(LIVE.shortest_s <= storm.time_limit_s - storm.liveness_s <= LIVE.longest_s for storm in storms)
    for storm in storms:
        parts = registry.resolve(storm)
        registry.environment_of(storm, parts)
        assert all(set(package.fault.split("+")) <= known for package in parts.packages)
        assert not any(re.search(" (when|after) ", line) for line in storm.schedule), storm.schedule


def test_each_is_kept_as_soon_as_it_is_judged() -> None:
    search = Search(space=SPACE, root=3, numbers=range(3), is_guided=False)
    assert list(search.rounds()) == [range(1), range(1, 2), range(2, 3)]
    assert search.name == "rocketmq-docker-3"
    assert search.words() == "rocketmq in docker, random, root seed 3"


def test_what_cannot_be_carried_out_is_told_and_ends_the_search_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise UsageError("no engine answers")

    monkeypatch.setattr(live, "execute_scenario", refuses)
    task = Task(number=0, origin=RANDOM, scenario=drawn_storm(SPACE, 3, 0))
    with live.trying(tmp_path, unwatched) as trier:
        for _ in range(live.MOST_FAILURES - 1):
            (row,) = trier([task]).result().to_pylist()
            assert row["verdict"] == "unknown"
            assert "no engine answers" in row["words"]
        with pytest.raises(HarnessError, match=r"3 storms in a row.*no engine answers"):
            trier([task])


def test_a_run_that_nobody_can_judge_is_unknown(tmp_path: Path) -> None:
    task = Task(number=4, origin=RANDOM, scenario=drawn_storm(SPACE, 3, 4))
    with ThreadPoolExecutor(1) as beside:
        storms = live._Storms(tmp_path, unwatched)
        (tmp_path / "run").mkdir()
        judging = storms.judged_beside(task, live.RunDirectory(tmp_path / "run"), 0.0)
        row = beside.submit(judging).result()
    assert row["verdict"] == "unknown"
    assert "scenario.json" in row["words"]
