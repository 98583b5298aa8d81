"""A machine without a fitting Java is told so, and how to get one."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.spark.java import JavaMissing, feature_version, find_java


def fake_java(home: Path, release: str | None, printed: str = "") -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    java.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('IMPLEMENTOR="x"\nJAVA_VERSION="21"\n', 21),
        ("no such command", None),
    ],
)
def test_versions_old_and_new_are_understood(text: str, version: int | None) -> None:
    assert feature_version(text) == version


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", 'JAVA_VERSION="21.0.1"')
    home = fake_java(tmp_path / "home", 'JAVA_VERSION="17.0.2"')
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert find_java(environment).executable == home
    assert find_java({"PATH": environment["PATH"]}).version == 21


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    fake_java(tmp_path, None, 'openjdk version "17.0.15" 2025-04-15')
    assert find_java({"JAVA_HOME": str(tmp_path)}).version == 17


@pytest.mark.parametrize(
    ("release", "reason"), [('JAVA_VERSION="11.0.2"', "Java 11, too old"), ("nothing", "does not tell its version")]
)
def test_a_java_that_does_not_fit_is_refused_with_advice(release: str, reason: str, tmp_path: Path) -> None:
    fake_java(tmp_path, release)
    with pytest.raises(JavaMissing, match=f"{reason}.*apt-get install"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_no_java_at_all_is_said_with_advice(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"there is none; install a Java 17"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(JavaMissing, match="JAVA_HOME is"):
        find_java({"JAVA_HOME": str(tmp_path)})
