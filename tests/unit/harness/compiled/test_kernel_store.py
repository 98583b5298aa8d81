"""One directory for each user, whole entries, and nothing that another user wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.compiled import store


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(store.CHOSEN, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(store.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    store.directory.cache_clear()
    yield
    store.directory.cache_clear()


def test_what_was_written_is_read() -> None:
    store.write("a", b"machine code")
    assert store.read("a") == b"machine code"
    assert store.read("b") is None
    assert [path.name for path in store.directory().iterdir()] == ["a.kernel"]


def test_the_store_lies_in_the_users_cache_and_only_the_user_can_write_it(tmp_path: Path) -> None:
    assert store.directory() == tmp_path / "caches" / "stormproof" / "kernels"
    assert store.directory().stat().st_mode & 0o077 == 0


def test_a_directory_that_others_can_write_to_is_not_trusted(tmp_path: Path) -> None:
    open_to_all = tmp_path / "caches" / "stormproof" / "kernels"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    assert store.directory() == tmp_path / "temporary" / f"kernels-stormproof-{os.getuid()}"


def test_where_there_is_no_home_it_lies_with_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "caches").touch()
    assert store.directory() == tmp_path / "temporary" / f"kernels-stormproof-{os.getuid()}"


def test_a_changed_entry_is_not_read() -> None:
    store.write("a", b"machine code")
    entry = store.directory() / "a.kernel"
    entry.write_bytes(entry.read_bytes().replace(b"code", b"evil"))
    assert store.read("a") is None


def test_unused_entries_are_removed_and_used_ones_stay() -> None:
    for name in ("old", "new"):
        store.write(name, b"machine code")
    half = store.directory() / "killed.unfinished"
    half.touch()
    status = (store.directory() / "old.kernel").stat()
    os.utime(store.directory() / "old.kernel", (0, status.st_mtime - store.UNUSED_S - 1))
    os.utime(half, (0, status.st_mtime - store.ABANDONED_S - 1))
    store.prune(status.st_mtime)
    assert [path.name for path in store.kept()] == ["new.kernel"]
    assert not half.exists()


def test_of_too_much_the_least_used_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    for age_s, name in enumerate(("newest", "newer", "oldest")):
        store.write(name, b"machine code")
        os.utime(store.directory() / f"{name}.kernel", (0, 1_000_000 - age_s))
    monkeypatch.setattr(store, "MOST_BYTES", 2 * (store.CHECKSUM_BYTES + len(b"machine code")))
    store.prune(1_000_000)
    assert [path.name for path in store.kept()] == ["newer.kernel", "newest.kernel"]
