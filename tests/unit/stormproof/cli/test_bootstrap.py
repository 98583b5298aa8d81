"""The set-up: once, again when what it was made of changes, and one line where it cannot be."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from checkers.spark import java
from stormproof.cli import bootstrap


class Machine:
    """Remembers which commands were run; all of them succeed but those named as failing."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.failing: str = ""

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        fails = bool(self.failing) and self.failing in " ".join(command)
        return subprocess.CompletedProcess(command, int(fails), "", "")

    def ran(self, words: str) -> int:
        return sum(words in " ".join(command) for command in self.commands)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(bootstrap, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", venv)
    monkeypatch.setattr(bootstrap, "VENV_PYTHON", venv / "bin" / "python")
    monkeypatch.setattr(bootstrap, "STAMP", venv / ".stormproof-installed")
    monkeypatch.setattr(bootstrap, "KERNELS_STAMP", venv / ".stormproof-kernels")
    monkeypatch.setattr(bootstrap, "CLASSES_STAMP", venv / ".stormproof-classes")
    monkeypatch.setattr(bootstrap.subprocess, "run", machine.run)
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/java"), 17))
    return machine


def test_the_second_time_nothing_is_installed(machine: Machine) -> None:
    assert bootstrap.main() == 0
    assert machine.ran("pip install") == 1
    assert bootstrap.main() == 0
    assert machine.ran("pip install") == 1


def test_a_changed_project_is_installed_again(machine: Machine, tmp_path: Path) -> None:
    bootstrap.main()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    bootstrap.main()
    assert machine.ran("pip install") == 2


def test_kernels_are_compiled_ahead_once_and_again_when_one_changed(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "checkers" / "log").mkdir(parents=True)
    source = tmp_path / "checkers" / "log" / "groups.py"
    source.write_text("before")
    for compiled in (1, 1):
        assert bootstrap.main() == 0
        assert machine.ran("tests.histories.compile_kernels") == compiled
    source.write_text("after")
    assert bootstrap.main() == 0
    assert machine.ran("tests.histories.compile_kernels") == 2


def test_classes_of_spark_are_laid_out_once_and_again_for_another_java(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for laid_out in (1, 1):
        assert bootstrap.main() == 0
        assert machine.ran("checkers.spark.lay_out_classes") == laid_out
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/java"), 21))
    assert bootstrap.main() == 0
    assert machine.ran("checkers.spark.lay_out_classes") == 2


def test_a_machine_whose_java_lays_out_no_classes_is_set_up_all_the_same(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.failing = "checkers.spark.lay_out_classes"
    assert bootstrap.main() == 0
    assert "longer to start" in capsys.readouterr().err
    machine.failing = ""
    assert bootstrap.main() == 0
    assert machine.ran("checkers.spark.lay_out_classes") == 2


def test_a_machine_that_cannot_compile_ahead_is_set_up_all_the_same(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.failing = "tests.histories.compile_kernels"
    assert bootstrap.main() == 0
    assert "the first checks will take longer" in capsys.readouterr().err
    machine.failing = ""
    assert bootstrap.main() == 0
    assert machine.ran("tests.histories.compile_kernels") == 2


def test_a_venv_that_works_is_not_made_anew(machine: Machine) -> None:
    bootstrap.main()
    assert machine.ran("-m venv") == 0
    machine.failing = "import sys, pip"
    (bootstrap.STAMP).unlink()
    bootstrap.main()
    assert machine.ran("-m venv") == 1


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        ("pip install", "pip could not install the packages named in pyproject.toml"),
        ("import sys, pip", ""),
    ],
)
def test_an_installation_that_fails_is_reported_and_tried_again(
    machine: Machine, failing: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.failing = failing
    assert bootstrap.main() == (255 if words else 0)
    assert words in capsys.readouterr().err
    machine.failing = ""
    assert bootstrap.main() == 0


def test_where_no_java_can_be_had_one_line_says_what_to_do(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(java, "find_java", lambda: None)
    monkeypatch.setattr(java, "get_java", lambda say, install: None)
    assert bootstrap.main() == 255
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("set-up: no Java for Spark, and none could be fetched; install Java 17 or newer")
    assert last.endswith("(all else is ready: .venv/bin/stormproof run rocketmq --engine inprocess)")


@pytest.mark.parametrize(("root", "first"), [(0, "apt-cache policy"), (1000, "")])
def test_root_gets_the_distributions_java_and_others_a_jdk_in_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: int, first: str
) -> None:
    machine, said, installed = Machine(), [], []
    monkeypatch.setattr(java.subprocess, "run", machine.run)
    monkeypatch.setattr(java.os, "geteuid", lambda: root)
    monkeypatch.setattr(java.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(java, "CHECKOUT", tmp_path)
    monkeypatch.setattr(java, "CHECKOUT_JDKS", tmp_path / ".jdk")
    monkeypatch.setattr(java, "find_java", lambda: java.Java(tmp_path, 17) if installed else None)
    assert java.get_java(said.append, installed.append) == java.Java(tmp_path, 17)
    assert bool(machine.ran("apt-get")) is (root == 0)
    assert (first in " ".join(machine.commands[0])) if first else machine.commands == []
    assert installed == [tmp_path / ".jdk"]
    assert said[-1] == "no Java 17+ found: fetching a JDK into .jdk/ with install-jdk"
