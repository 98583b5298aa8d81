"""The parser of EDN: forms, streams of operations, and where broken text is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.foreign.edn import Keyword, parse, rows, written
from harness.foreign.source import BrokenText, Pieces


def read(tmp_path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    path = tmp_path / "h.edn"
    path.write_text(text, encoding="utf-8")
    return list(rows(Pieces(path)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        ("-7", -7),
        ("12N", 12),
        ("1.5e3", 1500.0),
        ("2.5M", 2.5),
        (":timed-out", "timed-out"),
        ('"a\\n\\"b\\u0041;"', 'a\n"bA;'),
        ("\\newline", "\n"),
        ("\\x", "x"),
        ("[1 (2, 3) #{4}]", (1, (2, 3), (4,))),
        ("[{:a 1, [1 2] {:b nil}}]", ({"a": 1, (1, 2): {"b": None}},)),
        ("[1 #_ {:gone [2]} 3 ; and a comment\n 4]", (1, 3, 4)),
        ('#inst "2020-01-01"', "2020-01-01"),
        ("#jepsen.history.Op{:index 0}", {"index": 0}),
        ("some/symbol", "some/symbol"),
    ],
)
def test_a_form_is_read_as_what_it_says(text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("value", [None, True, -3, 1.5, 'a "quoted"\n\\ line', [1, [None, "x"]], {"offset": 3}])
def test_what_is_written_is_read_back(value: Any) -> None:
    def frozen(item: Any) -> Any:
        return tuple(map(frozen, item)) if isinstance(item, list) else item

    assert parse(written(value)) == frozen(value)


def test_a_keyword_is_written_with_its_colon_again() -> None:
    assert written(parse("[:a {:b :c}]")) == "[:a {:b :c}]"
    assert isinstance(parse(":a"), Keyword)


LINES = "{:process 0, :f :read, :value nil, :time 5}\n{:process 1, :f :cas, :value [1 2], :time 7}\n"
OPERATIONS = [
    {"process": 0, "f": "read", "value": None, "time": 5},
    {"process": 1, "f": "cas", "value": (1, 2), "time": 7},
]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LINES, [1, 2]),
        (f"; a comment [\n[{LINES}]\n", [2, 3]),
        (f"({LINES})", [1, 2]),
        (LINES.replace("\n", " "), [1, 1]),
        (LINES.replace(",", "\n").replace("} ", "}\n"), [1, 5]),
        (LINES.replace("{:process", "#jepsen.history.Op{:process"), [1, 2]),
    ],
    ids=["lines", "vector", "list", "one-line", "spread-out", "tagged"],
)
def test_operations_stand_in_any_layout(tmp_path: Path, text: str, lines: list[int]) -> None:
    found = read(tmp_path, text)
    assert [row for _, row in found] == OPERATIONS
    assert [line for line, _ in found] == lines


def test_a_line_matched_whole_says_the_same_as_one_that_is_parsed(tmp_path: Path) -> None:
    values = ["3", "nil", ":x", '"a b"', "[1 nil]", '[:a "b"]', "-2.5", "true", '"\\"quoted\\""', "{:a [1]}", '"é"']
    line = "{{:process 1, :type :ok, :f :read, :value {}, :other [1 2]}}\n"
    text = "".join(line.format(value) for value in values)
    assert [row["value"] for _, row in read(tmp_path, text)] == [parse(value) for value in values]


def test_a_line_longer_than_a_piece_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.foreign.source.PIECE_BYTES", 7)
    text = f"[{LINES}]".replace("\n", " ").replace(":cas", '"a long string, é, \\" that is cut"')
    found = read(tmp_path, text)
    assert [row["f"] for _, row in found] == ["read", 'a long string, é, " that is cut']
    assert [row["time"] for _, row in found] == [5, 7]


@pytest.mark.parametrize(
    ("broken", "line", "reason"),
    [
        ("{:process 1, :type :inv", 3, "where its next key should be"),
        ("{:process 1, :type", 3, "where its next key should be"),
        ("{:process 1, :value [1 2}", 3, "']' was expected"),
        ("{:process 1, :value}", 3, "a key without a value"),
        ('{:process 1, :value "abc}', 3, "a string does not end"),
        (":process", 3, "an operation must be a map"),
        ("{:process 12x}", 3, "is no number"),
        ("]", 3, "nothing is open"),
    ],
)
def test_broken_text_is_told_with_the_line_of_its_operation(
    tmp_path: Path, broken: str, line: int, reason: str
) -> None:
    text = LINES + broken + "\n" + LINES * 100
    with pytest.raises(BrokenText) as caught:
        read(tmp_path, text)
    assert caught.value.line == line
    assert reason in caught.value.reason


@pytest.mark.parametrize("text", [f"[{LINES}", LINES + "{:process 1,", LINES + '{:value "abc'])
def test_a_file_that_was_cut_off_is_broken(tmp_path: Path, text: str) -> None:
    with pytest.raises(BrokenText, match="ends"):
        read(tmp_path, text)


def test_text_that_is_not_utf_8_is_broken_in_its_line(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_bytes(LINES.encode() + b'{:value "\xff"}\n')
    with pytest.raises(BrokenText) as caught:
        list(rows(Pieces(path)))
    assert caught.value.line == 3
