"""Wherever Spark runs, a history gets the same verdict, anomalies and examples as in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkers.spark.java import JavaMissing, require_java

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.references.verdicts_on_master"
TIME_LIMIT_S = 3600


def verdicts_on(master: str, folder: Path, one_of: int = 1) -> dict[str, Any]:
    """By history, by checker: the result. Each master gets a process of its own, for a process has one session."""
    ran = subprocess.run(
        [sys.executable, "-m", PROGRAM, master, str(folder), str(one_of)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "benchmarks")))},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = verdicts_on("inprocess", tmp_path_factory.mktemp("inprocess"))
    results = [result for by_checker in found.values() for result in by_checker.values()]
    assert not any(" failed: " in reason for result in results for reason in result["reasons"])
    broken = {name for by_checker in found.values() for name, result in by_checker.items() if result["anomalies"]}
    assert broken >= {"log", "queue", "set", "linearizable", "availability", "cluster", "bank", "causal", "long-fork"}
    assert broken >= {"list-append", "rw-register"}
    return found


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("master", "one_of"),
    [
        pytest.param("local[1]", 1, marks=pytest.mark.thorough),
        pytest.param("local[2]", 1, marks=pytest.mark.thorough),  # the one of all other tests with Spark
        pytest.param("local-cluster[2,1,2048]", 1, marks=pytest.mark.thorough),
        pytest.param("local-cluster[2,1,2048]", 3, marks=pytest.mark.gate),
    ],
)
def test_all_masters_find_the_same(master: str, one_of: int, expected: dict[str, Any], tmp_path: Path) -> None:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(f"not run: {missing}")
    found = verdicts_on(master, tmp_path, one_of)
    assert found == {name: expected[name] for name in found}
    assert len(found) == -(-len(expected) // one_of)
