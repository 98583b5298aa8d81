"""Benchmarks are run seldom: what they import is there all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_a_benchmark_can_be_started(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"import {name}"], cwd=BENCHMARKS, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
