"""Operations are found in any layout of a text, by scanning or parsing alike, and broken text with its place."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.jepsen import source
from harness.jepsen.convert import recorded_in
from harness.jepsen.edn import parse
from harness.jepsen.scan import ABSENT
from harness.jepsen.source import BrokenText, place


def read(tmp_path: Path, text: str | bytes) -> list[tuple[int, dict[str, Any]]]:
    """Each operation with its line, without the fields that it has not."""
    path = tmp_path / "history"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = []
    for recorded in recorded_in(path):
        columns = {name: column.rows() for name, column in recorded.fields.items()}
        columns |= {
            name: [None if number == ABSENT else number for number in numbers.tolist()]
            for name, numbers in recorded.numbers.items()
        }
        for row, at in enumerate(recorded.at.tolist()):
            operation = {name: column[row] for name, column in columns.items() if column[row] is not None}
            found.append((place(path, at).line, operation))
    return found


LINES = "{:process 0, :f :read, :value nil, :time 5}\n{:process 1, :f :cas, :value [1 2], :time 7}\n"
OPERATIONS = [{"process": 0, "f": "read", "time": 5}, {"process": 1, "f": "cas", "value": (1, 2), "time": 7}]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LINES, [1, 2]),
        (f"; a comment [\n[{LINES}]\n", [2, 3]),
        (f"({LINES})", [1, 2]),
        (LINES.replace("\n", " "), [1, 1]),
        (LINES.replace("\n", ", "), [1, 1]),
        (LINES.replace(",", "\n").replace("} ", "}\n"), [1, 5]),
        (LINES.replace("{:process", "#jepsen.history.Op{:process"), [1, 2]),
        (LINES.replace("{:process", "#jepsen.history.Op {:process"), [1, 2]),
        (LINES.replace("\n", "\r\n"), [1, 2]),
        ("\ufeff" + LINES, [1, 2]),
        ("#_{:gone [1]} " + LINES.replace("\n", " ; a comment {\n"), [1, 2]),
        (LINES.replace(":f ", "#_ :old #_ 1 :f "), [1, 2]),
        (
            LINES.replace(":f ", ':wall #inst "2020-01-01", :a/b #{1 {}}, :c \\}, :o #object[A 0x1a2b "A@1"], :f '),
            [1, 2],
        ),
    ],
    ids=[
        *("lines", "vector", "list", "one-line", "commas", "spread-out", "tagged", "tag-apart", "returns", "mark"),
        *("comments", "discarded", "more-fields"),
    ],
)
def test_operations_stand_in_any_layout(tmp_path: Path, text: str, lines: list[int]) -> None:
    found = read(tmp_path, text)
    assert [row for _, row in found] == OPERATIONS
    assert [line for line, _ in found] == lines


def test_what_is_scanned_says_the_same_as_what_is_parsed(tmp_path: Path) -> None:
    values = ["3", "nil", ":x", '"a b"', "[1 nil]", '[:a "b"]', "-2.5", "true", '"\\"quoted\\""', "{:a [1]}", '"é"']
    values += ["#{1 2}", "[[:r 1 nil] [:w 2 {3 4}]]", '#inst "2020"', "##Inf", "#a/b [1 #c{:d 2}]", "[#_1 2]", "1/2"]
    line = "{{:process 1, :type :ok, :f :read, :value {}, :other [1 2]}}\n"
    text = "".join(line.format(value) for value in values)
    expected = [parse(value) for value in values]
    for hidden in ("", " ; seen by the parser alone\n :more 1"):
        rows = read(tmp_path, text.replace(", :other", f"{hidden}, :other"))
        assert [row.get("value") for _, row in rows] == expected


@pytest.mark.parametrize("block", [7, 64, 1000])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_an_operation_longer_than_a_block_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, packed: bool
) -> None:
    monkeypatch.setattr("harness.jepsen.source.BLOCK_BYTES", block)
    monkeypatch.setattr("harness.jepsen.source.SNIFFED_BYTES", block)
    text = f"[{LINES}]".replace("\n", " ").replace(":cas", '"a long string, é, \\" that is cut" ; not this\n').encode()
    found = read(tmp_path, gzip.compress(text) if packed else text)
    assert [row["f"] for _, row in found] == ["read", 'a long string, é, " that is cut']
    assert [row["time"] for _, row in found] == [5, 7]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("{:process 1, :type :inv", "where its next key should be"),
        ("{:process 1, :type", "another operation begins within this one"),
        ("{:process 1, :exception {:op [", "another operation begins within this one"),
        ("{:process 1, :value [1 2}", "']' was expected"),
        ("{:process 1, :value [1 2", "another operation begins within this one"),
        ("{:process 1, :value}", "a key without a value"),
        ('{:process 1, :value "abc}', "a string does not end"),
        ("{:process 1, :process 2}", "has the key :process twice"),
        ("{:process 1, :value {:a 1, :a 2}}", "has the key :a twice"),
        (":process", "an operation must be a map"),
        ("{:process 12x}", "is no number"),
        (f"{{:process {'9' * 5000}}}", "a number of 5000 characters"),
        (f"{{:value {'[' * 300}{']' * 300}}}", "nested deeper than 200"),
        ("]", "nothing is open"),
    ],
)
def test_broken_text_is_refused_with_the_place_of_its_operation(tmp_path: Path, broken: str, reason: str) -> None:
    lines = LINES.replace(":f", ":type :ok, :f")
    with pytest.raises(BrokenText) as caught:
        read(tmp_path, lines + "  " + broken + "\n" + lines * 100)
    assert caught.value.at == len(lines) + 2
    assert reason in caught.value.reason


def test_an_error_may_show_operations(tmp_path: Path) -> None:
    shown = "{:index 1, :type :invoke, :process :nemesis, :f :read, :value nil}"
    error = f":exception {{:data {{:op {shown}, :op' {shown}, :all [{shown} {shown}]}}}}"
    found = read(tmp_path, f"{{:process :nemesis, :type :info, :f :read, {error}, :value nil}}\n{LINES}")
    assert len(found) == 1 + len(read(tmp_path, LINES))


@pytest.mark.parametrize("text", [f"[{LINES}", LINES + "{:process 1,", LINES + '{:value "abc', LINES + "{:process :"])
def test_of_a_file_that_was_cut_off_all_before_that_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "h").write_text(text)
    blocks = list(recorded_in(tmp_path / "h"))
    assert sum(len(block) for block in blocks) == 2
    cut_off = blocks[-1].cut_off
    assert cut_off is not None
    assert "ends" in cut_off.reason


@pytest.mark.parametrize("packed", [gzip.compress, lambda text: pa.Codec("zstd").compress(text, asbytes=True)])
def test_a_packed_file_is_read_to_the_byte_at_which_it_was_cut_off(
    tmp_path: Path, packed: Callable[[bytes], bytes]
) -> None:
    whole = "".join(f"{{:process 0, :f :read, :value {number * 7919 % 10_007}}}\n" for number in range(60_000)).encode()
    coded, seen = packed(whole), set()
    for size in (40, len(coded) // 2, len(coded) - 900, len(coded)):
        (tmp_path / "h").write_bytes(coded[:size])
        with source.opened(tmp_path / "h") as text:
            unpacked = text.read(len(whole) + 1)
            assert text.is_cut_off == (size < len(coded))
        assert whole.startswith(unpacked)
        if unpacked.count(b"\n"):
            rows = sum(len(block) for block in recorded_in(tmp_path / "h"))
            assert rows == unpacked.count(b"}")
            seen.add(rows)
    assert len(seen) >= 2


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        (LINES.encode() + b'{:value "\xff"}\n', len(LINES), "not UTF-8"),
        (LINES.encode("utf-16"), 0, "UTF-16; write it as UTF-8"),
        (gzip.compress(LINES.encode())[:12], 0, "the packed file is cut off"),
        (b"\x1f\x8b" + b"junk" * 10, 0, "the gzip file is broken"),
        (b"\xfd7zXZ\0" + b"junk", 0, "xz -dc FILE | stormproof check -"),
        (b"\x00\x01\x02\xfe" * 100, 0, "neither EDN, nor JSON, nor a line of Jepsen's log"),
        (b"process,type,f\n0,ok,read\n", 0, "neither EDN, nor JSON, nor a line of Jepsen's log"),
        (b"[[" + LINES.encode() + b"]]", 1, "an operation must be a map"),
    ],
    ids=["not-utf-8", "utf-16", "gzip-cut", "gzip-junk", "xz", "junk", "csv", "nested"],
)
def test_what_is_no_text_of_operations_is_broken_where_it_is_none(
    tmp_path: Path, text: bytes, at: int, reason: str
) -> None:
    with pytest.raises(BrokenText) as caught:
        read(tmp_path, text)
    assert caught.value.at == at
    assert reason in caught.value.reason
