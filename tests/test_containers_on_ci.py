"""A test with containers that cannot be run is named on somebody's machine, and an error of continuous integration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.docker
def test_with_containers(): pass

@pytest.mark.docker
@pytest.mark.xfail(reason="a bug of the engine")
def test_known_to_fail(): assert False

def test_that_lacks_something_else(): pytest.skip("no browser here")
"""


def outcome(folder: Path, tests: str, ci: str, *options: str) -> tuple[int, str]:
    for file in (Path(__file__).with_name("conftest.py"), CHECKOUT / "pyproject.toml"):
        shutil.copy(file, folder)
    (folder / "test_them.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "test_them.py"]
    environment = {**os.environ, "CI": ci, "DOCKER_HOST": "unix:///nowhere/docker.sock", "PYTHONPATH": str(CHECKOUT)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_without_an_engine_tests_with_containers_are_named_and_the_others_pass(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, TESTS, "")
    assert code == 0, said
    assert "3 skipped" in said and "not run: no Docker engine answers" in said


def test_on_continuous_integration_they_fail_and_say_why(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, TESTS, "true", "-n", "2")
    assert code == 1, said
    assert "1 skipped, 2 errors" in said and "no browser here" in said
    assert "must be run, and this one was not: Skipped: not run: no Docker engine answers" in said
