"""What is read of a history: the columns and the members of values that were asked for, and their rows as they were."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.history_batches import BATCH_ROWS, batch_schema, batches, history_rows, row_group_batches
from harness.record.history import MalformedHistory

ROWS = [
    {"index": 0, "value": {"message": 7, "offset": None, "messages": None, "sizes": [("a", 1)]}},
    {"index": 1, "value": None},
    {"index": 2, "value": {"message": None, "offset": 3, "messages": [], "sizes": None}},
    {"index": 3, "value": {"message": 8, "offset": 4, "messages": [{"offset": 5, "message": 9}, None], "sizes": []}},
]
MESSAGES = pa.list_(pa.struct([("offset", pa.int64()), ("message", pa.int64())]))
VALUE = pa.struct(
    [
        ("sizes", pa.map_(pa.string(), pa.int64())),
        ("message", pa.int64()),
        ("offset", pa.int64()),
        ("messages", MESSAGES),
        ("messages_read", pa.int64()),
    ]
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "history.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS, schema=pa.schema([("index", pa.int64()), ("value", VALUE)])), path)
    return path


def read(path, *columns):
    table = pa.concat_tables(row_group_batches(path, [0], columns))
    assert table.schema == batch_schema(path, columns)
    return table


def test_members_are_read_alone_and_with_the_nulls_of_what_they_are_in(path):
    table = read(path, "value.messages.offset", "index", "value.message")
    assert table.column_names == ["value", "index"]
    assert table["value"].to_pylist() == [
        {"message": 7, "messages": None},
        None,
        {"message": None, "messages": []},
        {"message": 8, "messages": [{"offset": 5}, None]},
    ]


def test_a_member_of_a_name_is_not_taken_for_one_deeper_inside(path):
    assert read(path, "value.offset")["value"].to_pylist() == [{"offset": None}, None, {"offset": 3}, {"offset": 4}]


def test_a_name_brings_all_that_is_inside_and_nothing_that_only_begins_like_it(path):
    assert read(path, "value.messages").schema.field("value").type == pa.struct([("messages", MESSAGES)])
    assert read(path, "value").schema.field("value").type == VALUE


def test_a_column_without_any_of_the_members_is_null(path):
    table = read(path, "index", "value.group", "value.resumed")
    assert table["value"].type == pa.null()
    assert table["index"].to_pylist() == [0, 1, 2, 3]


def test_a_missing_column_is_an_error_that_names_it(path):
    with pytest.raises(MalformedHistory, match="column 'process' is missing; there are: index, value"):
        batch_schema(path, ("index", "process"))


def test_rows_in_memory_come_whole_in_one_chunk_with_dictionaries_and_nulls_for_what_is_missing():
    rows = [{"index": i, "node": f"n{i % 2}", "value": row["value"]} for i, row in enumerate(ROWS)]
    whole = pa.Table.from_pylist(
        rows, schema=pa.schema([("index", pa.int64()), ("node", pa.string()), ("value", VALUE)])
    )
    table = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    columns = ("value.message", "node")
    (batch,) = batches(table, columns)
    assert batch.schema == batch_schema(table, columns)
    assert batch["node"].num_chunks == 1
    assert batch["node"].type == pa.dictionary(pa.int32(), pa.string())
    assert batch.to_pylist() == whole.select(["value", "node"]).to_pylist()
    with pytest.raises(MalformedHistory, match="column 'process' is missing; there are: index, node, value"):
        batch_schema(table, ("process",))


def test_many_rows_in_memory_come_in_bounded_pieces():
    table = pa.table({"index": range(BATCH_ROWS + 5)})
    assert history_rows(table) == BATCH_ROWS + 5
    assert [batch.num_rows for batch in batches(table, ("index",))] == [BATCH_ROWS, 5]
