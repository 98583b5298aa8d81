"""Histories on disk: what is written is what is read, whatever kills the writer, and nothing else is taken for one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import HarnessError
from harness.operation import Operation
from harness.record.history import (
    COLUMNS,
    NO_PARTNER,
    HistoryWriter,
    MalformedHistory,
    close_torn,
    history_schema,
    pairs,
    read_history,
    require_history,
    table_of,
)
from harness.record.history.parquet import ROW_GROUP_ROWS

VALUE = pa.struct([("value", pa.int64()), ("seen", pa.list_(pa.struct([("offset", pa.int64())])))])


def operations(count: int) -> list[Operation]:
    """Two rows an operation, ten processes, some values null, some nested."""
    rows: list[Operation] = []
    for number in range(count // 2):
        process, f = number % 10, "poll" if number % 3 == 0 else f"send-{number // 500}"
        value = None if f == "poll" else {"value": number, "seen": None}
        answer = {"value": None, "seen": [{"offset": number}, {"offset": None}]} if f == "poll" else value
        rows.append(Operation(process, "invoke", f, value, f"t/{number % 4}", number * 10))
        outcome = ("ok", None, "n1") if number % 7 else ("fail", "not-master", None)
        rows.append(Operation(process, outcome[0], f, answer, f"t/{number % 4}", number * 10 + 5, *outcome[1:]))  # type: ignore[arg-type]
    return [row._replace(index=index) for index, row in enumerate(rows)]


def write(path: Path, rows: Sequence[Operation], *, flush_every: int = 0) -> Path:
    writer = HistoryWriter(path, VALUE)
    for number, row in enumerate(rows, start=1):
        writer.append(row)
        if flush_every and number % flush_every == 0:
            writer.flush()
    return writer.close()


def parquet(path: Path, rows: Sequence[Operation], **columns: list[Any]) -> Path:
    """A history from another program: plain strings, and whatever a test wants to be wrong."""
    plain: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    table = {**plain, **columns}
    types = {"value": VALUE, "process": pa.int32(), "key": pa.string(), "error": pa.string(), "node": pa.string()}
    pq.write_table(pa.table({name: pa.array(data, types.get(name)) for name, data in table.items()}), path)
    return path


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    rows = operations(3_000)
    history = read_history(write(tmp_path / "history.arrows", rows))
    assert list(history) == rows
    assert history.operations == 3_000
    assert history.complete
    assert history.value_type == VALUE
    assert history.table().schema.types == history_schema(VALUE).types
    assert not (tmp_path / "history.arrows").exists()


def test_append_numbers_operations_densely(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.arrows", VALUE)
    assert [writer.append(row) for row in operations(4)] == [0, 1, 2, 3]
    assert writer.operations == 4
    writer.close()


def test_an_empty_history_is_one(tmp_path: Path) -> None:
    history = read_history(write(tmp_path / "history.arrows", []))
    assert list(history) == []
    assert history.table().num_rows == 0


def test_parquet_bytes_depend_on_the_rows_alone(tmp_path: Path) -> None:
    rows = operations(2_000)
    often, seldom = tmp_path / "often", tmp_path / "seldom"
    often.mkdir()
    seldom.mkdir()
    first = write(often / "history.arrows", rows, flush_every=37)
    second = write(seldom / "history.arrows", rows)
    assert first.read_bytes() == second.read_bytes()


def test_row_groups_have_a_fixed_size_so_that_spark_can_split(tmp_path: Path) -> None:
    path = write(tmp_path / "history.arrows", operations(2 * ROW_GROUP_ROWS + 10))
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert sizes == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 10]
    assert read_history(path).operations == 2 * ROW_GROUP_ROWS + 10


def test_flushed_operations_are_readable_while_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    writer = HistoryWriter(path, VALUE)
    rows = operations(100)
    for row in rows:
        writer.append(row)
    writer.flush()
    history = read_history(path)
    assert list(history) == rows
    assert not history.complete
    writer.close()


def test_at_most_a_thousand_operations_are_not_durable(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    writer = HistoryWriter(path, VALUE)
    for row in operations(20_000):
        index = writer.append(row)
        if index % 5_000 == 4_999:
            assert read_history(path).operations > index - 1_000
    writer.close()


KILLED = """
    import os, sys, time
    sys.path.insert(0, sys.argv[2])
    from pathlib import Path
    from test_history import VALUE, operations
    from harness.record.history import HistoryWriter, read_history

    path = Path(sys.argv[1])
    writer = HistoryWriter(path, VALUE)
    for row in operations(5_000):
        writer.append(row)
    for _ in range(200):  # no further append, no flush: the writer has to do it by itself
        if read_history(path).operations == 5_000:
            break
        time.sleep(0.01)
    os.kill(os.getpid(), 9)
