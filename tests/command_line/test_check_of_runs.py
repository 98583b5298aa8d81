"""A run directory is judged as its scenario says, and as nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command_line.answers import Stormproof

IN_PROCESS = ("--engine", "inprocess")


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "register"),
        ("--model", "cas-register", "--initial", "0"),
        ("--model", "cas-register", "--failed-cas", "answer"),
        ("--model", "cas-register", "--certify", "orders"),
        ("--workload", "log"),
        ("--workload", "bank", "--set", "total=3"),
        ("--workload", "list-append", "--consistency-model", "serializable"),
        ("--workload", "rw-register", "--assume", "wfr-keys", "--assume", "sequential-keys"),
    ],
    ids=lambda options: " ".join(options),
)
def test_options_for_histories_are_refused_for_a_run_by_name(
    stormproof: Stormproof, stored_run: Path, options: tuple[str, ...]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in stored_run.iterdir()}
    answer = stormproof("check", stored_run, *options, *IN_PROCESS)
    assert answer.code == 254
    (line,) = answer.err.splitlines()
    assert line.startswith(f"stormproof: {stored_run} is a run directory, which is judged as its scenario says")
    for name, value in zip(options[::2], options[1::2], strict=True):
        assert f"{name} {value}" in line
    assert line.endswith(f"name the history in it ({stored_run / 'history.parquet'}), which can be judged as any other")
    assert {path: path.stat().st_mtime_ns for path in stored_run.iterdir()} == before
    assert not Path("orders").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--initial", "0"), "--initial is for --model, not for --workload or a run"),
        (("--failed-cas", "answer"), "--failed-cas is for --model, not for --workload or a run"),
        (("--set", "total=3"), "--set is for --workload, not for --model or a run"),
        (("--consistency-model", "serializable"), "name the history in it"),
        (("--assume", "wfr-keys"), "name the history in it"),
        (("--certify", "orders"), "--certify is for a single history with --model, or --workload list-append or rw"),
    ],
)
def test_an_option_that_needs_another_is_refused_for_a_run_too(
    stormproof: Stormproof, stored_run: Path, options: tuple[str, ...], words: str
) -> None:
    answer = stormproof("check", stored_run, *options, *IN_PROCESS)
    assert answer.code == 254
    (line,) = answer.err.splitlines()
    assert words in line


def test_the_history_in_a_run_beside_it_is_judged_all_the_same(stormproof: Stormproof, stored_run: Path) -> None:
    history = stored_run / "history.parquet"
    answer = stormproof("check", stored_run, history, "--workload", "log", "--json", *IN_PROCESS)
    run, judged = (json.loads(line) for line in answer.out.splitlines())
    assert (run["verdict"], run["exit_code"]) == (None, 254)
    assert "--workload log does not apply" in run["error"]
    assert (judged["verdict"], judged["exit_code"]) == ("valid", 0)


def test_a_run_with_a_fault_that_was_not_healed_is_unknown(
    stormproof: Stormproof, stored_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(stored_run, tmp_path / "run"))
    lines = (run / "nemesis.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    struck = [row for row in rows if row["phase"] == "start" and row["happened"]]
    last = struck[-1]
    own_stop = next(r for r in rows if r["phase"] == "stop" and r["number"] == last["number"])
    without = [row for row in rows if row is not own_stop]
    for changed, ending in (
        (without, "it was never stopped"),
        (
            [*without, own_stop | {"happened": False, "evidence": "boot: nothing"}],
            "its stop had no effect: boot: nothing",
        ),
    ):
        (run / "nemesis.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
        for more in ((), ("--accept-vacuous",)):
            answer = stormproof("check", run, *IN_PROCESS, *more, "--json")
            assert (answer.code, answer.json["verdict"]) == (2, "unknown")
            words = f"1 of {len(struck)} faults were not healed: {last['shape']} ({ending})"
            assert answer.json["reasons"] == [words]


SCENARIO_OF_FORMAT_1 = """{
  "system": "rocketmq", "workload": "log", "nemesis": ["kill"], "environment": "simulated", "settings": {},
  "mutant": null, "concurrency": 10, "rate": 100.0, "time_limit_s": 60.0, "recovery_s": 20.0, "liveness_s": 0.0,
  "max_outage_s": 0.0, "seed": 7, "versions": {"stormproof": "0.1.0"}, "replay": "stormproof run rocketmq --seed 7",
  "regime": {"latency_ms": 0.3}, "trace_hash": "4f0c", "trace_events": 17, "reached": {},
  "facts": {"reasons": ["no room"], "panics": {}, "storm_from_ns": 5, "final_from_ns": null, "complete": false}
}"""
FAULTS_OF_FORMAT_1 = """\
{"time": 10, "type": "info", "f": "start-kill", "kind": "kill", "phase": "start", "package": "kill", "number": 1, \
"shape": "kill one of all", "targets": ["b1"], "fault": {"kind": "kill", "nodes": ["b1"]}, "happened": true, \
"evidence": "b1 is gone"}
{"time": 30, "type": "info", "f": "stop-kill", "kind": "kill", "phase": "stop", "package": "kill", "number": 1, \
"shape": "kill one of all", "targets": ["b1"], "fault": {"kind": "kill", "nodes": ["b1"]}, "happened": true, \
"evidence": "b1 runs"}
"""


def test_a_run_directory_of_the_first_format_is_read_as_it_was_written(stormproof: Stormproof, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "scenario.json").write_text(SCENARIO_OF_FORMAT_1)
    (run / "nemesis.jsonl").write_text(FAULTS_OF_FORMAT_1)
    answer = stormproof("check", run, "--json", *IN_PROCESS)
    assert (answer.code, answer.json["reasons"]) == (2, ["the run was cut short before it began", "no room"])
    verdict = json.loads((run / "verdict.json").read_text())
    assert verdict["faults"] == {"kill": {"applied": 1, "with_effect": 1}}
    assert verdict["versions"] == {"stormproof": "0.1.0"}
    page = (run / "report.html").read_text()
    assert "kill one of all" in page
    assert "b1 is gone" in page
    assert "stormproof run rocketmq --seed 7" in page


def test_a_run_directory_of_the_first_format_gets_the_same_verdict(
    stormproof: Stormproof, stored_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(stored_run, tmp_path / "run"))
    record = json.loads((run / "scenario.json").read_text())
    del record["format"]
    (run / "scenario.json").write_text(json.dumps({**record.pop("scenario"), **record}))
    for name in ("verdict.json", "report.html", "junit.xml", "node-events.parquet"):
        (run / name).unlink(missing_ok=True)
    before = stormproof("check", stored_run, "--json", *IN_PROCESS)
    old = stormproof("check", run, "--json", *IN_PROCESS)
    assert old.code == before.code == 0
    assert {**old.json, "directory": "", "seconds": 0, "path": ""} == {
        **before.json,
        "directory": "",
        "seconds": 0,
        "path": "",
    }


def test_a_run_directory_of_a_later_format_is_refused_by_name(
    stormproof: Stormproof, stored_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(stored_run, tmp_path / "run"))
    record = json.loads((run / "scenario.json").read_text())
    (run / "scenario.json").write_text(json.dumps(record | {"format": 3}))
    for command in ("check", "replay"):
        answer = stormproof(command, run, *IN_PROCESS)
        assert answer.code == 254
        (line,) = answer.err.splitlines()
        assert f"{run / 'scenario.json'}: format 3 is not known here, only formats up to 2" in line
        assert "check this run with the version of stormproof that wrote it" in line
