"""Histories and suites out of pipes and standard input, and nothing written where it was not asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line.answers import Answer, Stormproof

CHECK = ["--model", "register", "--engine", "inprocess", "--json"]
SOUND = """\
{:process 0, :type :invoke, :f :write, :value 1, :time -1}
{:process 0, :type :ok, :f :write, :value 1, :time -1}
{:process 0, :type :invoke, :f :read, :value nil, :time -1}
{:process 0, :type :ok, :f :read, :value 1, :time -1}
"""
STALE = SOUND.replace(":read, :value 1", ":read, :value 2")


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Path]:
    """Bytes in a pipe, as `<(…)` hands them over: /dev/fd/N."""

    def pipe(data: bytes) -> Path:
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        return Path(f"/dev/fd/{read}")

    return pipe


def on_standard_input(data: bytes, *arguments: str | Path) -> Answer:
    command = [sys.executable, "-m", "stormproof.cli.main", *map(str, arguments)]
    ran = subprocess.run(command, input=data, capture_output=True, check=False)
    return Answer(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


@pytest.fixture
def own(stormproof: Stormproof) -> dict[str, bytes]:
    """A history that is not valid, in each form."""
    Path("stale.edn").write_text(STALE)
    stormproof("check", "stale.edn", *CHECK)
    (parquet,) = Path("runs/checked").glob("stale-*/history.parquet")
    return {"text": STALE.encode(), "parquet": parquet.read_bytes()}


@pytest.mark.parametrize("form", ["text", "parquet"])
def test_a_history_out_of_a_pipe_is_judged_as_one_in_a_file(
    stormproof: Stormproof, own: dict[str, bytes], piped: Callable[[bytes], Path], form: str
) -> None:
    path = piped(own[form])
    answer = stormproof("check", path, *CHECK)
    assert (answer.code, answer.json["path"], answer.json["anomalies"]) == (1, str(path), {"nonlinearizable": 1})
    assert (Path(answer.json["directory"]) / "history.parquet").is_file()


def test_standard_input_is_a_history_or_a_suite_and_messages_call_it_so(own: dict[str, bytes]) -> None:
    answer = on_standard_input(own["parquet"], "check", "-", *CHECK)
    assert (answer.code, answer.json["path"]) == (1, "-")
    exported = on_standard_input(own["parquet"], "export", "-")
    assert (exported.code, exported.out.count(":process")) == (0, 4)
    broken = on_standard_input(own["text"][:-30], "check", "-", *CHECK)
    assert broken.json["passed_over"] == ["what stands from line 4, column 1 on (the text ends within an operation)"]
    assert on_standard_input(b'name = "a/b"', "suite", "-").err.startswith("stormproof: -: 'a/b' cannot be the name of")


def test_what_a_history_is_is_seen_from_its_bytes_whatever_it_is_called(
    stormproof: Stormproof, own: dict[str, bytes]
) -> None:
    Path("a.edn").write_bytes(own["parquet"])
    assert stormproof("check", "a.edn", *CHECK).code == 1
    assert stormproof("export", "a.edn").code == 0


def test_a_torn_stream_is_closed_in_its_report_and_not_over_what_lies_beside_it(
    stormproof: Stormproof, stored_run: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(stored_run / "history.parquet")
    with pa.ipc.new_stream("mine.arrows", table.schema) as stream:
        stream.write_table(table)
    Path("mine.parquet").write_text("precious")
    answer = stormproof("check", "mine.arrows", "--workload", "log", "--engine", "inprocess", "--json")
    assert answer.json["verdict"] == "valid"
    assert Path("mine.parquet").read_text() == "precious"
    assert sorted(path.name for path in Path().iterdir()) == ["mine.arrows", "mine.parquet", "runs"]


@pytest.mark.parametrize("times", [(-1, -1, -1, -1), (-1, 5, -1, 7), (3, -1, -1, 4)], ids=str)
def test_a_time_of_minus_one_is_none_alone_and_among_times(stormproof: Stormproof, times: tuple[int, ...]) -> None:
    for name, text in (("sound", SOUND), ("stale", STALE)):
        lines = [line.replace("-1}", f"{time}}}") for line, time in zip(text.splitlines(), times, strict=True)]
        Path(name).write_text("\n".join(lines))
    answer = stormproof("check", "sound", "stale", *CHECK)
    assert [json.loads(line)["verdict"] for line in answer.out.splitlines()] == ["valid", "invalid"]


def test_another_time_below_zero_is_passed_over_and_the_order_of_rows_counts(stormproof: Stormproof) -> None:
    Path("h").write_text(SOUND.replace("-1", "-2"))
    answer = stormproof("check", "h", *CHECK)
    assert answer.code == 0
    assert answer.json["passed_over"] == ["4 times that run back by up to 2 ns"]


@pytest.mark.parametrize("before", ["#_ " * 100_000 + "1 " * 100_000, "#_ #_ [1 #_ #_ 2 3] {:a #_b c} "])
def test_forms_are_discarded_however_many_in_a_row(stormproof: Stormproof, before: str) -> None:
    Path("h").write_text(before + SOUND)
    assert stormproof("check", "h", *CHECK).json["verdict"] == "valid"


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_the_exit_code_says_what_became_of_a_command_whose_streams_are_closed_or_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = f'exec "{sys.executable}" -m stormproof.cli.main run kafka {streams}'
    assert subprocess.run(["sh", "-c", command], check=False, stderr=subprocess.DEVNULL).returncode == 254


def test_standard_input_that_is_closed_or_named_twice_is_wrong_usage(stormproof: Stormproof) -> None:
    command = f'exec "{sys.executable}" -m stormproof.cli.main export - <&-'
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (254, "stormproof: - cannot be read: standard input is closed\n")
    assert "name it once" in stormproof("check", "-", "-", *CHECK).err
