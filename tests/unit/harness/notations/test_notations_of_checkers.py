"""Histories in other checkers' notations are seen from their bytes, and say the same in rows."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.jepsen.source import BrokenText
from harness.notations import recognised, write_rows

TAGGED = "w(1,10,0,0)\nr(2,0,0,0)\nw(2,20,1,1)\nr(1,10,1,1)\nr(1,10,0,2)\n"
BLOCKS = "w 1 10\nr 2 0\n-----\nr 1 10\n=====\nw 2 20\nr 1 10\n"
TEXT = "// two sessions\n[a:=10 b==?] [a==10]\n---\n[b:=20 a==10]\n"
JSON = json.dumps(
    [
        [
            {
                "events": [{"Write": {"variable": 1, "version": 10}}, {"Read": {"variable": 2, "version": None}}],
                "committed": True,
            },
            {"events": [{"Read": {"variable": 1, "version": 10}}], "committed": True},
        ],
        [
            {
                "events": [{"Write": {"variable": 2, "version": 20}}, {"Read": {"variable": 1, "version": 10}}],
                "committed": True,
            }
        ],
    ]
)


def event(writes: bool, key: int, value: int, succeeded: bool = True) -> bytes:
    return struct.pack("<?QQ?", writes, key, value, succeeded)


def counted(*parts: bytes) -> bytes:
    return struct.pack("<Q", len(parts)) + b"".join(parts)


def text(words: bytes) -> bytes:
    return struct.pack("<Q", len(words)) + words


FIRST = counted(event(True, 1, 10), event(False, 2, 0), event(False, 9, 9, False)) + b"\1"
BINARY = struct.pack("<5Q", 0, 2, 2, 2, 2) + text(b"made by hand") + text(b"then") + text(b"later")
BINARY += counted(
    counted(FIRST, counted(event(False, 1, 10)) + b"\1"),
    counted(counted(event(True, 2, 20), event(False, 1, 10)) + b"\1"),
)


def entry(kind: str, *numbers: int) -> bytes:
    return kind.encode() + struct.pack(f">{len(numbers)}q", *numbers)


COBRA = [
    entry("S", 7)
    + entry("W", 10, 1, 77)
    + entry("R", 0xBEBEEBEE, 0xBEBEEBEE, 2, 0)
    + entry("C", 7)
    + entry("S", 9)
    + entry("R", 7, 10, 1, 77)
    + entry("C", 9),
    entry("S", 8) + entry("W", 20, 2, 78) + entry("R", 7, 10, 1, 77) + entry("C", 8),
]


def cobra(path: Path) -> Path:
    (path / "logs").mkdir()
    for number, log in enumerate(COBRA):
        (path / "logs" / f"T{number}.log").write_bytes(log)
    return path / "logs"


def file(content: str | bytes) -> Callable[[Path], Path]:
    def written(path: Path) -> Path:
        (path / "history").write_bytes(content if isinstance(content, bytes) else content.encode())
        return path / "history"

    return written


def rows(path: Path) -> list[tuple[int, str, list[list[object]]]]:
    notation = recognised(path)
    assert notation is not None
    write_rows(notation.read(path), path.parent / "rows.json")
    found = [json.loads(line) for line in (path.parent / "rows.json").read_text().splitlines()]
    assert {row["f"] for row in found} <= {"txn"}
    return [(row["process"], row["type"], row["value"]) for row in found]


@pytest.mark.parametrize(
    ("laid", "keys", "initial"),
    [
        (file(TAGGED), (1, 2), None),
        (file(BLOCKS), (1, 2), 0),
        (file(TEXT), ("a", "b"), None),
        (file(JSON), (1, 2), None),
        (file(json.dumps({"params": {"id": 0}, "info": "", "data": json.loads(JSON)})), (1, 2), None),
        (file(BINARY), (1, 2), None),
        (cobra, (1, 2), None),
    ],
    ids=["tagged", "blocks", "dbcop-text", "dbcop-json", "dbcop-generated", "dbcop-binary", "cobra"],
)
def test_a_notation_is_seen_from_its_bytes_and_says_the_same_in_rows(
    tmp_path: Path, laid: Callable[[Path], Path], keys: tuple[object, object], initial: int | None
) -> None:
    a, b = keys
    assert rows(laid(tmp_path)) == [
        (0, "invoke", [["w", a, 10], ["r", b, None]]),
        (1, "invoke", [["w", b, 20], ["r", a, None]]),
        (0, "ok", [["w", a, 10], ["r", b, initial]]),
        (1, "ok", [["w", b, 20], ["r", a, 10]]),
        (0, "invoke", [["r", a, None]]),
        (0, "ok", [["r", a, 10]]),
    ]


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ("w(1,5,0,-1)\nr(1,5,0,0)\n", [["w", 1, 5]]),
        ("[a:=5]!\n---\n[a==5]\n", [["w", "a", 5]]),
        ('[[{"events":[{"write":true,"variable":1,"value":5,"success":true}],"success":false}]]', [["w", 1, 5]]),
        (entry("S", 1) + entry("W", 5, 1, 0) + entry("A", 1), [["w", 1, 5]]),
    ],
)
def test_transactions_that_did_not_commit_failed(
    tmp_path: Path, content: str | bytes, failed: list[list[object]]
) -> None:
    assert [value for _, kind, value in rows(file(content)(tmp_path)) if kind == "fail"] == [failed]


def test_a_zero_that_somebody_wrote_is_a_value(tmp_path: Path) -> None:
    assert rows(file("w(1,0,0,0)\nr(1,0,1,1)\nr(2,0,1,1)\n")(tmp_path))[-1] == (1, "ok", [["r", 1, 0], ["r", 2, None]])


@pytest.mark.parametrize(
    ("content", "at", "reason"),
    [
        ("w(1,5,0,0)\nr(1,5,0)\n", 11, "a line must be"),
        ("w 1 5\n\nx 1 5\n", 7, "a line must be"),
        ("[a:=5 a=5]\n", 6, "nothing of dbcop's text begins with"),
        ("[a:=5\n[a==5]", 6, "within a transaction stands"),
        ("[a:=5]\n]", 7, "outside of a transaction stands"),
        ("[a:=5", 5, "the text ends within a transaction"),
        ("[a:=5 a:=?]", 6, "a write has a value"),
        ('[[{"events":[{"Frob":{"variable":0,"version":1}}],"committed":true}]]', 0, "no event"),
        ('[[{"events":[', 0, "no JSON"),
        (BINARY[:-3], len(BINARY) - 2 * 18 - 1 - 8, "but only"),
        (BINARY[:-1], len(BINARY) - 1, "ends too early"),
        (COBRA[0][:-3], len(COBRA[0]) - 9, "it ends within an entry"),
        (entry("S", 1) + entry("C", 2), 9, "transaction 2 ends where 1 is open"),
        (entry("S", 1) + entry("C", 1) + entry("C", 1), 18, "C where a transaction has not begun"),
    ],
    ids=range(14),
)
def test_what_is_broken_is_refused_where_it_is(tmp_path: Path, content: str | bytes, at: int, reason: str) -> None:
    path = file(content)(tmp_path)
    notation = recognised(path)
    assert notation is not None
    with pytest.raises(BrokenText) as caught:
        notation.read(path)
    assert reason in caught.value.reason
    assert caught.value.at == at


@pytest.mark.parametrize(
    "content",
    [
        "{:process 0, :type :ok, :f :read, :value 1}",
        "[{:process 0}]",
        '[{"process": 0}]',
        "0\t:invoke\t:write\t3\n",
        "INFO jepsen.util - 0\t:invoke\t:write\t3\n",
        "",
        b"PAR1",
        b"\0" * 40,
        "SELECT 1",
        "Starting",
    ],
)
def test_anything_else_is_none_of_them(tmp_path: Path, content: str | bytes) -> None:
    assert recognised(file(content)(tmp_path)) is None
