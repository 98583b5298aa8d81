"""PySyncObj in containers, from the example's package: its log is linearizable, what a node has by itself is not."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest

from tests.command_line.installation import ROOT, environment_with, installed_from

PROJECT = ROOT / "examples" / "pysyncobj"


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the example by its name."""
    monkeypatch.syspath_prepend(str(PROJECT))
    return lambda name: importlib.import_module(f"pysyncobj_trial.{name}")


def after_a_storm(folder: Path, nemesis: str, time_limit_s: int, **settings: str) -> dict[str, Any]:
    installed_from(PROJECT, folder / "site")
    storm = ["run", "pysyncobj", "--environment", "docker", "--workload", "register", "--nemesis", nemesis]
    options = ["--time-limit", str(time_limit_s), "--recovery", "5", "--seed", "1", "--engine", "inprocess", "--json"]
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    ran = subprocess.run(
        [sys.executable, "-m", "stormproof.cli.main", *storm, *options, *given],
        cwd=folder,
        env=environment_with(folder / "site", PROJECT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    assert ran.returncode == answer["exit_code"]
    return answer


@pytest.mark.docker
@pytest.mark.thorough
def test_reads_of_what_a_node_has_are_stale_in_a_healthy_cluster(tmp_path: Path) -> None:
    answer = after_a_storm(tmp_path, "none", 10, reads="here")
    assert (answer["verdict"], set(answer["anomalies"]["linearizable"])) == ("invalid", {"nonlinearizable"})


@pytest.mark.docker
@pytest.mark.thorough
def test_what_has_a_place_in_the_log_is_linearizable_under_partitions_and_kills(tmp_path: Path) -> None:
    answer = after_a_storm(tmp_path, "partition,kill", 30)
    assert answer["verdict"] == "valid", answer
    assert all(count["with_effect"] for count in answer["faults"].values())


@pytest.mark.docker
@pytest.mark.thorough
def test_without_files_kills_lose_what_was_acknowledged(tmp_path: Path) -> None:
    answer = after_a_storm(tmp_path, "kill all every 10 for 2", 15, keep="nothing")
    assert (answer["verdict"], set(answer["anomalies"]["linearizable"])) == ("invalid", {"nonlinearizable"})


def test_nodes_run_the_library_byte_for_byte(trial: Any) -> None:
    written = trial("nodes").node("n1", reads="log", options={}).program.files
    modules = {str(path): path for path in files("pysyncobj") or () if path.suffix == ".py"}
    assert {"pysyncobj/syncobj.py", "pysyncobj/journal.py"} <= set(modules)
    for name, path in modules.items():
        assert written[f"${{home}}/trial/{name}"].replace("$${", "${").encode() == path.read_binary(), name


def test_only_what_was_never_sent_or_was_replaced_is_definite(trial: Any) -> None:
    code_of = trial("errors").code_of
    definite = {"QUEUE_FULL", "MISSING_LEADER", "DISCARDED"}
    reasons = set(trial("serve").REASONS.values()) - {"SUCCESS"}
    assert definite < reasons
    assert {reason for reason in reasons if code_of(reason).definite} == definite
    assert not code_of("Timeout").definite
    assert not trial("errors").code_of_silence(TimeoutError()).definite


class Registers:
    """As PySyncObj would answer: with what it was told to, or with its exception."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        def method(*arguments: Any, **options: Any) -> Any:
            if isinstance(self.answer, Exception):
                raise self.answer
            return [name, *arguments] if self.answer is None else self.answer

        return method


@pytest.mark.parametrize(
    ("request_", "reads", "result", "answer"),
    [
        ({"f": "read", "key": "r1"}, "here", None, {"value": ["read_here", "r1"]}),
        ({"f": "read", "key": "r1"}, "log", None, {"value": ["read_in_order", "r1"]}),
        ({"f": "cas", "key": "r1", "expected": 1, "value": 2}, "log", False, {"done": False}),
        ({"f": "write", "key": "r1", "value": 2}, "log", 5, {"error": "LEADER_CHANGED"}),
        ({"f": "write", "key": "r1", "value": 2}, "log", "Timeout", {"error": "Timeout"}),
    ],
)
def test_a_node_answers_with_the_librarys_own_reason(
    trial: Any, request_: dict[str, Any], reads: str, result: Any, answer: dict[str, Any]
) -> None:
    serve = trial("serve")
    failed = serve.SyncObjException(result) if result in (5, "Timeout") else result
    assert serve.answer(Registers(failed), reads, request_) == answer
