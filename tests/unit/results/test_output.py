"""What is written where: links are followed, devices and pipes written in place, files replaced as a whole."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from results.output import require_writable, write
from tests.own_devices import full_device


def pieces() -> Iterator[str]:
    yield from ("one\n", "two\n")


@pytest.fixture
def full(tmp_path: Path) -> Path:
    return full_device(tmp_path / "full")


def test_a_new_file_has_the_mode_that_others_have(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write(tmp_path / "new", pieces())
    assert (tmp_path / "new").read_text() == "one\ntwo\n"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    before = path.stat()
    write(path, pieces())
    assert path.read_text() == "one\ntwo\n"
    assert (path.stat().st_mode, path.stat().st_ino == before.st_ino) == (before.st_mode, False)
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_without_write_permission_stays(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write everything")
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(PermissionError):
        write(path, pieces())
    assert path.read_text() == "old"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_symbolic_link_stays_and_what_it_points_to_is_written(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "far").mkdir()
    if is_there:
        (tmp_path / "far/target").write_text("old")
    (tmp_path / "link").symlink_to("far/further")
    (tmp_path / "far/further").symlink_to("target")
    write(tmp_path / "link", pieces())
    assert os.readlink(tmp_path / "link") == "far/further"
    assert os.readlink(tmp_path / "far/further") == "target"
    assert (tmp_path / "far/target").read_text() == "one\ntwo\n"
    assert sorted(os.listdir(tmp_path / "far")) == ["further", "target"]


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write(tmp_path / "link", pieces())


def test_a_device_is_written_in_place_and_stays_one(full: Path) -> None:
    before = full.stat()
    require_writable(full)
    with pytest.raises(OSError, match="No space left on device"):
        write(full, pieces())
    assert stat.S_ISCHR(full.stat().st_mode)
    assert (full.stat().st_ino, full.stat().st_rdev) == (before.st_ino, before.st_rdev)
    assert os.listdir(full.parent) == ["full"]


def test_a_link_to_a_device_stays_and_so_does_the_device(full: Path) -> None:
    link = full.with_name("link")
    link.symlink_to("full")
    with pytest.raises(OSError, match="No space left on device"):
        write(link, pieces())
    assert (link.is_symlink(), full.is_char_device()) == (True, True)


def test_a_terminal_is_written_in_place() -> None:
    ours, theirs = os.openpty()
    try:
        path = Path(os.ttyname(theirs))
        write(path, pieces())
        shown = b""
        while len(shown) < len(b"one\r\ntwo\r\n"):  # a terminal gives what it has, not all that was written
            shown += os.read(ours, 100)
        assert shown == b"one\r\ntwo\r\n"
        assert path.is_char_device()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_named_pipe_is_written_in_place(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=write, args=(path, pieces()))
    writer.start()
    with path.open() as reader:
        assert reader.read() == "one\ntwo\n"
    writer.join()
    assert path.is_fifo()


@pytest.mark.parametrize("target", ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "link", "-"])
def test_a_descriptor_is_written_behind_what_it_has(tmp_path: Path, target: str) -> None:
    """Also where it is a regular file: to replace or to truncate that would lose what the shell appends to."""
    out = tmp_path / "out"
    out.write_text("before\n")
    (tmp_path / "link").symlink_to("/dev/stdout")
    program = (
        "import sys; from pathlib import Path; from results.output import write, require_writable\n"
        f"path = Path({target!r}); print('first'); require_writable(path); write(path, ['one\\n'])\nprint('last')"
    )
    with out.open("a") as file:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True, cwd=tmp_path, env=environment)
    assert out.read_text() == "before\nfirst\none\nlast\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]


def test_a_directory_and_a_socket_are_refused_in_words(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        for refuse in (require_writable, lambda path: write(path, pieces())):
            with pytest.raises(OSError, match="it is a socket"):
                refuse(tmp_path / "socket")
            with pytest.raises(OSError, match="it is a directory"):
                refuse(tmp_path)
    assert os.listdir(tmp_path) == ["socket"]


@pytest.mark.parametrize("path", ["file/below", "nowhere/below", "/proc/nobody-makes-this", "x" * 256])
def test_a_file_that_cannot_be_made_is_reported_before_the_work_and_leaves_nothing(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    for refuse in (require_writable, lambda path: write(path, pieces())):
        with pytest.raises(OSError, match=r"."):
            refuse(Path(path))
    assert os.listdir() == ["file"]


def test_the_longest_name_that_a_file_may_have_is_written(tmp_path: Path) -> None:
    write(tmp_path / ("x" * 255), pieces())
    assert (tmp_path / ("x" * 255)).read_text() == "one\ntwo\n"


def test_to_ask_whether_a_file_can_be_written_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    require_writable(path)
    assert os.listdir(tmp_path) == []
    path.write_text("old")
    require_writable(path)
    assert (os.listdir(tmp_path), path.read_text()) == (["file"], "old")


@pytest.mark.parametrize("old", ["old", None])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str | None
) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old)

    def no_room(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        write(path, pieces())
    assert os.listdir(tmp_path) == ([] if old is None else ["file"])
    assert old is None or path.read_text() == old


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted() -> Iterator[str]:
        yield "half"
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        write(path, interrupted())
    assert (os.listdir(tmp_path), path.read_text()) == (["file"], "old")


def test_half_of_a_surrogate_pair_is_written_as_json_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "file", ['"caf\udce9"'])
    assert (tmp_path / "file").read_bytes() == b'"caf\\udce9"'


KILLED = """
import sys
from pathlib import Path
from results.output import writing

with writing(Path(sys.argv[1])) as file:
    file.write("half of it")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"this file system has no files without a name: {error.strerror}")
    path = tmp_path / "file"
    path.write_text("old")
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "written\n"
        process.kill()
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_text() == "old"
