"""The file system of containers as the kernel shows it to any process of this machine: what databases ask of one."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.environments.fuse.mounted import MountedVolume, require_mountable
from harness.environments.impairment import BitRot, DiskErrors, FullDisk, MisdirectedWrites
from harness.errors import HarnessError
from harness.seed import Seed

NOBODY = 65534


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[MountedVolume]:
    try:
        require_mountable()
        mounted = MountedVolume("n1", tmp_path, Seed(7))
    except HarnessError as refused:
        pytest.skip(str(refused))
    yield mounted
    mounted.end()
    assert not os.path.ismount(mounted.place)


def test_mapped_memory_is_on_the_disk_after_msync_and_shared_with_reads(volume: MountedVolume) -> None:
    path = volume.place / "mapped"
    with path.open("w+b") as file:
        file.truncate(8192)
        with mmap.mmap(file.fileno(), 8192) as memory:
            memory[5000:5006] = b"mapped"
            assert os.pread(file.fileno(), 6, 5000) == b"mapped"
            memory.flush()
        os.fsync(file.fileno())
    volume.lose_power()
    assert path.read_bytes() == bytes(5000) + b"mapped" + bytes(8192 - 5006)


def test_bits_that_rot_are_seen_through_memory_that_was_mapped_before(volume: MountedVolume) -> None:
    path = volume.place / "rotten"
    path.write_bytes(bytes(4096))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as memory:
        assert not any(memory[:])
        assert "of rotten" in volume.rot(BitRot(bits=1, draw=3), spared=())
        assert sum(map(int.bit_count, memory[:])) == 1
    assert volume.rot(BitRot(bits=1, draw=3), spared=("rotten",)) == ""


def test_a_program_reads_what_is_on_the_disk_in_the_place_of_what_it_wrote(volume: MountedVolume) -> None:
    misdirected = MisdirectedWrites(one_in=1, draw=3)
    with (volume.place / "log").open("w+b", buffering=0) as file:
        volume.impair(misdirected)
        for record in (b"one!", b"two!"):
            file.write(record)
        assert volume.relieve(misdirected) == " (1 writes misdirected: write log 4+4 to 0)"
        assert os.pread(file.fileno(), 8, 0) == b"two!" + bytes(4), "the kernel forgets what it has in memory"


def test_space_is_allocated_ahead_and_counted(volume: MountedVolume) -> None:
    with (volume.place / "ahead").open("w+b") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        assert os.fstat(file.fileno()).st_size == 1 << 20
        full = FullDisk(room_bytes=4096)
        volume.impair(full)
        shown = os.statvfs(volume.place)
        assert (shown.f_bavail * shown.f_frsize, shown.f_blocks * shown.f_frsize) == (4096, (1 << 20) + 4096)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            os.posix_fallocate(file.fileno(), 0, 1 << 21)
        assert "1 calls failed: truncate ahead" in volume.relieve(full)
        os.posix_fallocate(file.fileno(), 0, 1 << 21)


def test_locks_keep_other_processes_out(volume: MountedVolume) -> None:
    path = volume.place / "locked"
    words = "import fcntl, sys; fcntl.{0}(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"

    def is_free(kind: str) -> bool:
        return subprocess.run([sys.executable, "-c", words.format(kind), path], stderr=subprocess.PIPE).returncode == 0

    for kind in ("lockf", "flock"):
        with path.open("w+b") as file:
            assert is_free(kind)
            getattr(fcntl, kind)(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert not is_free(kind)
        assert is_free(kind)


def test_links_owners_and_modes_are_what_processes_made_them(volume: MountedVolume) -> None:
    path = volume.place / "file"
    path.write_text("text", encoding="utf-8")
    os.link(path, volume.place / "other")
    (volume.place / "soft").symlink_to("other")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o600)
    path.unlink()
    shown = (volume.place / "soft").stat()
    assert (shown.st_nlink, shown.st_uid, stat.S_IMODE(shown.st_mode)) == (1, NOBODY, 0o600)
    assert sorted(os.listdir(volume.place)) == ["other", "soft"]


def test_users_that_are_not_root_have_what_is_theirs_and_nothing_else(volume: MountedVolume) -> None:
    (volume.place / "theirs").mkdir()
    os.chown(volume.place / "theirs", NOBODY, NOBODY)
    (volume.place / "ours").write_text("text", encoding="utf-8")
    (volume.place / "ours").chmod(0o600)
    script = (
        "echo text > theirs/new && mv theirs/new theirs/newer && cat theirs/newer; cat ours || echo refused; rm ours"
    )
    shell = ["/bin/sh", "-c", script]
    said = subprocess.run(shell, cwd=volume.place, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True)
    assert said.stdout == b"text\nrefused\n", said.stderr
    assert (volume.place / "ours").exists()
    assert (volume.place / "theirs" / "newer").stat().st_uid == NOBODY


def test_a_file_that_was_removed_or_replaced_is_there_for_who_has_it_open(volume: MountedVolume) -> None:
    path = volume.place / "open"
    path.write_text("old", encoding="utf-8")
    with path.open("r+b", buffering=0) as file:
        (volume.place / "new").write_text("new", encoding="utf-8")
        os.replace(volume.place / "new", path)
        assert os.listdir(volume.place) == ["open"], "nothing is hidden under another name"
        file.write(b"OLD")
        assert os.pread(file.fileno(), 3, 0) == b"OLD"
        assert os.fstat(file.fileno()).st_nlink == 0
    assert path.read_text(encoding="utf-8") == "new"


def test_a_directory_is_fsynced_with_the_names_in_it(volume: MountedVolume) -> None:
    for _ in range(5):
        folder = volume.place / "folder"
        folder.mkdir()
        (folder / "empty").touch()
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
        os.close(descriptor)
        volume.lose_power()
        assert os.listdir(folder) == ["empty"]
        (folder / "empty").unlink()
        folder.rmdir()
        descriptor = os.open(volume.place, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
        os.close(descriptor)
        volume.lose_power()
        assert os.listdir(volume.place) == []


def test_what_was_open_when_the_power_went_is_of_no_use_any_more(volume: MountedVolume) -> None:
    with (volume.place / "open").open("w+b", buffering=0) as file:
        file.write(b"text")
        os.fsync(file.fileno())
        volume.lose_power()
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            file.write(b"more")
    assert (volume.place / "open").read_bytes() == b"text"


def test_many_names_are_listed_once_each_while_they_are_removed(volume: MountedVolume) -> None:
    names = {f"{number:04d}-{'x' * 60}" for number in range(500)}
    for name in names:
        (volume.place / name).touch()
    removed = []
    with os.scandir(volume.place) as entries:
        for entry in entries:
            os.unlink(entry.path)
            removed.append(entry.name)
    assert (len(removed), set(removed), os.listdir(volume.place)) == (500, names, [])


def test_a_file_that_memory_would_not_hold_is_refused(volume: MountedVolume) -> None:
    with (volume.place / "large").open("wb") as file:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            file.truncate(1 << 40)
        file.truncate(1 << 20)
    assert (volume.place / "large").stat().st_size == 1 << 20


def test_writes_that_fail_are_counted(volume: MountedVolume) -> None:
    errors = DiskErrors(reads=0.0, writes=1.0)
    volume.impair(errors)
    with (
        (volume.place / "failing").open("wb", buffering=0) as file,
        pytest.raises(OSError, match=os.strerror(errno.EIO)),
    ):
        file.write(b"text")
    assert volume.relieve(errors) == " (1 calls failed: write failing 0+4)"
