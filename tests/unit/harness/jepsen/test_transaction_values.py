"""Transactions in foreign histories: read fast where they are plain, with the same result as one by one."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from checkers.transactions.history.micro_operations import TRANSACTION
from harness.jepsen import Format, Shape, convert, exported
from harness.jepsen.edn import Keyword, written
from harness.record.history import MalformedHistory, read_history

TRANSACTIONS = Shape(value_type=TRANSACTION, functions=("txn",))
Rows = list[dict[str, Any]]


class OneByOne(Shape):
    """A shape without the fast path."""

    @property
    def transactions(self) -> None:
        return None


def converted(directory: Path, text: str, shape: Shape = TRANSACTIONS) -> Rows:
    (directory / "foreign").write_text(text, encoding="utf-8")
    convert(directory / "foreign", directory / "history.parquet", shape)
    return read_history(directory / "history.parquet").table().to_pylist()


def edn(*values: str) -> str:
    return "".join(
        f"{{:process {number}, :type :invoke, :f :txn, :value {text}}}\n" for number, text in enumerate(values)
    )


def json_lines(*values: str) -> str:
    return "".join(
        f'{{"process": {number}, "type": "invoke", "f": "txn", "value": {text}}}\n'
        for number, text in enumerate(values)
    )


def micro_operations(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(part["f"], part["key"], part["value"], part["values"]) for part in row["value"]["txn"]]


GAPS = (" ", ", ", "  ", ",")
WORDS = (
    "4",
    "-7",
    "0",
    "nil",
    "null",
    ":r",
    ":w",
    ":append",
    ":x",
    '"4"',
    '"x y"',
    '"x"',
    "x",
    "[1 2]",
    "[]",
    "[1, nil]",
)
WORDS += (
    "007",
    "-0",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "{}",
    '"r"',
    '"\\n"',
)
WORDS += (
    "999999999999999999",
    "1000000000000000000",
    "é",
    '"é"',
    "true",
    "#{1}",
    "[[1]]",
    ":-5",
    '"-5"',
    ":5",
    "+5",
    "",
)


def random_value(rng: random.Random) -> str:
    """Mostly a transaction."""
    parts = []
    for _ in range(rng.randrange(4)):
        words = [
            rng.choice((":r", ":w", ":append")),
            rng.choice(("4", ":x", '"y"')),
            rng.choice(("nil", "5", "[1 22]")),
        ]
        if rng.random() < 0.2:
            words[rng.randrange(3)] = rng.choice(WORDS)
        if rng.random() < 0.03:
            words.append(rng.choice(WORDS))
        blank = rng.choice(("", "", " "))
        parts.append(f"[{blank}{rng.choice(GAPS).join(words)}{blank}]")
    return f"[{rng.choice((*GAPS, '')).join(parts)}]"


def converted_or_refused(directory: Path, text: str, shape: Shape) -> Rows | str:
    try:
        return converted(directory, text, shape)
    except MalformedHistory as malformed:
        return str(malformed)


def assert_the_same_one_by_one(directory: Path, text: str) -> bool:
    """Whether it was a history."""
    one_by_one = OneByOne(value_type=TRANSACTION, functions=("txn",))
    fast = converted_or_refused(directory, text, TRANSACTIONS)
    assert fast == converted_or_refused(directory, text, one_by_one), text
    return isinstance(fast, list)


def test_plain_transactions_mean_what_they_mean_one_by_one(tmp_path: Path) -> None:
    rng = random.Random(5)
    texts = [random_value(rng) for _ in range(150)]
    histories = [text for text in texts if assert_the_same_one_by_one(tmp_path, edn("[[:r 1 nil]]", text))]
    assert 80 < len(histories) < 148
    assert assert_the_same_one_by_one(tmp_path, edn(*histories))


def test_plain_transactions_mean_the_same_in_json(tmp_path: Path) -> None:
    rng = random.Random(6)
    swapped = ((":r", '"r"'), (":w", '"w"'), (":append", '"append"'), (":x", '"x"'), ("nil", "null"))
    histories = 0
    for _ in range(150):
        text = random_value(rng)
        for old, new in swapped:
            text = text.replace(old, new)
        if rng.random() < 0.8:
            text = (
                text.replace(",", " ")
                .replace("  ", " ")
                .strip()
                .replace("[ ", "[")
                .replace(" ]", "]")
                .replace(" ", ", ")
            )
            text = text.replace("][", "], [")
        histories += assert_the_same_one_by_one(tmp_path, json_lines('[["r", 1, null]]', text))
    assert 40 < histories < 148


def test_a_list_and_a_register_are_read(tmp_path: Path) -> None:
    (row,) = converted(tmp_path, edn('[[:append 4 7] [:r 4 [1 -7]] [:r "x" []] [:w :y 2] [:r y nil]]'))
    assert micro_operations(row) == [
        ("append", "4", 7, None),
        ("r", "4", None, [1, -7]),
        ("r", "x", None, []),
        ("w", "y", 2, None),
        ("r", "y", None, None),
    ]


def test_a_string_is_another_key_than_the_integer_that_it_reads_like(tmp_path: Path) -> None:
    (row,) = converted(
        tmp_path, edn('[[:r 4 nil] [:r "4" nil] [:r "\\"4\\"" nil] [:r "-4" nil] [:r :4 nil] [:r :x nil] [:r "x" nil]]')
    )
    assert [key for _, key, *_ in micro_operations(row)] == ["4", '"4"', '"\\"4\\""', '"-4"', '"4"', "x", "x"]


@pytest.mark.parametrize("form", Format)
def test_what_was_exported_is_read_again_with_the_same_keys(tmp_path: Path, form: Format) -> None:
    rows = converted(tmp_path, edn('[[:r 4 nil] [:r "4" [1]] [:append "\\"4\\"" 1] [:w x 1]]'))
    text = io.StringIO()
    text.writelines(exported(read_history(tmp_path / "history.parquet"), form))
    assert converted(tmp_path, text.getvalue()) == rows


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("[[:r 1 nil nil]]", r"must be \[f key value\], it is"),
        ("[[:inc 1 1]]", "with f of r, w, append, it is"),
        ("[[nil 1 1]]", "with f of r, w, append, it is"),
        ("[[:r {:a 1} nil]]", "a key must be an integer, a keyword or a string, it is {:a 1}"),
        ("[[:r nil nil]]", "a key must be an integer, a keyword or a string, it is nil"),
        ("[[:r 1.0 nil]]", "a key must be an integer, a keyword or a string, it is 1.0"),
        ("[[:w 1 1.0]]", "must be integers of 64 bits, or lists of them, it is 1.0"),
        ("[[:w 1 :x]]", "must be integers of 64 bits, or lists of them, it is :x"),
        ("[[:w 1 true]]", "must be integers of 64 bits, or lists of them, it is true"),
        ("[[:r 1 [1 nil]]]", r"must be integers of 64 bits, or lists of them, it is \[1 nil\]"),
        ("[[:r 1 {:a 1}]]", "must be integers of 64 bits, or lists of them"),
        ("[[:w 1 9223372036854775808]]", "must be integers of 64 bits, or lists of them, it is 9223372036854775808"),
        ("[[:w 1 -9223372036854775808]]", "which stands for null"),
        ("[{:f :w :key 1 :vale 1}]", "a part of a transaction has f, key, value, values"),
        ("[{:f :w :key 1 :value 1.5}]", "must be integers of 64 bits, or lists of them, it is 1.5"),
        ("[{:f :inc :key 1 :value 1}]", "with f of r, w, append, it is"),
    ],
)
def test_what_is_no_transaction_is_refused_with_its_place(tmp_path: Path, value: str, reason: str) -> None:
    with pytest.raises(MalformedHistory, match=f"line 3, row 2: .*{reason}"):
        converted(tmp_path, edn("[[:r 1 nil]]", "[[:w 1 1]]", value))


def test_a_transaction_alone_among_lifted_ones_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match=r"line 2, row 1: value must be \[key value\]"):
        converted(tmp_path, edn("[7 [[:r 1 nil]]]", "[[:r 1 nil]]"))


def test_rows_of_the_nemesis_are_no_transactions(tmp_path: Path) -> None:
    text = edn("[[:r 1 nil]]") + "{:process :nemesis, :type :info, :f :kill, :value [[:r 1 nil]]}\n"
    assert [row["value"] is None or row["value"]["txn"] for row in converted(tmp_path, text)][1] in (None, True)


def test_an_operation_of_a_workload_with_one_function_may_leave_it_out(tmp_path: Path) -> None:
    text = "{:process 0, :type :invoke, :f nil, :value [[:r 1 nil]]}\n{:process 0, :type :ok, :value [[:r 1 [1]]]}\n"
    assert [row["f"] for row in converted(tmp_path, text)] == ["txn", "txn"]
    with pytest.raises(MalformedHistory, match="f must be a keyword, it is nil"):
        converted(tmp_path, text, Shape(value_type=TRANSACTION, functions=("read", "txn")))


def test_blocks_and_their_ends_leave_transactions_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [written([[Keyword("append"), n % 7, n], [Keyword("r"), n % 5, list(range(n % 9))]]) for n in range(3_000)]
    whole = converted(tmp_path, edn(*texts))
    monkeypatch.setattr("harness.jepsen.source.BLOCK_BYTES", 1_000)
    monkeypatch.setattr("harness.jepsen.source.SNIFFED_BYTES", 1_000)
    assert converted(tmp_path, edn(*texts)) == whole
    assert [micro_operations(row)[1][3] for row in whole] == [list(range(n % 9)) for n in range(3_000)]
    as_json = [json.dumps([["append", n % 7, n], ["r", n % 5, list(range(n % 9))]]) for n in range(3_000)]
    assert [row["value"] for row in converted(tmp_path, json_lines(*as_json))] == [row["value"] for row in whole]
