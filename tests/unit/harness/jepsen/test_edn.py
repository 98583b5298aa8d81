"""The parser of EDN: forms, streams of operations, and where broken text is broken."""

from __future__ import annotations

from typing import Any

import pytest

from harness.jepsen.edn import Keyword, parse, sequence, written
from harness.jepsen.source import BrokenText


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


@pytest.mark.parametrize("text", ['""', '"x 1 y"', r'"a \"b\""', '"é"', '";#[1"', '"one" "two"', '"open', '"\n"'])
def test_a_string_is_read_alike_by_itself_and_among_others(text: str) -> None:
    try:
        among = sequence(text.encode())
    except BrokenText:
        among = ()
    if len(among) == 1:
        assert parse(text) == among[0]
    else:
        with pytest.raises(BrokenText):
            parse(text)
