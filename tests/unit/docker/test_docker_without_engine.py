"""What the world of containers says and does where no engine is needed or none is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from harness.cli.main import run
from harness.environments.docker import DockerEnvironment, engine, image
from harness.environments.docker.network import free_ports, is_port_taken
from harness.errors import HarnessError
from harness.lifetime import interruption
from harness.session import environments
from harness.session import resolve as registry
from harness.session.environments import docker as world

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


def test_a_nemesis_of_power_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["run", "rocketmq", "--environment", "docker", "--nemesis", "power", "--runs", str(tmp_path)])
    assert code == 254
    assert "cannot apply 'power'" in capsys.readouterr().err


def test_the_world_is_found_by_its_name() -> None:
    assert registry.environment("docker") == world
    assert world.faults == {"partition", "kill", "pause", "clock"}


def test_free_ports_are_free_and_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_a_taken_port_is_told_from_other_failures() -> None:
    assert is_port_taken(Exception("driver failed: Bind for 127.0.0.1:80 failed: port is already allocated"))
    assert is_port_taken(Exception("listen tcp4 127.0.0.1:80: bind: address already in use"))
    assert not is_port_taken(Exception("no such image"))


def test_the_image_follows_the_package_and_nothing_else(tmp_path: Path) -> None:
    package = tmp_path / "system_under_test"
    (package / "image").mkdir(parents=True)
    (package / "image" / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    (package / "one.py").write_text("1")
    before = image._context(package)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.pyc").write_text("compiled")
    os.utime(package / "one.py", (0, 0))
    assert image._context(package) == before
    (package / "one.py").write_text("2")
    assert image._context(package) != before


def test_an_interrupted_run_says_whether_all_was_removed_and_what_removes_the_rest() -> None:
    class Refusing:
        def remove(self) -> None:
            raise HarnessError("network n could not be removed: it has active endpoints")

    class Obliging:
        def remove(self) -> None:
            pass

    interruption.forget_words()
    with pytest.raises(HarnessError):
        environments._remove(cast(DockerEnvironment, Refusing()))
    assert interruption.described() == (
        "interrupted: not all of it could be removed (network n could not be removed: it has active endpoints); "
        "when the engine answers: stormproof cleanup"
    )
    environments._remove(cast(DockerEnvironment, Obliging()))
    assert interruption.described() == "interrupted: faults were healed, containers and their network are removed"
    interruption.forget_words()