"""


def test_a_writer_that_is_killed_has_flushed_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    here = str(Path(__file__).parent)
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path), here], timeout=600, check=False)
    assert killed.returncode == -9
    recovered = close_torn(path)
    assert recovered.operations == 5_000
    assert list(read_history(recovered.parquet)) == operations(5_000)


def test_a_stream_torn_at_any_byte_keeps_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    writer = HistoryWriter(path, VALUE)
    rows = operations(60)
    ends = []
    for part in range(3):
        for row in rows[part * 20 : part * 20 + 20]:
            writer.append(row)
        writer.flush()
        ends.append(path.stat().st_size)
    whole = path.read_bytes()
    writer.close()
    torn = tmp_path / "torn.arrows"
    for size in range(ends[0], ends[2] + 1, 7):
        torn.write_bytes(whole[:size])
        history = read_history(torn)
        kept = sum(size >= end for end in ends) * 20
        assert list(history) == rows[:kept], size
        assert not history.complete
    torn.write_bytes(whole[: ends[2] - 3])
    recovered = close_torn(torn)
    assert str(recovered) == f"40 operations recovered, {ends[2] - 3 - ends[1]} torn bytes dropped"
    assert list(read_history(recovered.parquet)) == rows[:40]


def test_a_tail_of_zeros_as_left_by_power_loss_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    writer = HistoryWriter(path, VALUE)
    for row in operations(20):
        writer.append(row)
    writer.flush()
    torn = tmp_path / "torn.arrows"
    torn.write_bytes(path.read_bytes() + bytes(512))
    writer.close()
    assert close_torn(torn).operations == 20
    assert not read_history(torn).complete


def test_closing_a_torn_stream_gives_the_same_bytes_as_closing_properly(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    writer = HistoryWriter(path, VALUE)
    for row in operations(500):
        writer.append(row)
    writer.flush()
    (tmp_path / "killed.arrows").write_bytes(path.read_bytes())
    assert close_torn(tmp_path / "killed.arrows").parquet.read_bytes() == writer.close().read_bytes()


@pytest.mark.parametrize("size", [0, 3, 200])
def test_a_stream_torn_within_its_schema_says_that_nothing_was_recorded(tmp_path: Path, size: int) -> None:
    path = tmp_path / "history.arrows"
    HistoryWriter(path, VALUE).flush()
    torn = tmp_path / "torn.arrows"
    torn.write_bytes(path.read_bytes()[:size])
    with pytest.raises(MalformedHistory, match="nothing was recorded"):
        read_history(torn)
    with pytest.raises(MalformedHistory, match="nothing was recorded"):
        close_torn(torn)


def test_a_writer_never_writes_over_a_history(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    path.write_bytes(b"precious")
    with pytest.raises(HarnessError, match="File exists"):
        HistoryWriter(path, VALUE)
    assert path.read_bytes() == b"precious"


FULL = """
    import resource, signal, sys
    sys.path.insert(0, sys.argv[2])
    from pathlib import Path
    from test_history import VALUE, operations
    from harness.errors import HarnessError
    from harness.record.history import HistoryWriter

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
    writer = HistoryWriter(Path(sys.argv[1]), VALUE)
    try:
        for row in operations(20_000):
            writer.append(row)
            if writer.operations % 100 == 0:
                writer.flush()
    except HarnessError as error:
        print(error)
    try:
        writer.close()
    except HarnessError as error:
        print("close:", error)
