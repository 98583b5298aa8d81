"""A model of one's own, judged, certified and verified as those that come with Stormproof are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkers.spark.java import JavaMissing, require_java
from tests.command_line.answers import Stormproof

CHECKOUT = Path(__file__).parents[2]
TICKETS = CHECKOUT / "examples" / "tickets"
MODEL = ("--model", "tickets:TICKETS", "--engine", "inprocess")


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process, and of the one that verifies."""
    monkeypatch.syspath_prepend(str(TICKETS))
    monkeypatch.setenv("PYTHONPATH", str(TICKETS), prepend=os.pathsep)


def test_it_is_certified_and_verified(stormproof: Stormproof, tmp_path: Path) -> None:
    certificate = tmp_path / "orders.json"
    checked = stormproof("check", TICKETS / "tickets.edn", *MODEL, "--certify", certificate)
    assert checked.code == 0, checked.err
    assert stormproof("verify", certificate).code == 0

    head, order = certificate.read_text().splitlines()
    wrong = json.loads(order)
    wrong["order"].sort()
    certificate.write_text(head + "\n" + json.dumps(wrong) + "\n")
    assert stormproof("verify", certificate, TICKETS / "tickets.edn").code == 3


def test_a_violation_is_explained(stormproof: Stormproof, tmp_path: Path) -> None:
    history = tmp_path / "twice.edn"
    history.write_text(
        (TICKETS / "tickets.edn").read_text().replace("ok, :f :take, :value 2", "ok, :f :take, :value 1")
    )
    checked = stormproof("check", history, *MODEL, "--json")
    assert (checked.code, checked.json["anomalies"]) == (1, {"nonlinearizable": 1})
    verdict = json.loads((Path(checked.json["directory"]) / "verdict.json").read_text())
    [example] = verdict["checkers"]["linearizable"]["anomalies"]["nonlinearizable"]["examples"]
    assert "fits nowhere" in example["because"]


CHECK = """
import sys
sys.path.append(sys.argv[1])
from stormproof.cli import main
sys.exit(main.run(["check", *sys.argv[2:], "--model", "tickets:TICKETS", "--json"]))
"""
"""The model's folder is on this process's path alone."""


@pytest.mark.gate
@pytest.mark.xdist_group("spark")
def test_spark_judges_and_certifies_as_this_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(f"not run: {missing}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    history = tmp_path / "twice.edn"
    history.write_text((TICKETS / "tickets.edn").read_text().replace(":take, :value 2", ":take, :value 1"))
    answers, certificates = [], []
    for engine in ("inprocess", "spark"):
        certificate = tmp_path / f"{engine}.json"
        arguments = [str(TICKETS), str(history), "--engine", engine, "--certify", str(certificate)]
        ran = subprocess.run(
            [sys.executable, "-c", CHECK, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 1, ran.stderr
        directory = tmp_path / json.loads(ran.stdout)["directory"]
        verdict = json.loads((directory / "verdict.json").read_text())
        answers.append(verdict["checkers"]["linearizable"])
        certificates.append(certificate.read_text())
    assert answers[0]["anomalies"]
    assert answers[0] == answers[1]
    assert certificates[0] == certificates[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tickets:NONE", "it is not there"),
        ("tickets:tickets", "it is function"),
        ("nowhere_at_all:MODEL", "no module 'nowhere_at_all'"),
        ("tickets:", "module:NAME"),
    ],
)
def test_what_is_no_model_is_refused(name: str, words: str, stormproof: Stormproof) -> None:
    checked = stormproof("check", TICKETS / "tickets.edn", "--model", name)
    assert checked.code == 254
    assert words in checked.err
