"""What a user sees: one line for each mistake, the seed first, the verdict as exit code, the replay line last."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from checkers.api.verdict import Verdict
from checkers.search_budget import Effort, Searches
from harness.errors import HarnessError
from harness.record.history import MalformedHistory
from harness.record.run_directory import RunDirectory
from harness.record.run_record import RunRecord, write_run_record
from harness.record.scenario import Scenario
from stormproof.cli import checking, main, replay, run, suite
from stormproof.session import engines
from stormproof.session import run as session_run
from tests.unit.stormproof.cli.fake_pipeline import FakePipeline, outcome

Stormproof = Callable[..., int]


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> FakePipeline:
    fake = FakePipeline()
    for module in (session_run, suite):
        monkeypatch.setattr(module, "run_scenario", fake.run_scenario)
    monkeypatch.setattr(engines, "require_java", lambda: None)
    monkeypatch.setenv("STORMPROOF_DEBUG", "")  # so that what --debug sets is taken back afterwards
    monkeypatch.delenv("STORMPROOF_DEBUG")
    return fake


@pytest.fixture
def stormproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stormproof:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: main.run(arguments)


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.VALID, 0), (Verdict.INVALID, 1), (Verdict.UNKNOWN, 2)])
def test_the_verdict_is_the_exit_code(
    stormproof: Stormproof, pipeline: FakePipeline, verdict: Verdict, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = verdict
    assert stormproof("run", "rocketmq", "--seed", "7") == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed      7"
    assert f"verdict   {verdict.value.upper()}" in lines
    replayed = lines[-1].startswith("replay    stormproof run rocketmq")
    assert replayed is (verdict is not Verdict.VALID)


def test_an_anomaly_is_printed_in_words(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = Verdict.INVALID
    stormproof("run", "rocketmq", "--seed", "7")
    out = capsys.readouterr().out
    assert "log: lost-write × 2" in out
    assert "message 7 was acknowledged and never read" in out


def test_the_replay_line_runs_the_same_scenario_again(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = Verdict.UNKNOWN
    options = "--workload register --nemesis partition,clock --nodes 5 --concurrency 4 --rate 33.5 --time-limit 12"
    options += " --seed 7 --mutant flush-lie --set flush=async --set all_ack=false"
    stormproof("run", "rocketmq", *options.split())
    line = capsys.readouterr().out.splitlines()[-1].removeprefix("replay    stormproof ")
    stormproof(*shlex.split(line))
    first, second = pipeline.asked
    assert first == second
    assert first.settings == {"brokers": 5, "flush": "async", "all_ack": False}


def test_a_seed_that_is_not_given_is_drawn_and_printed(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    stormproof("run", "rocketmq")
    assert capsys.readouterr().out.splitlines()[0] == f"seed      {pipeline.asked[0].seed}"


def test_how_far_searches_go_is_said_of_a_run_as_of_a_history(stormproof: Stormproof, pipeline: FakePipeline) -> None:
    stormproof("run", "rocketmq")
    stormproof("run", "rocketmq", "--give-up-after", "3", "--all-findings")
    assert pipeline.efforts == [Effort(), Effort(give_up_after_s=3.0, searches=Searches.ALL)]


def test_json_is_one_object_and_nothing_else_on_standard_output(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = Verdict.INVALID
    assert stormproof("run", "rocketmq", "--seed", "7", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["verdict"], data["exit_code"], data["seed"]) == ("invalid", 1, 7)
    assert data["anomalies"] == {"log": {"lost-write": 2}}


def test_progress_is_shown_when_asked_for_and_only_on_standard_error(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    stormproof("run", "rocketmq", "--seed", "7")
    assert "the storm begins" not in "".join(capsys.readouterr())
    stormproof("run", "rocketmq", "--seed", "7", "--progress")
    out, err = capsys.readouterr()
    assert "the storm begins" in err
    assert "the storm begins" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "Missing argument 'SYSTEM'"),
        (["run", "kafka"], "unknown system 'kafka'; known are: "),
        (["run", "rocketmq", "--nemesis", "meteor"], "unknown nemesis 'meteor'"),
        (["run", "rocketmq", "--nemesis", "kill,kill"], "nemesis kill is named twice"),
        (["run", "rocketmq", "--workload", "chat"], "unknown workload 'chat'"),
        (["run", "rocketmq", "--environment", "moon"], "unknown environment 'moon'"),
        (["run", "rocketmq", "--mutant", "nice"], "unknown mutant 'nice'"),
        (["run", "rocketmq", "--set", "colour=red"], "unknown setting 'colour'"),
        (["run", "rocketmq", "--set", "flush"], "a setting reads key=value"),
        (["run", "rocketmq", "--set", "flush=sync", "--set", "flush=async"], "flush is given twice"),
        (["run", "rocketmq", "--rate", "-1"], "rate takes a number from 0 to 100000, got -1"),
        (["run", "rocketmq", "--rate", "nan"], "rate takes a number from 0 to 100000, got nan"),
        (["run", "rocketmq", "--time-limit", "inf"], "time_limit_s takes a number from 0 to 604800, got inf"),
        (["run", "rocketmq", "--rate", "fast"], "'fast' is not a valid float"),
        (["run", "rocketmq", "--seed", "-3"], "-3 is not in the range"),
        (["run", "rocketmq", "--no-such-option"], "No such option"),
        (["fly"], "unknown command 'fly'; known are: run, suite, "),
        (["suite", "weekly"], "no suite file weekly"),
        (["check", "nowhere"], "nowhere is no run directory and no history"),
        (["check", "history.parquet"], "there is no history history.parquet"),
        (["check", "history.parquet", "--workload", "log"], "there is no history history.parquet"),
        (["check"], "Missing argument 'PATH…'"),
        (["replay", "nowhere"], "is not a run directory"),
    ],
)
def test_wrong_usage_is_254_with_words_that_help_and_no_traceback(
    stormproof: Stormproof, pipeline: FakePipeline, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stormproof(*arguments) == 254
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert pipeline.asked == []


def test_a_failed_harness_is_255_with_one_line(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = HarnessError("no Docker engine answers; start one, or use --environment simulated")
    assert stormproof("run", "rocketmq", "--seed", "7") == 255
    err = capsys.readouterr().err
    assert err == "stormproof: no Docker engine answers; start one, or use --environment simulated\n"


def test_a_bug_in_the_harness_is_255_and_debug_shows_where(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = ZeroDivisionError("division by zero")
    assert stormproof("run", "rocketmq", "--seed", "7") == 255
    err = capsys.readouterr().err
    assert "the harness failed: ZeroDivisionError: division by zero" in err
    assert "Traceback" not in err
    assert stormproof("--debug", "run", "rocketmq", "--seed", "7", "--runs", "again") == 255
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupted_command_is_255_with_one_line(
    stormproof: Stormproof, pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = KeyboardInterrupt()
    assert stormproof("run", "rocketmq", "--seed", "7") == 255
    err = capsys.readouterr().err
    assert err == "stormproof: interrupted: no verdict was reached\n"


SUITE = '[defaults]\nsystem = "rocketmq"\nworkload = "log"\nseeds = [1, 2, 3, 4]\n'


def test_a_suite_gives_one_verdict_for_all_and_a_test_case_for_each(
    stormproof: Stormproof, pipeline: FakePipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(SUITE)
    pipeline.answers |= {2: Verdict.UNKNOWN, 3: HarnessError("no room"), 4: Verdict.INVALID}
    assert stormproof("suite", "mine.toml", "--junit", "out/junit.xml") == 1
    element = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()[0]
    assert element.get("name") == "mine"
    problems = [[(child.tag, child.get("type")) for child in case if child.tag != "properties"] for case in element]
    assert problems == [[], [("failure", "unknown")], [("error", "harness-failed")], [("failure", "invalid")]]
    out = capsys.readouterr().out
    assert "verdict   INVALID: 1 valid, 1 unknown, 1 harness failed, 1 invalid" in out
    assert "no room" in out


EXPECTING = """
[defaults]
system = "rocketmq"
workload = "log"
[[matrix]]
seeds = [1, 2, 3]
expect = "invalid"
because = "brokers lie"
[[matrix]]
seeds = [4]
expect = "invalid"
because = "brokers lie"
anomalies = ["stale"]
[[matrix]]
seeds = [5]
expect = "valid"
because = "brokers are honest"
"""


def test_what_comes_out_as_expected_is_fine_and_told_with_its_reason(
    stormproof: Stormproof, pipeline: FakePipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(EXPECTING)
    pipeline.answers |= {seed: Verdict.INVALID for seed in (1, 2, 3)}
    (tmp_path / "three.toml").write_text(
        EXPECTING.replace("seeds = [4]", "seeds = []").partition("[[matrix]]\nseeds = []")[0]
    )
    assert stormproof("suite", "three.toml", "--junit", "junit.xml") == 0
    out = capsys.readouterr().out
    assert out.count("INVALID as expected: because brokers lie") == 3
    assert "verdict   VALID: 3 invalid as expected" in out
    assert "replay" not in out
    cases = list(ElementTree.parse(tmp_path / "junit.xml").getroot()[0])
    assert [child.tag for case in cases for child in case] == ["properties"] * 3
    notes = {note.get("name"): note.get("value") for note in cases[0][0]}
    assert (notes["verdict"], notes["expected"], notes["because"]) == ("invalid", "invalid", "brokers lie")


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        ({}, 2, "VALID, where INVALID was expected because brokers lie"),
        ({1: Verdict.UNKNOWN}, 2, "UNKNOWN, where INVALID was expected because brokers lie"),
        ({4: Verdict.INVALID}, 1, "INVALID with lost-write, where no anomaly but stale was expected because brokers"),
        ({5: Verdict.INVALID}, 1, "INVALID, where VALID was expected because brokers are honest"),
        ({5: Verdict.UNKNOWN}, 2, "UNKNOWN, where VALID was expected because brokers are honest"),
        ({5: HarnessError("no room")}, 255, "no room"),
    ],
)
def test_what_comes_out_otherwise_is_a_finding_and_never_0(
    stormproof: Stormproof,
    pipeline: FakePipeline,
    tmp_path: Path,
    answers: dict[int, Verdict | BaseException],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "mine.toml").write_text(EXPECTING)
    pipeline.answers |= answers
    assert stormproof("suite", "mine.toml", "--junit", "junit.xml", "--json") == code
    answer = json.loads(capsys.readouterr().out)
    seed = next(iter(answers), 1)
    case = ElementTree.parse(tmp_path / "junit.xml").getroot()[0][seed - 1]
    (problem,) = (child for child in case if child.tag != "properties")
    assert words in (problem.text or "")
    scenario = answer["scenarios"][seed - 1]
    failed = code == 255
    assert (scenario["as_expected"], scenario["exit_code"]) == (None if failed else False, code)
    assert scenario["expected"]["because"].startswith("brokers")


def test_an_inventory_goes_to_the_scenarios_that_run_on_machines(
    stormproof: Stormproof, pipeline: FakePipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = "".join(f'[hosts.m{n}]\naddress = "127.0.0.{n}"\nagent = true\ngroups = ["all"]\n' for n in range(1, 7))
    (tmp_path / "hosts.toml").write_text(hosts)
    suite = '[defaults]\nsystem = "rocketmq"\nworkload = "log"\n[[matrix]]\nenvironment = ["ssh", "docker"]\n'
    (tmp_path / "mine.toml").write_text(suite)
    assert stormproof("suite", "mine.toml") == 254
    assert "mine.toml: environment 'ssh' needs machines: say --inventory" in capsys.readouterr().err
    assert stormproof("suite", "mine.toml", "--inventory", "hosts.toml", "--jobs", "2") == 254
    assert "machines are used by one run at a time, got --jobs 2" in capsys.readouterr().err
    assert pipeline.asked == []
    assert stormproof("suite", "mine.toml", "--inventory", "hosts.toml") == 0
    assert [scenario.inventory for scenario in pipeline.asked] == ["hosts.toml", ""]


def test_a_system_whose_client_is_not_installed_is_refused_in_one_line(
    stormproof: Stormproof,
    pipeline: FakePipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "mine.toml").write_text('[defaults]\nsystem = "redis"\nworkload = "set"\nenvironment = "docker"\n')
    monkeypatch.setitem(sys.modules, "workloads.systems.redis.adapter", None)
    monkeypatch.delitem(sys.modules, "workloads.systems.redis", raising=False)
    assert stormproof("suite", "mine.toml") == 254
    said = capsys.readouterr().err
    assert said.startswith(
        "stormproof: mine.toml: system redis needs the Python module workloads.systems.redis.adapter"
    )
    assert said.count("\n") == 1
    assert pipeline.asked == []


def test_in_a_suite_a_failed_harness_outranks_unknown(
    stormproof: Stormproof, pipeline: FakePipeline, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(SUITE)
    pipeline.answers |= {2: Verdict.UNKNOWN, 3: HarnessError("no room")}
    assert stormproof("suite", "mine.toml") == 255


def test_a_suite_with_an_unknown_name_runs_nothing_and_names_the_file(
    stormproof: Stormproof, pipeline: FakePipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(SUITE.replace('"log"', '["log", "chat"]'))
    assert stormproof("suite", "mine.toml") == 254
    assert "mine.toml: unknown workload 'chat'" in capsys.readouterr().err
    assert pipeline.asked == []


def stored(tmp_path: Path, trace_hash: str | None) -> Path:
    directory = tmp_path / "stored"
    directory.mkdir()
    reported = {} if trace_hash is None else {"trace_hash": trace_hash}
    record = RunRecord(scenario=Scenario(system="rocketmq", workload="log", seed=7), environment=reported)
    write_run_record(RunDirectory(directory), record)
    return directory


def test_a_replay_with_the_same_trace_has_the_verdicts_code(
    stormproof: Stormproof, pipeline: FakePipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.answers[7] = Verdict.INVALID
    assert stormproof("replay", str(stored(tmp_path, "abc"))) == 1
    assert "the same, event for event (trace abc)" in capsys.readouterr().out


def test_a_replay_that_differs_names_the_first_difference_and_is_255(
    stormproof: Stormproof,
    pipeline: FakePipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(replay, "recorded_difference", lambda directory: "event 17 at 3 ns: b1 send (broker/ack.py:12)")
    assert stormproof("replay", str(stored(tmp_path, "other"))) == 255
    out = capsys.readouterr().out
    assert "NOT DETERMINISTIC" in out
    assert "broker/ack.py:12" in out


def test_a_replay_after_the_code_changed_keeps_the_verdicts_code(
    stormproof: Stormproof,
    pipeline: FakePipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(replay, "recorded_difference", lambda directory: None)
    assert stormproof("replay", str(stored(tmp_path, "other"))) == 0
    assert "changed since" in capsys.readouterr().out


def test_several_checks_go_on_after_a_malformed_history_and_invalid_outranks_it(
    stormproof: Stormproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario(system="rocketmq", workload="log")

    def check_run(directory: Path, **_: object) -> object:
        if directory.name == "malformed":
            raise MalformedHistory(17, "a completion without an invocation")
        return outcome(scenario, directory, Verdict.INVALID if directory.name == "invalid" else Verdict.VALID)

    monkeypatch.setattr(checking, "check_run", check_run)
    for name in ("malformed", "invalid", "valid"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scenario.json").touch()
    assert stormproof("check", "malformed", "valid", "--engine", "inprocess") == 254
    assert "row 17: a completion without an invocation" in capsys.readouterr().err
    assert stormproof("check", "malformed", "valid", "invalid", "--engine", "inprocess") == 1


@pytest.mark.parametrize(
    "command", ["run", "suite", "check", "verify", "export", "replay", "list", "doctor", "cleanup", "new"]
)
def test_every_help_ends_with_examples_whose_options_exist(
    stormproof: Stormproof, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stormproof(command, "--help") == 0
    text = capsys.readouterr().out
    examples = [line.strip() for line in text.split("Examples:")[1].strip().splitlines()]
    assert examples
    loaded = main.group.get_command(None, command)  # type: ignore[arg-type]
    assert loaded is not None
    for line in examples:
        words = shlex.split(line)
        assert words[:2] == ["stormproof", command]
        loaded.make_context(command, words[2:]).close()


def test_the_examples_of_run_name_what_there_is(stormproof: Stormproof, pipeline: FakePipeline) -> None:
    examples = [line for line in run.EXAMPLES.strip().splitlines()]
    for line in examples:
        assert stormproof(*shlex.split(line)[1:]) == 0, line
    assert len(pipeline.asked) == len(examples)


def test_list_names_what_can_be_run_and_doctor_always_exits_with_0(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stormproof("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"redis", "rocketmq"} <= {entry["name"] for entry in listed["systems"]}
    assert {"partition", "kill", "pause", "clock", "power"} <= {entry["name"] for entry in listed["nemeses"]}
    assert {"nightly", "smoke", "soak"} <= {entry["name"] for entry in listed["suites"]}
    assert all(entry["breaks"] for entry in listed["mutants"])
    assert {"flush-lie", "dispatch-to-max"} <= {entry["name"] for entry in listed["mutants"]}
    assert "shapes" not in listed
    assert stormproof("list", "checks", "--json") == 0
    checks = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["checks"]}
    assert "out-of-order" in checks["queue"]["anomalies"]
    assert checks["queue"]["settings"]["order"] == "one of none, producer, key"
    assert stormproof("list", "shapes", "--json") == 0
    shapes = json.loads(capsys.readouterr().out)["shapes"]
    assert {"name": "isolate PART", "fault": "partition"} in shapes
    assert stormproof("list", "points", "rocketmq", "--json") == 0
    points = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["points"]}
    assert points["alter-proposed"]["system"] == "rocketmq"
    assert "is about to send its proposal" in points["alter-proposed"]["about"]
    assert len(points) > 60
    assert stormproof("list", "invariants", "rocketmq", "--json") == 0
    invariants = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["invariants"]}
    assert invariants["torn-log"]["about"] == "A log that ends within a message was compared with another."
    assert stormproof("list", "settings", "cmq", "--json") == 0
    settings = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["settings"]}
    assert settings["groups"]["values"] == "1 to 16" and settings["groups"]["default"] == 3
    assert settings["strict"]["about"] == "Judge as if nothing could be lost"
    assert all(entry["about"] for entry in settings.values())
    assert stormproof("doctor", "--json") == 0
    findings = json.loads(capsys.readouterr().out)
    assert list(findings) == ["java", "spark", "docker", "libfaketime", "iptables", "netem", "fuse", "maven"]
    assert all(finding["makes_possible"] for finding in findings.values())


def test_past_runs_are_listed_newest_first_and_those_cut_short_as_such(
    stormproof: Stormproof, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, verdict in (("20260101T000000-1", "valid"), ("20260102T000000-2", None)):
        directory = tmp_path / "runs" / "rocketmq-log" / name
        directory.mkdir(parents=True)
        (directory / "scenario.json").write_text(json.dumps({"seed": int(name[-1])}))
        if verdict:
            (directory / "verdict.json").write_text(json.dumps({"verdict": verdict}))
    assert stormproof("list", "runs") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split("  ")[1].strip() for line in lines] == ["cut short", "valid"]
