"""Same seed, same trace, byte for byte: whole runs of the system with every kind of fault, in two processes.

Repeating a run in one process would prove little, for the order of sets of strings follows the hash seed of the
process; so each process here has another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NEMESIS = (
    ("partition", "kill", "pause", "clock", "power"),
    ("links", "slow-links", "lossy-links", "narrow-links", "flapping-links", "held-links", "kill"),
    ("disk", "disk-damage", "power"),
    ("slow-nodes", "restarts", "strobe", "clock", "held-links"),
    ("membership", "partition", "kill"),
)
"""Of two seeds each, by turns."""

PROGRAM = """
import hashlib, json, sys, tempfile
from pathlib import Path
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from harness.record.scenario import Scenario

nemeses = json.loads(sys.argv[2])
for seed in json.loads(sys.argv[1]):
    workload = ("log", "register", "consumption")[seed % 3]
    scenario = Scenario(
        system="rocketmq", workload=workload, nemesis=tuple(nemeses[seed // 2 % len(nemeses)]), time_limit_s=10.0,
        recovery_s=5.0, rate=100.0, seed=seed, settings={"interval_s": 3.0},
    )
    with tempfile.TemporaryDirectory() as runs:
        directory = run_scenario(scenario, runs=Path(runs), options=HERE).directory
        record = json.loads((directory / "scenario.json").read_text())
        nodes = sorted(directory.glob("nodes/*/*"))
        parts = [directory / "history.parquet", directory / "nemesis.jsonl", *nodes]
        digests = {str(part.relative_to(directory)): hashlib.sha256(part.read_bytes()).hexdigest() for part in parts}
    print(json.dumps({"seed": seed, "trace": record["trace_hash"], "events": record["trace_events"], **digests}))
"""


def _runs(seeds: range, hash_seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps([*seeds]), json.dumps(NEMESIS)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(0, 10, 2), marks=pytest.mark.slow, id="0"),
        pytest.param(range(1, 10, 2), marks=pytest.mark.gate, id="1"),
        pytest.param(range(10, 60), marks=pytest.mark.thorough, id="10"),
    ],
)
def test_same_seed_same_trace_and_same_files_in_two_processes(seeds: range) -> None:
    with _runs(seeds, 1) as left, _runs(seeds, 2) as right:
        outputs = [process.communicate(timeout=1200)[0].splitlines() for process in (left, right)]
        assert left.returncode == right.returncode == 0
    rows = [[json.loads(line) for line in output] for output in outputs]
    assert len(rows[0]) == len(seeds)
    assert all(row["events"] > 1_000 for row in rows[0])
    assert len({row["trace"] for row in rows[0]}) == len(seeds)
    for one, other in zip(*rows, strict=True):
        different = sorted(name for name in one if one[name] != other[name])
        assert not different, (
            f"seed {one['seed']}: {', '.join(different)} differ; `stormproof replay` names the first differing event"
        )
