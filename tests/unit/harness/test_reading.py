"""What is read is bounded before it is in memory, and what never ends is not read at all."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from harness import reading
from harness.reading import TooLong, json_kept, lines_kept, read_given, read_kept, refuse_irregular, spool

PATIENCE_S = 600.0
"""Of a test that would wait for ever; nothing is measured by it."""


def written_to_fifo(path: Path, data: bytes) -> threading.Thread:
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(data,))
    thread.start()
    return thread


def test_a_file_is_read_up_to_its_bound_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"12345")
    assert read_given(file, 5) == read_kept(file, 5) == b"12345"
    for read in (read_given, read_kept):
        with pytest.raises(TooLong, match="it is longer than 4 bytes"):
            read(file, 4)


def test_a_pipe_is_read_where_a_user_names_it_and_not_where_a_file_is_kept(tmp_path: Path) -> None:
    pipe = tmp_path / "p"
    writer = written_to_fifo(pipe, b"12345")
    with pytest.raises(ValueError, match="it is a pipe, a file is expected"):
        read_kept(pipe, 5)
    assert read_given(pipe, 5) == b"12345"
    writer.join()


def test_devices_sockets_and_directories_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        irregular = [(Path("/dev/zero"), "a device"), (Path("/dev/null"), "a device"), (tmp_path / "s", "a socket")]
        for path, kind in [*irregular, (tmp_path, "a directory")]:
            with pytest.raises(ValueError, match=f"it is {kind}, a file or a pipe is expected"):
                read_given(path, 5)
        for path, kind in irregular:
            with pytest.raises(ValueError, match=f"it is {kind}, "):
                refuse_irregular(path)
    refuse_irregular(tmp_path)


def test_lines_are_bounded_one_by_one_and_all_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE_BYTES", 4)
    file = tmp_path / "lines"
    file.write_bytes(b"abc\nd\ntorn")
    assert list(lines_kept(file, 10)) == [b"abc\n", b"d\n", b"torn"]
    with pytest.raises(TooLong, match="it is longer than 9 bytes"):
        list(lines_kept(file, 9))
    file.write_bytes(b"abc\ndefgh")
    with pytest.raises(TooLong, match="line 2 is longer than 4 bytes"):
        list(lines_kept(file, 100))


def test_json_that_nests_without_end_is_refused_as_other_text_is_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "j"
    for text, words in ((b"[" * 200_000, "nested too deeply"), (b"{", "Expecting"), (b"\xff", "utf-8")):
        file.write_bytes(text)
        with pytest.raises(ValueError, match=words):
            json_kept(file)


def test_a_stream_is_kept_up_to_a_bound(tmp_path: Path) -> None:
    for size, fits in ((5, True), (6, False)):
        pipe, kept = tmp_path / f"p{size}", tmp_path / f"k{size}"
        writer = written_to_fifo(pipe, b"x" * size)
        if fits:
            spool(pipe, kept, most_bytes=5)
            assert kept.read_bytes() == b"x" * size
        else:
            with pytest.raises(TooLong, match="it is longer than 5 bytes; write it to a file"):
                spool(pipe, kept, most_bytes=5)
        writer.join()


def test_whoever_writes_a_stream_does_not_wait_for_who_looks_at_it_meanwhile(tmp_path: Path) -> None:
    pipe, kept = tmp_path / "pipe", tmp_path / "kept"
    os.mkfifo(pipe)
    seen: list[int] = []
    went_on = threading.Event()

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            file.write(b"abc")
            assert went_on.wait(PATIENCE_S)
            file.write(b"x" * (1 << 20))  # more than a pipe holds

    def look(came: int) -> None:
        seen.append(came)
        if came == 3:
            assert kept.read_bytes() == b"abc"
            went_on.set()
            writer.join(PATIENCE_S)

    writer = threading.Thread(target=write)
    writer.start()
    spool(pipe, kept, meanwhile=look)
    assert not writer.is_alive()
    assert 3 in seen
    assert kept.stat().st_size == 3 + (1 << 20)


def test_what_fails_while_a_stream_is_looked_at_ends_the_copying(tmp_path: Path) -> None:
    def fail(came: int) -> None:
        raise RuntimeError("no more")

    read, write = os.pipe()
    with pytest.raises(RuntimeError, match="no more"):
        spool(Path(f"/dev/fd/{read}"), tmp_path / "kept", meanwhile=fail)
    os.write(write, b"x" * 9)
    with pytest.raises(TooLong, match="it is longer than 5 bytes"):
        spool(Path(f"/dev/fd/{read}"), tmp_path / "kept", 5, meanwhile=lambda came: None)
    os.close(read)
    os.close(write)
