"""Completions that say what was not asked, wherever a history is cut into batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from checkers.asked import SHOWN, leaves_out
from checkers.completions import CompletionEchoes, members, parts
from harness.record.history import MalformedHistory, history_schema

PART = pa.struct([("f", pa.string()), ("key", pa.string()), ("value", pa.int64())])
VALUE = pa.struct([("value", pa.int64()), ("words", pa.string()), ("txn", pa.list_(PART))])

Row = tuple[int, str, str, Any]
"""Process, type, f, value."""

WRITES = (members("write"),)
TXNS = (parts("txn", written=("w",)),)
SENDS = (parts("txn", written=("w",), among=("w",)),)


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"index": i, "time": i, "process": process, "type": kind, "f": f, "value": value}
            for i, (process, kind, f, value) in enumerate(rows)
        ],
        schema=history_schema(VALUE),
    )


def malformed_at(rows: list[Row], repeats: tuple[CompletionEchoes, ...]) -> int | None:
    """The row at which a history is refused."""
    try:
        leaves_out(table(rows), repeats)
    except MalformedHistory as error:
        return error.position
    return None


def write(process: int, kind: str, number: int | None, f: str = "write") -> Row:
    return process, kind, f, {"value": number, "words": None, "txn": None}


def txn(process: int, kind: str, *does: str) -> Row:
    """`r x`, `w x 1`."""
    words = [one.split() for one in does]
    part = [{"f": f, "key": key, "value": int(rest[0]) if rest else None} for f, key, *rest in words]
    return process, kind, "txn", {"value": None, "words": None, "txn": part if does else None}


SLOW = [
    write(1, "invoke", 1),
    write(0, "invoke", 2),
    write(0, "ok", 2),
    write(0, "invoke", 3),
    write(2, "invoke", 7),
    write(0, "ok", 3),
    write(0, "invoke", 4),
    write(2, "ok", 7),
    write(0, "ok", 4),
    write(1, "ok", 1),
]
"""Process 1 takes as long as all others together."""


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 4, 5, 1_000])
def test_what_was_asked_is_remembered_from_batch_to_batch(batch_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    assert malformed_at(SLOW, WRITES) is None
    for row in (2, 5, 7, 8, 9):
        process, kind, f, value = SLOW[row]
        wrong = [*SLOW[:row], (process, kind, f, value | {"value": 99}), *SLOW[row + 1 :]]
        assert malformed_at(wrong, WRITES) == row
        wrong = [write(p, k, 98 if n > row and k == "ok" else v["value"]) for n, (p, k, _, v) in enumerate(wrong)]
        assert malformed_at(wrong, WRITES) == row, "the first of several"


@pytest.mark.parametrize("batch_rows", [1, 1_000])
@pytest.mark.parametrize(
    ("rows", "repeats", "is_malformed"),
    [
        ([write(0, "invoke", 1), write(0, "ok", None)], WRITES, False),
        ([write(0, "invoke", None), write(0, "ok", 1)], WRITES, True),
        ([write(0, "invoke", 1), write(0, "info", 2)], WRITES, False),
        ([write(0, "invoke", 1), write(0, "ok", 2)], (members("write"), members("read")), True),
        ([write(0, "invoke", 1, "read"), write(0, "ok", 2, "read")], WRITES, False),
        ([write(0, "invoke", 1, "read"), write(0, "ok", 2, "read")], (*WRITES, members("read")), True),
        ([txn(0, "invoke", "w x 1", "r y"), txn(0, "ok", "w x 1", "r y 5")], TXNS, False),
        ([txn(0, "invoke", "w x 1", "r y"), txn(0, "ok", "w x 2", "r y 5")], TXNS, True),
        ([txn(0, "invoke", "w x 1", "r y"), txn(0, "ok", "w y 1", "r y 5")], TXNS, True),
        ([txn(0, "invoke", "w x 1", "r y"), txn(0, "ok", "r y 5", "w x 1")], TXNS, True),
        ([txn(0, "invoke", "w x 1", "r y"), txn(0, "ok", "w x 1")], TXNS, True),
        ([txn(0, "invoke", "w x 1", "w x 1"), txn(0, "ok", "w x 1")], TXNS, True),
        ([txn(0, "invoke", "w x 1"), txn(0, "ok")], TXNS, False),
        ([txn(0, "invoke", "r x", "w x 1"), txn(0, "ok", "r x", "r y", "w x 1")], TXNS, True),
        ([txn(0, "invoke", "r x", "w x 1"), txn(0, "ok", "r x", "r y", "w x 1")], SENDS, False),
        ([txn(0, "invoke", "r x", "w x 1", "w y 1"), txn(0, "ok", "w y 1", "w x 1")], SENDS, True),
        (
            [
                *(txn(1, "invoke", "w z 1", "w z 2", "w z 3"), txn(0, "invoke", "r x", "w x 1", "r x", "w y 1")),
                *(txn(0, "ok", "w x 1", "w y 1", "r x"), txn(1, "ok", "w z 1", "w z 2", "w z 3")),
            ],
            SENDS,
            False,
        ),
    ],
)
def test_a_completion_repeats_what_was_asked_or_leaves_it_out(
    rows: list[Row],
    repeats: tuple[CompletionEchoes, ...],
    is_malformed: bool,
    batch_rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    assert malformed_at(rows, repeats) == (len(rows) - 1 if is_malformed else None)


@pytest.mark.parametrize("batch_rows", [1, 1_000])
def test_words_are_repeated_as_numbers_are(batch_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)

    def words_row(asked: str | None, answered: str | None) -> list[Row]:
        return [
            (0, kind, "write", {"value": None, "words": words, "txn": None})
            for kind, words in (("invoke", asked), ("ok", answered))
        ]

    of_words = (members("write", of=("value", "words")),)
    for asked, answered, is_malformed in (("a", "a", False), ("a", None, False), ("a", "b", True), (None, "b", True)):
        assert malformed_at(words_row(asked, answered), of_words) == (1 if is_malformed else None)


def test_only_completions_that_are_meant_are_looked_at() -> None:
    of_ok = (replace(*WRITES, types=("ok",)),)
    for kind, is_malformed in (("ok", True), ("info", False), ("fail", False)):
        assert malformed_at([write(0, "invoke", 1), write(0, kind, 2)], of_ok) == (1 if is_malformed else None)


def test_what_was_looked_at_of_a_value_is_said() -> None:
    with pytest.raises(MalformedHistory) as refused:
        leaves_out(table([write(0, "invoke", 1), write(0, "ok", 2)]), WRITES)
    assert "write completes with 2, but was invoked with 1: a completion may" in str(refused.value)
    with pytest.raises(MalformedHistory) as refused:
        leaves_out(table([txn(0, "invoke", "w x 1"), txn(0, "ok", *["w x 1"] * SHOWN)]), TXNS)
    part = '{"f": "w", "key": "x", "value": 1}'
    assert f"txn completes with {f'[{part}, ' + f'{part}, ' * SHOWN:.{SHOWN}}…, but" in str(refused.value)
    assert f"was invoked with [{part}]: a completion may" in str(refused.value)
