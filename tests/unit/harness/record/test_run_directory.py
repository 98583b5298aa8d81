"""A run's directory: found by name, never written over, its files whole or absent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.record.run_directory import RunDirectory

START = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)


def test_a_run_lives_under_its_scenario_start_and_seed(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "runs", "rocketmq-log", 1729, start=START)
    assert run.path == tmp_path / "runs" / "rocketmq-log" / "20310504T030201-1729"
    assert run.nodes.is_dir()
    assert run.history_stream.parent == run.history.parent == run.path


def test_latest_points_at_the_newest_run_and_moves_with_the_whole_folder(tmp_path: Path) -> None:
    base = tmp_path / "runs"
    RunDirectory.create(base, "a", 1, start=START)
    newest = RunDirectory.create(base, "b", 2, start=START)
    assert (base / "latest").resolve() == newest.path
    base.rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "latest" / "nodes").is_dir()
    assert sorted(path.name for path in (tmp_path / "moved").iterdir()) == ["a", "b", "latest"]


def test_runs_of_the_same_second_and_seed_do_not_share_a_directory(tmp_path: Path) -> None:
    first = RunDirectory.create(tmp_path, "a", 1, start=START)
    first.write_json("scenario.json", {"seed": 1})
    second = RunDirectory.create(tmp_path, "a", 1, start=START)
    assert second.path.name == "20310504T030201-1-2"
    assert not second.scenario.exists()


def test_json_is_replaced_as_a_whole(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "a", 1)
    run.write_json("scenario.json", {"name": "größer"})
    with pytest.raises(TypeError):
        run.write_json("scenario.json", {"name": object()})
    assert json.loads(run.scenario.read_text(encoding="utf-8")) == {"name": "größer"}


def test_json_that_cannot_be_written_is_an_error_of_the_harness(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "a", 1)
    run.verdict.mkdir()
    with pytest.raises(HarnessError, match=r"cannot write .*verdict\.json: Is a directory"):
        run.write_json("verdict.json", {})


def test_a_place_where_no_directory_can_be_made_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(UsageError, match=r"cannot make a run directory in .*--runs"):
        RunDirectory.create(tmp_path / "runs", "a", 1)


def test_a_latest_that_is_no_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        RunDirectory.create(tmp_path, "a", 1)
    assert (tmp_path / "latest").is_dir()


@pytest.mark.parametrize("name", ["", "..", "a/b", "../a", ".hidden", "latest", "a b"])
def test_a_scenario_whose_name_is_no_folder_is_wrong_usage(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a scenario"):
        RunDirectory.create(tmp_path, name, 1)
    assert list(tmp_path.iterdir()) == []
