"""The real disk where the device misbehaves, and what exactly an fsync covers."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from system_under_test.runtime.host import DiskError, DiskFull
from system_under_test.runtime.real_disk import RealDisk


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    disk = RealDisk(tmp_path / "disk")
    yield disk
    disk.close()


def failing(number: int, after: int = 0, step: int = 4) -> Callable[..., int]:
    """A `pwrite` that writes `step` bytes a call, and fails from call number `after` on."""
    real, calls = os.pwrite, 0

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(number, os.strerror(number))
        return real(descriptor, bytes(data)[:step], offset)

    return pwrite


def test_a_short_write_is_continued(disk, monkeypatch):
    file = disk.open("log")
    monkeypatch.setattr(os, "pwrite", failing(errno.EIO, after=100))
    assert file.append(b"0123456789") == 0
    assert file.read_at(0, 99) == b"0123456789"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_an_append_that_finds_no_room_leaves_nothing_behind(disk, monkeypatch, number):
    file = disk.open("log")
    file.append(b"before")
    monkeypatch.setattr(os, "pwrite", failing(number, after=1))
    with pytest.raises(DiskFull):
        file.append(b"too much")
    assert file.read_at(0, 99) == b"before"


def test_a_device_error_is_a_disk_error(disk, monkeypatch):
    def fail(*_: object) -> Any:
        raise OSError(errno.EIO, "broken")

    file = disk.open("log")
    file.append(b"data")
    for name in ("pwrite", "pread", "ftruncate", "fsync"):
        monkeypatch.setattr(os, name, fail)
    with pytest.raises(DiskError):
        file.read_at(0, 4)
    with pytest.raises(DiskError):
        file.truncate(0)
    with pytest.raises(DiskError):
        file.write_at(0, b"x")
    with pytest.raises(DiskError):
        asyncio.run(file.fsync())


@pytest.fixture
def fsynced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was fsynced, in order."""
    real, names = os.fsync, []

    def fsync(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_the_first_fsync_of_a_file_makes_its_name_durable_up_to_the_root(disk, fsynced):
    file = disk.open("store/log/0")
    file.append(b"data")
    asyncio.run(file.fsync())
    assert fsynced == ["0", "log", "store", "disk"]
    fsynced.clear()
    asyncio.run(file.fsync())
    assert fsynced == ["0"]


def test_a_file_found_after_a_restart_has_its_name_made_durable_as_well(disk, fsynced):
    disk.open("log/0").close()
    file = disk.open("log/0")
    asyncio.run(file.fsync())
    assert fsynced == ["0", "log", "disk"]


def test_a_replace_fsyncs_both_directories(disk, fsynced):
    disk.open("new/state").append(b"x")
    asyncio.run(disk.replace("new/state", "state"))
    assert fsynced == ["disk", "new", "disk"]
