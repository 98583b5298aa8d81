"""Benchmarks are run seldom: what they import is there all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
FOLDERS = sorted({path.parent for path in BENCHMARKS.rglob("*.py")})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_benchmarks_can_be_started(folder: Path) -> None:
    names = sorted(path.stem for path in folder.glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"import {', '.join(names)}"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
