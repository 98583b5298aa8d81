"""Which Java is taken: one that is new enough, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.spark import java
from checkers.spark.java import JavaMissing, find_java, java_at, require_java, version_of


def fake_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('IMPLEMENTOR="x"\nJAVA_VERSION="21"\n', 21),
        ("no such thing", None),
    ],
)
def test_the_version_is_read_from_what_java_says(words: str, version: int | None) -> None:
    assert version_of(words) == version


def test_an_old_java_home_is_passed_over_for_a_newer_one(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    fake_java(tmp_path / "jdks" / "jdk-21", "21.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}, tmp_path / "jdks")
    assert found is not None
    assert (found.version, found.home) == (21, tmp_path / "jdks" / "jdk-21")


def test_the_path_comes_before_the_checkouts_own(tmp_path: Path) -> None:
    fake_java(tmp_path / "machine", "17.0.1")
    fake_java(tmp_path / "jdks" / "jdk-21", "21.0.1")
    found = find_java({"PATH": str(tmp_path / "machine" / "bin")}, tmp_path / "jdks")
    assert found is not None
    assert found.version == 17


def test_none_is_found_where_none_is(tmp_path: Path) -> None:
    assert find_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "gone")}, tmp_path) is None


def test_a_run_for_spark_without_java_is_refused_before_its_storm_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "CHECKOUT_JDKS", tmp_path)
    monkeypatch.setattr(java, "find_java", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match=r"Java 17 or newer.*--engine inprocess"):
        require_java()


def test_the_file_of_an_installation_says_its_version_without_a_process(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "11.0.2")
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.2"')
    found = java_at(executable)
    assert found is not None
    assert found.version == 17


@pytest.mark.parametrize(("words", "what"), [("11.0.2", "only Java 11 at"), ("unknown", "there is none")])
def test_a_java_that_does_not_fit_is_refused_with_advice(
    words: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, words)
    monkeypatch.setattr(java, "find_java", lambda: None)
    monkeypatch.setattr(java, "CHECKOUT_JDKS", tmp_path / "no-jdks")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match=f"{what}.*apt-get install"):
        require_java()
