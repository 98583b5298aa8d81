"""Benchmarks are run seldom: what they import is there all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("path", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_can_be_started(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"import {path.stem}"],
        cwd=path.parent,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
