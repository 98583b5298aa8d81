"""`stormproof doctor` says in a user's words what is missing for containers and for released Java systems."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from stormproof.cli import doctor
from stormproof.cli.doctor import Finding

Program = Callable[[str, str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script onto a PATH on which nothing else is."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(doctor, "_program", lambda name: str(place / name) if (place / name).exists() else None)

    def write(name: str, script: str) -> None:
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)

    return write


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the engine's socket would be."""
    place = tmp_path / "docker.sock"
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(doctor, "ENGINE_SOCKET", str(place))
    monkeypatch.setattr(doctor, "SYSTEMD", tmp_path / "nowhere")
    monkeypatch.setattr(docker, "from_env", lambda **options: docker.DockerClient(f"unix://{place}", **options))
    return place


@pytest.fixture
def deaf_socket(no_engine: Path) -> Path:
    """Nobody listens on it any more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left_over:
        left_over.bind(str(no_engine))
    return no_engine


def no_docker() -> Finding:
    finding = doctor._docker()
    assert not finding.found and "\n" not in finding.what
    return finding


@pytest.mark.usefixtures("no_engine", "program")
def test_without_an_engine_the_packages_are_named_and_what_starts_it() -> None:
    assert "no engine is installed here" in no_docker().what
    assert "apt-get install docker.io iptables && service docker start" in no_docker().what


@pytest.mark.usefixtures("no_engine")
def test_an_engine_that_does_not_run_is_to_be_started(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("dockerd", "exit 1")
    assert no_docker().what == (
        "an engine is installed here and does not run (Debian, Ubuntu, as root: service docker start)"
    )
    monkeypatch.setattr(doctor, "SYSTEMD", tmp_path)
    assert no_docker().what.endswith("(Debian, Ubuntu, as root: systemctl start docker)")


@pytest.mark.usefixtures("deaf_socket")
def test_a_socket_that_a_killed_engine_left_is_no_engine(program: Program) -> None:
    program("dockerd", "exit 1")
    assert "is installed here and does not run" in no_docker().what


def test_a_user_whom_the_engine_does_not_know_is_told_of_its_group(
    program: Program, deaf_socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("dockerd", "exit 1")
    may = os.access
    monkeypatch.setattr(os, "access", lambda place, how: Path(place) != deaf_socket and may(place, how))
    assert f"this user may not use the engine: {deaf_socket}" in no_docker().what
    assert "usermod -aG docker USER" in no_docker().what


def test_an_engine_elsewhere_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert no_docker().what.startswith("no engine answers at DOCKER_HOST=unix:///nowhere/docker.sock (")
    assert no_docker().what.endswith("start it there, or unset DOCKER_HOST")


def test_maven_is_named_with_its_version_and_what_it_is_for(program: Program) -> None:
    program("mvn", r"printf '\033[1mApache Maven 3.8.7 (abc123)\033[m\nMaven home: /usr/share/maven\n'")
    finding = doctor._maven()
    assert finding.found and finding.what.startswith("Apache Maven 3.8.7 at ")
    assert "--set release=5.4.0" in finding.makes_possible


@pytest.mark.usefixtures("program")
def test_a_machine_without_maven_hears_how_to_get_it() -> None:
    finding = doctor._maven()
    assert not finding.found and "apt-get install maven" in finding.what


def test_a_maven_without_java_is_none(program: Program) -> None:
    program("mvn", "echo 'The JAVA_HOME environment variable is not defined correctly' >&2; exit 1")
    finding = doctor._maven()
    assert not finding.found and "needs a Java" in finding.what
