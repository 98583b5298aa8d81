"""How answers to administrators look: aligned for people, with stable names for machines, harmless for terminals."""

from __future__ import annotations

import json

from system_under_test.remoting.client_error import ClientError
from workloads.systems.rocketmq.admin.report import Report

ROWS = (
    {"name": "broker-a", "id": 1, "alive": True, "members": [1, 2], "at": None},
    {"name": "b", "id": 12345, "alive": False, "members": [], "at": "\x1b[2Jx\ny\x7f"},
)
COLUMNS = ("name", "id", "alive", "members", "at")


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert Report(command="c", columns=COLUMNS, rows=ROWS).as_table() == [
        "name         id  alive  members  at",
        "broker-a      1  true   1;2      -",
        r"b         12345  false  -        \x1b[2Jx\ny\x7f",
    ]


def test_without_rows_the_columns_are_named_all_the_same() -> None:
    assert Report(command="c", columns=("a", "b"), rows=()).as_table() == ["a  b"]


def test_json_is_one_line_of_ascii_with_all_columns_and_nothing_else() -> None:
    error = ClientError("client-timeout", False, "no answer\u202e", "b1:10911")
    report = Report(command="c", columns=COLUMNS, rows=[{**ROWS[1], "more": 1}, {}], errors=[error])
    text = report.as_json()
    assert text.isascii() and text.isprintable()
    assert json.loads(text) == {
        "command": "c",
        "rows": [ROWS[1], dict.fromkeys(COLUMNS)],
        "errors": [{"node": "b1:10911", "code": "client-timeout", "definite": False, "detail": "no answer\u202e"}],
    }
