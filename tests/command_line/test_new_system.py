"""`stormproof new`: what it writes runs at once, is tidy, and is in the wheel; nothing is overwritten."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stormproof.session.skeleton import Node, write_skeleton
from tests.command_line.answers import Stormproof
from tests.command_line.installation import ROOT, environment_with, installed_from


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """In the folder of a project that is made known as pip would make it."""
    site = folder.parent / "site"
    if not site.exists():
        installed_from(folder, site)
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder.parent,
        env=environment_with(site, folder),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_new_system_passes_its_own_tests(tmp_path: Path) -> None:
    write_skeleton("my-store", Node.PYTHON, tmp_path / "trial")
    tested = ran(tmp_path / "trial", "pytest", "-q", "-p", "no:cacheprovider", "trial")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout


@pytest.mark.parametrize(
    ("mutant", "code", "verdict"), [pytest.param("none", 0, "valid", marks=pytest.mark.gate), ("forgets", 1, "invalid")]
)
def test_it_is_valid_in_a_storm_unless_its_bug_is_planted(tmp_path: Path, mutant: str, code: int, verdict: str) -> None:
    write_skeleton("my-store", Node.PYTHON, tmp_path / "trial")
    storm = ["run", "my-store", "--workload", "register", "--nemesis", "partition,kill all every 8 for 2"]
    options = ["--time-limit", "30", "--seed", "2", "--engine", "inprocess", "--json"]
    answered = ran(tmp_path / "trial", "stormproof.cli.main", *storm, "--mutant", mutant, *options)
    assert answered.returncode == code, answered.stdout + answered.stderr
    assert json.loads(answered.stdout)["verdict"] == verdict


@pytest.mark.docker
@pytest.mark.gate
def test_a_new_system_of_a_command_is_invalid_in_containers_with_its_planted_bug(tmp_path: Path) -> None:
    write_skeleton("basket", Node.COMMAND, tmp_path / "trial")
    storm = ["run", "basket", "--environment", "docker", "--workload", "register", "--mutant", "forgets"]
    options = ["--time-limit", "10", "--recovery", "2", "--seed", "1", "--engine", "inprocess", "--json"]
    nemesis = ["--nemesis", "kill all every 9 for 2"]
    answered = ran(tmp_path / "trial", "stormproof.cli.main", *storm, *nemesis, *options)
    assert answered.returncode == 1, answered.stdout + answered.stderr
    assert set(json.loads(answered.stdout)["anomalies"]["linearizable"]) == {"nonlinearizable"}


@pytest.mark.docker
@pytest.mark.thorough
def test_a_new_system_of_a_command_passes_its_own_tests_in_containers(tmp_path: Path) -> None:
    write_skeleton("basket", Node.COMMAND, tmp_path / "trial")
    tested = ran(tmp_path / "trial", "pytest", "-q", "-p", "no:cacheprovider", "trial")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout


@pytest.mark.parametrize("node", Node)
def test_what_is_written_is_tidy_and_names_the_new_system_alone(tmp_path: Path, node: Node) -> None:
    # As long as the name in the templates: where lines break depends on it.
    files = write_skeleton("cupboard", node, tmp_path / "cupboard")
    assert {
        "README.md",
        "pyproject.toml",
        "cupboard/adapter.py",
        "cupboard/client.py",
        "tests/test_cupboard.py",
    } <= set(files)
    for path in files:
        assert "skeleton" not in (tmp_path / "cupboard" / path).read_text().lower(), path
    rules = ["--select", "E,F,I,UP,B", "--line-length", "120"]
    for command in (["check", *rules], ["format", "--check", "--line-length", "120"]):
        checked = ran(tmp_path / "cupboard", "ruff", *command, "--no-cache", "cupboard")
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_system_of_a_command_is_refused_by_name_in_the_simulator(tmp_path: Path) -> None:
    write_skeleton("basket", Node.COMMAND, tmp_path / "basket")
    refused = ran(tmp_path / "basket", "stormproof.cli.main", "run", "basket", "--workload", "register")
    words = (
        "environment 'simulated' cannot run basket: its node n1 is a command (redis-server); it can be run in: docker"
    )
    assert (refused.returncode, words in refused.stderr) == (254, True), refused.stderr


def test_the_command_says_what_to_type_next(stormproof: Stormproof) -> None:
    answer = stormproof("new", "shelf", "--directory", "trial")
    assert answer.code == 0, answer.err
    assert [line[10:] for line in answer.out.splitlines()[1:3]] == [
        "pip install -e trial",
        "stormproof run shelf --workload register --nemesis 'kill all every 10 for 2'",
    ]
    answer = stormproof("new", "basket", "--command", "--json")
    assert answer.json["files"] == sorted(
        str(path.relative_to("basket")) for path in Path("basket").rglob("*") if path.is_file()
    )


def test_nothing_is_overwritten(stormproof: Stormproof) -> None:
    Path("shelf").mkdir()
    Path("file").write_text("mine")
    for arguments, words in (
        (["shelf"], "shelf is there already, and nothing is overwritten; name another --directory"),
        (["shelf", "--directory", "file"], "file is there already"),
        (["shelf", "--directory", "nowhere/shelf"], "nowhere/shelf cannot be made: No such file or directory"),
        (["shelf", "--directory", "file/shelf"], "file/shelf cannot be made: Not a directory"),
    ):
        answer = stormproof("new", *arguments)
        assert (answer.code, answer.out) == (254, "")
        assert words in answer.err
    assert list(Path("shelf").iterdir()) == []
    assert Path("file").read_text() == "mine"


def test_a_wheel_has_all_that_skeletons_are_made_of(tmp_path: Path) -> None:
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("not run: setuptools is not installed")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "stormproof", source / "stormproof", ignore=shutil.ignore_patterns("__pycache__"))
    build = ["pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    made = subprocess.run(
        [sys.executable, "-m", *build, str(source)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (wheel,) = tmp_path.glob("stormproof-*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    templates = [
        path for path in (ROOT / "stormproof" / "skeletons").rglob("*") if path.suffix in (".py", ".md", ".toml")
    ]
    assert len(templates) >= 14
    assert {str(path.relative_to(ROOT)) for path in templates} <= inside
