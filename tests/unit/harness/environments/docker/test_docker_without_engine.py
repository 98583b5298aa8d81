"""What the environment of containers says and does where no engine is needed or none is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from harness.environments.docker import engine
from harness.environments.docker.kind import DOCKER, DONE, REMEDY
from harness.environments.docker.network import free_ports, is_port_taken
from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.remote.launch import python_files
from harness.environments.remote.session import remove
from harness.errors import HarnessError
from harness.lifetime import interruption
from harness.program import PythonProgram
from stormproof.cli.main import run
from stormproof.session import registry

NOWHERE = "unix:///nowhere/docker.sock"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", NOWHERE)


@pytest.mark.usefixtures("no_engine")
def test_no_engine_is_one_line_that_says_what_to_do() -> None:
    with pytest.raises(HarnessError) as raised, engine():
        pass
    words = str(raised.value)
    assert words.startswith("no Docker engine answers") and "--environment simulated" in words
    assert "\n" not in words


@pytest.mark.usefixtures("no_engine")
def test_a_run_without_an_engine_ends_with_255(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["run", "rocketmq", "--environment", "docker", "--runs", str(tmp_path), "--engine", "inprocess"])
    assert code == 255
    assert capsys.readouterr().err.count("no Docker engine answers") == 1


def test_the_environment_is_found_by_its_name() -> None:
    assert registry.environment("docker") is DOCKER
    assert DOCKER.faults >= {
        *("partition", "kill", "pause", "clock", "upgrade", "reset"),
        *("slow-links", "lossy-links", "narrow-links", "flapping-links", "held-links"),
        *("slow-nodes", "restart-loop", "rolling-restart", "strobe"),
        *("kill-process", "pause-process", "slow-process", "scarce-memory"),
        *("duplicating-links", "corrupting-links", "reordering-links"),
    }


def test_free_ports_are_free_and_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_a_taken_port_is_distinguished_from_other_failures() -> None:
    assert is_port_taken(Exception("driver failed: Bind for 127.0.0.1:80 failed: port is already allocated"))
    assert is_port_taken(Exception("listen tcp4 127.0.0.1:80: bind: address already in use"))
    assert not is_port_taken(Exception("no such image"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the Python path with packages that import each other."""
    for path, text in {
        "vault_system/__init__.py": "",
        "vault_system/node.py": "from . import disk\ndef late():\n    import vault_words.long",
        "vault_system/disk.py": "import json, not_installed_anywhere",
        "vault_system/table.txt": "data",
        "vault_words/__init__.py": "",
        "vault_words/long.py": "",
        "vault_words/by_name.py": "",
        "vault_stranger.py": "",
        "vault_compiled/__init__.py": "",
        "vault_compiled/fast.so": "",
        "vault_fast.py": "import vault_compiled",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_image_holds_whole_packages_of_all_that_the_program_imports(installed: Path) -> None:
    files = python_files(PythonProgram(main="vault_system.node:main"))
    assert {path for path in files if path.startswith("vault")} == {
        "vault_system/__init__.py",
        "vault_system/disk.py",
        "vault_system/node.py",
        "vault_system/table.txt",
        "vault_words/__init__.py",
        "vault_words/by_name.py",
        "vault_words/long.py",
    }
    assert "system_under_test/runtime/real.py" in files, "what runs the program"


def test_the_image_follows_the_files_and_nothing_else(installed: Path) -> None:
    before = python_files(PythonProgram(main="vault_system.node:main"))
    (installed / "vault_system" / "__pycache__").mkdir()
    (installed / "vault_system" / "__pycache__" / "node.pyc").write_text("compiled")
    os.utime(installed / "vault_system" / "node.py", (0, 0))
    assert python_files(PythonProgram(main="vault_system.node:main")) == before
    (installed / "vault_words" / "by_name.py").write_text("2")
    assert python_files(PythonProgram(main="vault_system.node:main")) != before


@pytest.mark.parametrize(
    ("main", "words"),
    [("vault_fast:main", "package vault_compiled has compiled parts"), ("vault_lost:main", "no module 'vault_lost'")],
)
def test_what_cannot_be_copied_is_named(installed: Path, main: str, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        python_files(PythonProgram(main=main))


def test_an_interrupted_run_says_whether_all_was_removed_and_what_removes_the_rest() -> None:
    class Refusing:
        def remove(self) -> None:
            raise HarnessError("network n could not be removed: it has active endpoints")

    class Obliging:
        def remove(self) -> None:
            pass

    interruption.forget_words()
    with pytest.raises(HarnessError):
        remove(cast(RemoteEnvironment, Refusing()), done=DONE, remedy=REMEDY)
    assert interruption.described() == (
        "interrupted: not all of it could be removed (network n could not be removed: it has active endpoints); "
        "when the engine answers: stormproof cleanup"
    )
    remove(cast(RemoteEnvironment, Obliging()), done=DONE, remedy=REMEDY)
    assert interruption.described() == "interrupted: faults were healed, containers and their network are removed"
    interruption.forget_words()
