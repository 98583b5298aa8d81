"""A JVM is given an archive of classes where one was made for it, and none where not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkers.spark import class_archive, java
from checkers.spark.class_archive import archive, options_with_archive
from harness.compiled import store

OPTIONS = ("-XX:+UseSerialGC",)


@pytest.fixture(autouse=True)
def kept_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "directory", lambda: tmp_path)
    monkeypatch.setattr(class_archive, "find_java", lambda: java.Java(tmp_path, 17))
    return tmp_path


def test_an_archive_is_used_once_it_is_there_and_then_counts_as_used() -> None:
    assert options_with_archive(OPTIONS) == OPTIONS
    archive(OPTIONS).touch()
    os.utime(archive(OPTIONS), (0, 0))
    assert options_with_archive(OPTIONS) == (*OPTIONS, f"-XX:SharedArchiveFile={archive(OPTIONS)}")
    store.prune(store.time.time())
    assert archive(OPTIONS).exists()


def test_another_java_or_other_options_have_an_archive_of_their_own(kept_in: Path) -> None:
    first = archive(OPTIONS)
    assert archive((*OPTIONS, "-XX:-UsePerfData")) != first
    (kept_in / "release").write_text('JAVA_VERSION="17.0.99"')
    assert archive(OPTIONS) != first


def test_archives_that_nobody_uses_are_removed_as_kernels_are() -> None:
    archive(OPTIONS).touch()
    used_s = archive(OPTIONS).stat().st_mtime
    store.prune(used_s + store.ABANDONED_S + 1)
    assert archive(OPTIONS).exists()
    store.prune(used_s + store.UNUSED_S + 1)
    assert not archive(OPTIONS).exists()
