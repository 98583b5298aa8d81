"""Storms of a search in real time: what is drawn for them, and what becomes of those that cannot be carried out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.progress import Moment, unwatched
from harness.record.scenario import DRAWN
from stormproof.search import live
from stormproof.search.sampling import drawn_storm
from stormproof.search.search import Search
from stormproof.search.space import LIVE, Space
from stormproof.search.trial import RANDOM, Task
from stormproof.session import registry

SPACE = Space(system="rocketmq", settings={}, environment="docker")


def test_they_wait_for_no_points_and_ask_for_no_world() -> None:
    storms = [drawn_storm(SPACE, 3, number) for number in range(40)]
    assert {storm.world for storm in storms} == {DRAWN}
    assert all(LIVE.shortest_s <= storm.time_limit_s - storm.liveness_s <= LIVE.longest_s for storm in storms)
    for storm in storms:
        parts = registry.resolve(storm)
        registry.environment_of(storm, parts)
        assert all(registry.can_apply("docker", package) for package in parts.packages)
        assert not any(re.search(" (when|after) ", line) for line in storm.schedule), storm.schedule


def test_each_is_kept_as_soon_as_it_is_judged() -> None:
    search = Search(space=SPACE, root=3, numbers=range(3), is_guided=False)
    assert list(search.rounds()) == [range(1), range(1, 2), range(2, 3)]
    assert search.name == "rocketmq-docker-3"
    assert search.words() == "rocketmq in docker, random, root seed 3"


PLAY = """
import json, pathlib, sys, time
runs = pathlib.Path(sys.argv[sys.argv.index("--runs") + 1])
kept = runs / "scenario" / "1"
kept.mkdir(parents=True)
(kept / "scenario.json").write_text("{}")
(runs / "begun").touch()
say = lambda line: print(line, file=sys.stderr, flush=True)
say("    0.1 s  storm of 1 s")
"""
CALM = 'say("    1.0 s  calm")\n'
UNTIL_TOLD = """
while not (runs / "go").exists():
    time.sleep(0.01)
"""
INVALID = 'print(json.dumps({"verdict": "invalid", "anomalies": {"lost": 2}, "reasons": ["lost: 2 found"]}))\n'


def a_task(number: int) -> Task:
    return Task(number=number, origin=RANDOM, scenario=drawn_storm(SPACE, 3, number))


def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *parts: str) -> None:
    """Storms are this program from now on."""
    program = tmp_path / "play.py"
    program.write_text("".join(parts), encoding="utf-8")
    monkeypatch.setattr(live, "PROGRAM", (sys.executable, str(program)))


def test_storms_that_are_refused_are_unknown_and_several_in_a_row_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise UsageError("no engine answers")

    monkeypatch.setattr(live.registry, "environment_of", refuses)
    with live.trying(tmp_path, unwatched) as trier:
        for number in range(live.MOST_FAILURES - 1):
            (row,) = trier([a_task(number)]).result().to_pylist()
            assert row["verdict"] == "unknown"
            assert "no engine answers" in row["words"]
        with pytest.raises(HarnessError, match=r"3 storms in a row.*no engine answers"):
            trier([a_task(3)])


def test_storms_that_end_before_their_calm_are_unknown_and_several_in_a_row_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, tmp_path, PLAY, 'say("stormproof: b1 ended by itself")\nsys.exit(255)\n')
    with live.trying(tmp_path / "runs", unwatched) as trier:
        (row,) = trier([a_task(0)]).result().to_pylist()
        assert (row["verdict"], "b1 ended by itself" in row["words"]) == ("unknown", True)
        trier([a_task(1)])
        with pytest.raises(HarnessError, match=r"3 storms in a row.*b1 ended by itself"):
            trier([a_task(2)])


def test_the_next_begins_while_the_last_is_in_its_calm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, tmp_path, PLAY, CALM, UNTIL_TOLD, INVALID)
    runs = tmp_path / "runs"
    seen: list[object] = []
    with live.trying(runs, seen.append) as trier:
        first = trier([a_task(0)])
        second = trier([a_task(1)])
        assert (runs / "00001" / "begun").exists()
        assert not first.done()
        for number in (0, 1):
            (runs / f"{number:05}" / "go").touch()
        rows = [first.result().to_pylist()[0], second.result().to_pylist()[0]]
    assert [(row["number"], row["verdict"], row["anomalies"]) for row in rows] == [
        (0, "invalid", ["lost"]),
        (1, "invalid", ["lost"]),
    ]
    assert rows[0]["words"] == "lost × 2; lost: 2 found"
    assert Moment("storm of 1 s") in seen
    assert live.runs_of(runs, 0), "what is not valid is kept"


def test_what_was_valid_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, tmp_path, PLAY, CALM, INVALID.replace("invalid", "valid").replace('"lost": 2', ""))
    with live.trying(tmp_path / "runs", unwatched) as trier:
        (row,) = trier([a_task(0)]).result().to_pylist()
    assert row["verdict"] == "valid"
    assert not (tmp_path / "runs" / "00000").exists()


def test_a_storm_that_breaks_down_in_its_calm_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, tmp_path, PLAY, CALM, UNTIL_TOLD, 'say("stormproof: the disk is full")\nsys.exit(255)\n')
    runs = tmp_path / "runs"
    with live.trying(runs, unwatched) as trier:
        row = trier([a_task(0)])
        (runs / "00000" / "go").touch()
        assert "the disk is full" in row.result().to_pylist()[0]["words"]


def test_storms_that_have_ended_hold_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, tmp_path, PLAY, CALM, INVALID)
    held = []
    with live.trying(tmp_path / "runs", unwatched) as trier:
        for number in range(4):
            trier([a_task(number)]).result()
            held.append(len(list(Path("/proc/self/fd").iterdir())))
    assert held[1:] == [held[1]] * 3


def test_a_search_that_ends_ends_its_storms_by_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = """
import signal
signal.signal(signal.SIGTERM, lambda *_: ((runs / "tidied").touch(), sys.exit(143)))
"""
    played(monkeypatch, tmp_path, PLAY, told, CALM, UNTIL_TOLD)
    with live.trying(tmp_path / "runs", unwatched) as trier:
        trier([a_task(0)])
    assert (tmp_path / "runs" / "00000" / "tidied").exists()


def test_a_storm_with_a_schedule_reads_it_from_a_file(tmp_path: Path) -> None:
    task = a_task(0)
    assert task.scenario.schedule
    command = live._command(task, tmp_path)
    assert command[:3] == ["stormproof", "run", "rocketmq"]
    assert command[command.index("--schedule") + 1] == str(tmp_path / "schedule.txt")
    assert (tmp_path / "schedule.txt").read_text(encoding="utf-8").count("\n") >= len(task.scenario.schedule)
