"""Which Java is taken: one that is new enough, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.session import java
from harness.session.java import find_java, require_java, version_of


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
    with pytest.raises(HarnessError, match=r"Java 17 or newer.*--engine inprocess"):
        require_java("spark")
    require_java("inprocess")