"""


def test_a_disk_without_room_is_an_error_that_says_what_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "history.arrows"
    here = str(Path(__file__).parent)
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(path), here], capture_output=True, text=True, timeout=600
    )
    safe = read_history(path).operations
    assert 0 < safe < 20_000
    message = f"history cannot be written to {path}: File too large; the first {safe} operations are safe there"
    assert ended.stdout.startswith(message), ended
    assert f"close: {message}" in ended.stdout
    assert list(read_history(path)) == operations(20_000)[:safe]


@pytest.mark.parametrize(
    ("value", "reason"),
    [({"value": "seventeen"}, "do not fit"), ({"velue": 17}, r"fields \['velue'\] that the workload's type")],
)
def test_a_value_that_does_not_fit_the_workloads_type_is_an_error(
    tmp_path: Path, value: dict[str, Any], reason: str
) -> None:
    writer = HistoryWriter(tmp_path / "history.arrows", VALUE)
    writer.append(Operation(0, "invoke", "write", {"value": 1}, None, 0))
    writer.flush()
    writer.append(Operation(1, "invoke", "write", value, None, 0))
    with pytest.raises(HarnessError, match=reason):
        writer.flush()
    with pytest.raises(HarnessError, match="from row 1 on"):
        writer.append(Operation(2, "invoke", "write"))
    with pytest.raises(HarnessError, match=reason):
        writer.close()
    assert read_history(tmp_path / "history.arrows").operations == 1


def test_histories_of_other_programs_may_use_plain_strings(tmp_path: Path) -> None:
    rows = operations(200)
    history = read_history(parquet(tmp_path / "foreign.parquet", rows))
    assert list(history) == rows
    assert history.table().schema.types == history_schema(VALUE).types


def changed(rows: Sequence[Operation], position: int, **fields: Any) -> list[Operation]:
    return [row._replace(**fields) if index == position else row for index, row in enumerate(rows)]


def renumbered(rows: Sequence[Operation]) -> list[Operation]:
    return [row._replace(index=index, time=index) for index, row in enumerate(rows)]


INVOKE = Operation(3, "invoke", "send")
BROKEN: list[tuple[str, list[Operation], int, str]] = [
    ("no invocation", renumbered([INVOKE._replace(type="ok")]), 0, "process 3 has ok of send without an open invoca"),
    ("completed twice", renumbered([INVOKE, *[INVOKE._replace(type="ok")] * 2]), 2, "without an open invocation"),
    ("two open", renumbered([INVOKE, INVOKE]), 1, "process 3 invokes send while its send is still open"),
    ("another f", renumbered([INVOKE, INVOKE._replace(type="ok", f="poll")]), 1, "completes poll, but what it has op"),
    (
        "reused",
        renumbered([INVOKE, INVOKE._replace(type="info"), INVOKE]),
        2,
        r"used again \(invoke send\) after an in",
    ),
    ("back", changed(operations(20), 7, time=3), 7, "time runs back: 3 ns after 30 ns in the row before"),
    ("negative", changed(operations(20), 0, time=-5), 0, "at least 0, it is -5"),
    ("gap", changed(operations(20), 4, index=5), 4, "index must be 4 .* it is 5"),
    ("type", changed(operations(20), 5, type="done"), 5, "type must be one of invoke, ok, fail, info, it is 'done'"),
    ("process", changed(operations(20), 5, process=-2), 5, "process must be -1"),
    ("null", changed(operations(20), 5, f=None), 5, "f is null"),
]


@pytest.mark.parametrize(("name", "rows", "position", "reason"), BROKEN, ids=[case[0] for case in BROKEN])
def test_what_is_no_history_is_refused_with_row_and_reason(
    tmp_path: Path, name: str, rows: list[Operation], position: int, reason: str
) -> None:
    with pytest.raises(MalformedHistory, match=reason) as caught:
        read_history(parquet(tmp_path / "history.parquet", rows))
    assert caught.value.position == position
    assert f"history.parquet: row {position}: " in str(caught.value)


def test_processes_are_followed_across_batches(tmp_path: Path) -> None:
    rows = operations(ROW_GROUP_ROWS - 2)
    rest = [
        Operation(90, "invoke", "send"),
        Operation(91, "invoke", "send"),
        Operation(91, "info", "send"),
        Operation(90, "ok", "send"),
        Operation(91, "invoke", "send"),
    ]
    with pytest.raises(MalformedHistory, match="process 91 is used again") as caught:
        read_history(parquet(tmp_path / "history.parquet", renumbered([*rows, *rest])))
    assert caught.value.position == ROW_GROUP_ROWS + 2


def test_open_invocations_at_the_end_and_anything_of_the_nemesis_are_legal(tmp_path: Path) -> None:
    start = Operation(-1, "info", "start-partition")
    rows = renumbered([INVOKE, start, start, start._replace(type="invoke"), start])
    assert read_history(parquet(tmp_path / "history.parquet", rows)).operations == 5


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"process": ["one"] * 4}, "column 'process' must be int32, it is string"),
        ({"value": [1] * 4}, "column 'value' must be a struct"),
        ({"type": [1] * 4}, "column 'type' must be a string"),
    ],
)
def test_wrong_columns_are_named(tmp_path: Path, columns: dict[str, list[Any]], reason: str) -> None:
    rows = operations(4)
    plain: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    pq.write_table(pa.table({**plain, **columns}), tmp_path / "history.parquet")
    with pytest.raises(MalformedHistory, match=reason) as caught:
        read_history(tmp_path / "history.parquet")
    assert caught.value.position is None


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = parquet(tmp_path / "history.parquet", operations(4))
    pq.write_table(pq.read_table(path).drop_columns(["node"]), path)
    with pytest.raises(MalformedHistory, match=r"column 'node' \(string\) is missing; there are index"):
        read_history(path)


def test_a_truncated_parquet_file_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    path = parquet(tmp_path / "history.parquet", operations(400))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(MalformedHistory, match=r"not a Parquet file, or a part of one .* check the \.arrows file"):
        read_history(path)


def test_a_history_that_is_not_there_is_an_error_of_the_harness(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="cannot be read"):
        read_history(tmp_path / "history.parquet")


def test_pairs_finds_partners_in_any_part_of_a_history_in_any_order() -> None:
    index = np.array([9, 2, 5, 0, 7, 3, 4], dtype=np.int64)
    process = np.array([2, 1, 1, 2, 1, 2, 3], dtype=np.int32)
    invoked = np.array([True, True, False, True, True, False, False])
    assert pairs(index, process, invoked).tolist() == [NO_PARTNER, 2, 1, 5, NO_PARTNER, 3, NO_PARTNER]


def test_closing_that_failed_loses_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.arrows", VALUE)
    for row in operations(10):
        writer.append(row)
    (tmp_path / "history.parquet").mkdir()
    with pytest.raises(HarnessError, match="Is a directory; the first 10 operations are safe"):
        writer.close()
    assert read_history(tmp_path / "history.arrows").operations == 10
    (tmp_path / "history.parquet").rmdir()
    assert list(read_history(writer.close())) == list(read_history(writer.close())) == operations(10)


def test_the_writer_leaves_only_the_parquet_file(tmp_path: Path) -> None:
    write(tmp_path / "history.arrows", operations(10))
    assert os.listdir(tmp_path) == ["history.parquet"]


@pytest.mark.parametrize("count", [0, 300])
def test_a_history_in_memory_holds_what_a_written_one_does(tmp_path: Path, count: int) -> None:
    table = table_of(operations(count), VALUE)
    require_history(table)
    assert table.num_rows == count
    assert table.to_pylist() == pq.read_table(write(tmp_path / "h.arrows", operations(count))).to_pylist()


def test_a_history_in_memory_is_refused_for_the_same_reasons() -> None:
    table = table_of([*operations(10), *operations(2)], VALUE)
    with pytest.raises(MalformedHistory, match="row 10: time runs back"):
        require_history(table)
    with pytest.raises(MalformedHistory, match=r"column 'node' .* is missing"):
        require_history(table.drop_columns(["node"]))
