"""Where results are to lie is tried before the work: no verdict is printed that cannot be kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormproof.session import decide, execute
from tests.command_line.answers import Stormproof


@pytest.fixture
def read_only(tmp_path: Path, stored_run: Path) -> Iterator[Path]:
    """A folder with a run directory in it, in which no user can write, root included."""
    place = tmp_path / "read-only"
    place.mkdir()
    if os.geteuid() != 0:
        shutil.copytree(stored_run, place / "run")
        for folder in (place / "run", place):
            folder.chmod(0o555)
        yield place
        for folder in (place, place / "run"):
            folder.chmod(0o755)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"not run: nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        shutil.copytree(stored_run, place / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every check and every run fail that begins."""
    monkeypatch.setattr(decide, "check_history", None)
    monkeypatch.setattr(execute, "execute", None)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("check HERE/run", "HERE/run"),
        ("check HERE/run/history.parquet --workload log --runs HERE", "HERE/checked"),
        ("run rocketmq --runs HERE", "HERE"),
        ("run rocketmq --runs HERE/deep/er", "HERE/deep/er"),
        ("replay HERE/run --runs HERE/runs", "HERE/runs"),
        ("suite smoke --runs HERE/runs", "HERE/runs"),
        ("suite smoke --junit HERE/junit.xml", "HERE/junit.xml"),
        ("export HERE/run --output HERE/h.edn", "HERE/h.edn"),
    ],
)
def test_a_directory_that_is_read_only_is_wrong_usage_before_any_work(
    stormproof: Stormproof, read_only: Path, command: str, where: str
) -> None:
    arguments = command.replace("HERE", str(read_only)).split()
    engine = [] if arguments[0] == "export" else ["--engine", "inprocess"]
    answer = stormproof(*arguments, *engine)
    assert answer.code == 254
    assert "verdict" not in answer.out
    said = answer.err.splitlines()[-1]
    assert said.startswith("stormproof: cannot write ")
    assert where.replace("HERE", str(read_only)) in said
    assert "Read-only file system" in said or "Permission denied" in said
