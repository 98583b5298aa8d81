"""A mounted volume is a file system on which servers of databases live; and it goes with whoever mounted it."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.environments.fuse import mounted
from harness.environments.fuse.mounted import MountedVolume, require_mountable
from harness.errors import HarnessError
from harness.lifetime import scratch
from harness.seed import Seed

SOMEBODY = 65_534
GONE_WITHIN_S = 60.0


def skip_unless_mountable() -> None:
    try:
        require_mountable()
    except HarnessError as error:
        pytest.skip(str(error))


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[MountedVolume]:
    skip_unless_mountable()
    made = MountedVolume("n", tmp_path, Seed(7))
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def place(volume: MountedVolume) -> Path:
    return volume.place


def written(place: Path, content: bytes, flags: int = 0) -> int:
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | flags, 0o644)
    os.write(descriptor, content)
    return descriptor


def require_durable(volume: MountedVolume, write: Callable[[Path], None], content: bytes) -> None:
    """What `write` makes of a fresh file is there after a loss of power, each time."""
    for number in range(16):
        file = volume.place / f"{number}" / "folder" / "f"
        file.parent.mkdir(parents=True)
        write(file)
        volume.lose_power()
        assert file.read_bytes() == content


def test_without_an_fsync_that_is_not_so(volume: MountedVolume) -> None:
    with pytest.raises((AssertionError, FileNotFoundError)):
        require_durable(volume, lambda file: os.close(written(file, b"text")), b"text")


def test_a_file_that_is_removed_while_it_is_open_is_used_on(place: Path) -> None:
    file = written(place / "f", b"text")
    os.unlink(place / "f")
    assert os.listdir(place) == []
    os.write(file, b" and more")
    status = os.fstat(file)
    assert (os.pread(file, 99, 0), status.st_size, status.st_nlink) == (b"text and more", 13, 0)
    os.fsync(file)
    os.close(file)


def test_a_replaced_file_is_read_on_by_who_has_it_open(place: Path) -> None:
    old = written(place / "f", b"old")
    os.close(written(place / "f.new", b"new"))
    os.rename(place / "f.new", place / "f")
    assert (os.pread(old, 9, 0), (place / "f").read_bytes(), os.listdir(place)) == (b"old", b"new", ["f"])
    os.close(old)


def test_mapped_memory_and_calls_see_each_other(place: Path) -> None:
    file = written(place / "f", bytes(8192))
    with mmap.mmap(file, 8192) as memory:
        os.pwrite(file, b"by a call", 5000)
        assert memory[5000:5009] == b"by a call"
        memory[100:109] = b"by memory"
        assert os.pread(file, 9, 100) == b"by memory"
    os.close(file)


def test_what_was_written_to_mapped_memory_and_synced_is_durable(volume: MountedVolume) -> None:
    def write(path: Path) -> None:
        file = written(path, bytes(4096))
        with mmap.mmap(file, 4096) as memory:
            memory[0:4] = b"text"
            memory.flush()
        os.close(file)

    require_durable(volume, write, b"text" + bytes(4092))


@pytest.mark.parametrize("flag", [os.O_SYNC, os.O_DSYNC])
def test_what_is_written_to_a_file_opened_for_synchronous_writes_is_durable(volume: MountedVolume, flag: int) -> None:
    require_durable(volume, lambda file: os.close(written(file, b"text", flag)), b"text")


def test_direct_writes_past_the_page_cache_are_seen(place: Path) -> None:
    file = os.open(place / "f", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
    with mmap.mmap(-1, 4096) as aligned:
        aligned[:4] = b"text"
        assert os.write(file, aligned) == 4096
    os.close(file)
    assert (place / "f").read_bytes() == b"text" + bytes(4092)


def test_room_can_be_set_aside(place: Path) -> None:
    file = written(place / "f", b"text")
    os.posix_fallocate(file, 0, 1 << 20)
    assert os.fstat(file).st_size == 1 << 20
    assert os.pread(file, 8, 0) == b"text\0\0\0\0"
    os.close(file)


def test_an_fsync_of_a_folder_makes_its_names_durable(volume: MountedVolume, place: Path) -> None:
    for number in range(12):
        folder = place / f"{number}" / "folder"
        folder.mkdir(parents=True)
        for name in ("one", "two"):
            os.close(written(folder / name, b""))
        os.mkfifo(folder / "fifo")
        os.symlink("one", folder / "symbolic")
        os.link(folder / "one", folder / "hard")
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
        os.close(descriptor)
        volume.lose_power()
        assert sorted(os.listdir(folder)) == ["fifo", "hard", "one", "symbolic", "two"]
        assert (folder / "one").stat().st_nlink == 2
        assert os.readlink(folder / "symbolic") == "one"
        assert stat.S_ISFIFO((folder / "fifo").stat().st_mode)


def test_a_durable_file_is_reached_by_folders_that_nobody_fsynced(volume: MountedVolume) -> None:
    def write(path: Path) -> None:
        file = written(path, b"text")
        os.fsync(file)
        os.close(file)

    require_durable(volume, write, b"text")


def test_hard_links_are_one_file(place: Path) -> None:
    file = written(place / "one", b"text")
    os.link(place / "one", place / "two")
    os.write(file, b"!")
    os.close(file)
    assert (place / "two").read_bytes() == b"text!"
    assert (place / "one").stat().st_ino == (place / "two").stat().st_ino
    os.unlink(place / "one")
    assert (place / "two").stat().st_nlink == 1


def test_a_folder_is_renamed_with_what_is_in_it(place: Path) -> None:
    (place / "a/deep").mkdir(parents=True)
    (place / "a/deep/f").write_bytes(b"text")
    (place / "b").mkdir()
    os.rename(place / "a", place / "b/c")
    assert (place / "b/c/deep/f").read_bytes() == b"text"
    assert (place / "b/c/deep/..").resolve() == place / "b/c"
    for wrong, number in (
        ((place / "b", place / "b/c/x"), errno.EINVAL),
        ((place / "none", place / "x"), errno.ENOENT),
    ):
        with pytest.raises(OSError, match=os.strerror(number)):
            os.rename(*wrong)
    with pytest.raises(OSError, match="not empty"):
        os.rmdir(place / "b")


def test_folders_of_thousands_of_files_are_listed_whole_while_they_shrink(place: Path) -> None:
    names = {f"file-{number:05}" for number in range(3000)}
    for name in names:
        (place / name).touch()
    assert set(os.listdir(place)) == names
    with os.scandir(place) as entries:
        for entry in entries:
            os.unlink(entry.path)
    assert os.listdir(place) == []


def test_locks_are_those_of_the_kernel(place: Path) -> None:
    first, second = (os.open(place / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    fcntl.flock(first, fcntl.LOCK_EX)
    with pytest.raises(BlockingIOError):
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(first)
    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(second)


def test_sockets_can_be_there(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as calling:
        listening.bind(str(place / "s"))
        listening.listen()
        calling.connect(str(place / "s"))


def test_somebody_else_keeps_to_owners_and_modes(place: Path) -> None:
    (place / "theirs").mkdir()
    os.chown(place / "theirs", SOMEBODY, SOMEBODY)
    os.chmod(place / "theirs", 0o700)
    (place / "ours").write_bytes(b"x")
    os.chmod(place / "ours", 0o600)
    program = """
        import os, sys
        os.setgid(65534); os.setuid(65534)
        open("theirs/f", "w").write("text")
        print(os.stat("theirs/f").st_uid, oct(os.stat("theirs").st_mode))
        for path in ("ours", "mine"):
            try:
                open(path, "r+" if path == "ours" else "w")
            except PermissionError:
                print("refused")
    """
    words = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)]
    said = subprocess.run(words, cwd=place, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["65534", "0o40700", "refused", "refused"]


def test_times_and_sizes_and_room_are_told(place: Path) -> None:
    os.close(written(place / "f", bytes(10_000)))
    os.utime(place / "f", ns=(1_000_000_007, 2_000_000_009))
    status = (place / "f").stat()
    assert (status.st_atime_ns, status.st_mtime_ns, status.st_size) == (1_000_000_007, 2_000_000_009, 10_000)
    room = os.statvfs(place)
    assert 0 < room.f_bavail < room.f_blocks
    with pytest.raises(OSError, match="too long"):
        (place / ("x" * 256)).touch()


def test_who_had_a_file_open_when_power_was_lost_writes_nothing_any_more(volume: MountedVolume, place: Path) -> None:
    file = written(place / "f", b"text")
    os.fsync(file)
    volume.lose_power()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.write(file, b"!")
    os.close(file)
    assert (place / "f").read_bytes() == b"text"


def test_a_loss_of_power_while_files_are_written_all_the_time_leaves_what_was_said_to_be_durable(
    volume: MountedVolume, place: Path
) -> None:
    program = """
        import os, sys
        file = os.open("log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        for number in range(1 << 30):
            os.write(file, b"%08d" % number)
            os.fsync(file)
            print(number, flush=True)
    """
    words = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)]
    for _ in range(3):
        (place / "log").unlink(missing_ok=True)
        with subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, text=True) as writing:
            assert writing.stdout is not None
            durable = [int(writing.stdout.readline()) for _ in range(200)]
            writing.kill()
            durable += map(int, writing.stdout.read().splitlines())
        volume.lose_power()
        assert (place / "log").read_bytes().startswith(b"".join(b"%08d" % number for number in durable))


def test_it_is_unmounted_at_the_end(volume: MountedVolume) -> None:
    assert os.path.ismount(volume.place)
    volume.end()
    assert not os.path.ismount(volume.place)


def test_it_is_unmounted_when_its_process_is_killed(tmp_path: Path) -> None:
    """Whatever happens to whoever has mounted it."""
    skip_unless_mountable()
    program = f"""
        import sys, time
        from pathlib import Path
        from harness.environments.fuse.mounted import MountedVolume
        from harness.seed import Seed
        volume = MountedVolume("n", Path({str(tmp_path)!r}), Seed(1))
        print("mounted", flush=True)
        time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "mounted\n"
        assert os.path.ismount(tmp_path / "n")
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + GONE_WITHIN_S
    while os.path.ismount(tmp_path / "n") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.ismount(tmp_path / "n")


def test_a_cleanup_removes_what_is_still_mounted(tmp_path: Path) -> None:
    skip_unless_mountable()
    folder = tmp_path / "left behind"
    folder.mkdir()
    volume = MountedVolume("n", folder, Seed(1))
    (volume.place / "f").write_bytes(b"text")
    scratch.remove(folder)
    assert not folder.exists()
    volume.end()


def test_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted, "DEVICE", "/dev/no-such-device")
    with pytest.raises(HarnessError, match=r"need /dev/no-such-device: load .* fuse \(modprobe fuse\)"):
        require_mountable()
    monkeypatch.setattr(mounted, "DEVICE", "/dev/null")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HarnessError, match="need root, who may mount file systems"):
        require_mountable()
