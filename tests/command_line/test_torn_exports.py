"""Of a torn history what is whole is exported, the rest is counted, and nothing is passed off as all of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from harness.operation import Operation
from harness.record.history import HistoryWriter, read_history
from tests.command_line.answers import Stormproof

ALL, PART, WRONG_USAGE = 0, 2, 254


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """What a run leaves that is killed while it writes: three batches, and no end."""
    writer = HistoryWriter(tmp_path / "live.arrows", pa.struct([("value", pa.int64())]))
    for number in range(6):
        kind = "ok" if number % 2 else "invoke"
        value = {"value": number // 2}
        writer.append(Operation(index=number, process=0, type=kind, f="write", value=value, key=None, time=number))
        if number % 2:
            writer.flush()
    path = tmp_path / "history.arrows"
    shutil.copy(tmp_path / "live.arrows", path)
    writer.close()
    return path


def test_wherever_a_stream_is_cut_what_is_whole_is_exported_and_the_rest_counted(
    stormproof: Stormproof, stream: Path
) -> None:
    whole, seen = stream.read_bytes(), set()
    for size in range(0, len(whole) + 1, 8):
        stream.write_bytes(whole[:size])
        answer = stormproof("export", stream)
        lines = answer.out.splitlines()
        assert len(answer.err.splitlines()) == 1
        if lines:
            assert answer.code == PART
            history = read_history(stream)
            assert len(lines) == history.operations
            dropped = f", {history.dropped_bytes} torn bytes dropped" if history.dropped_bytes else ""
            assert answer.err == f"stormproof: {stream} is torn: {len(lines)} operations exported{dropped}\n"
        else:
            assert answer.code == WRONG_USAGE
            assert "nothing of it is whole" in answer.err or "the stream ends within its schema" in answer.err
        seen.add((answer.code, len(lines), "torn bytes" in answer.err))
    assert {(WRONG_USAGE, 0, True), (PART, 2, True), (PART, 4, True), (PART, 4, False), (PART, 6, False)} <= seen


def test_nothing_is_written_where_nothing_is_whole(stormproof: Stormproof, stream: Path) -> None:
    with pa.memory_map(str(stream)) as source:
        pa.ipc.open_stream(source)
        behind_the_schema = source.tell()
    stream.write_bytes(stream.read_bytes()[: behind_the_schema + 64])
    Path("out.edn").write_text("old")
    answer = stormproof("export", stream, "--output", "out.edn")
    assert answer.code == WRONG_USAGE
    assert "nothing of it is whole, 64 torn bytes dropped; run the test again" in answer.err
    assert Path("out.edn").read_text() == "old"


def test_the_directory_of_a_killed_run_is_torn_also_after_it_was_checked(
    stormproof: Stormproof, stored_run: Path, stream: Path, tmp_path: Path
) -> None:
    run = tmp_path / "killed"
    shutil.copytree(stored_run, run)
    (run / "history.parquet").unlink()
    shutil.copy(stream, run / "history.arrows")
    first = stormproof("export", run)
    assert (first.code, len(first.out.splitlines())) == (PART, 6)
    stormproof("check", run, "--engine", "inprocess")
    assert (run / "history.parquet").exists()
    assert stormproof("export", run) == first


def test_a_whole_history_is_exported_without_a_word(stormproof: Stormproof, stored_run: Path) -> None:
    answer = stormproof("export", stored_run, "--output", "out.edn")
    assert (answer.code, answer.out, answer.err) == (ALL, "", "")
    assert Path("out.edn").read_text().count("\n") == read_history(stored_run / "history.parquet").operations
