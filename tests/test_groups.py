"""Tests of one group share a worker, after the fast ones and before the slow. No other test fails if they do not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("number", range(8))
def test_grouped(number): pass

@pytest.mark.parametrize("number", range(8))
def test_fast(number): pass
"""


def test_a_group_shares_a_worker_after_the_fast_tests_and_before_the_slow_ones(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    (tmp_path / "test_them.py").write_text(TESTS)
    makefile = (CHECKOUT / "Makefile").read_text()
    options = re.search(r"^WORKERS := (.*)$", makefile, re.MULTILINE)
    assert options is not None
    command = [sys.executable, "-m", "pytest", *options[1].split(), "-v", "-p", "no:cacheprovider", "test_them.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.findall(r"^\[(gw\d)\].*PASSED \S*::test_(fast|grouped|slow)", ran.stdout, re.MULTILINE)
    assert len(passed) == 17
    assert len({worker for worker, kind in passed if kind == "grouped"}) == 1, passed
    of_that_worker = [kind for worker, kind in passed if (worker, "grouped") in passed]
    assert of_that_worker == sorted(of_that_worker, key=["fast", "grouped", "slow"].index)
