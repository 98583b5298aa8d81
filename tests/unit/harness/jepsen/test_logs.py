"""Logs as Jepsen writes them: entries that go on over many lines, prose, values that only a nemesis has."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.jepsen.convert import recorded_in
from harness.jepsen.source import BrokenText

HEAD = """2026-02-03 04:05:06,100{GMT}\tINFO\t[jepsen test runner] jepsen.core: Command line:
lein run test --workload register
2026-02-03 04:05:06,200{GMT}\tINFO\t[jepsen test runner] jepsen.core: Running test:
{:remote
 #object[jepsen.control$reify__1 0x1 "jepsen.control$reify__1@1"]
 :checks {:ok :read "x"}
 :nodes ["n1" "n2"]}

"""
ENTRY = "2026-02-03 04:05:07,000{GMT}\tINFO\t[jepsen worker 0] jepsen.util: "
TRACE = """2026-02-03 04:05:08,000{GMT}\tWARN\t[jepsen worker 1] jepsen.generator.interpreter: Process 1 crashed
java.net.SocketTimeoutException: Read timed out
\tat java.base/java.net.SocketInputStream.read(SocketInputStream.java:1)
2026-02-03 04:05:08,000{GMT}\tINFO\t[n1 stderr] server: the answer was :ok :read 7
"""


def rows(tmp_path: Path, text: str) -> list[tuple[object, ...]]:
    (tmp_path / "jepsen.log").write_text(text)
    found: list[tuple[object, ...]] = []
    for block in recorded_in(tmp_path / "jepsen.log"):
        names = ("process", "type", "f", "value", "error")
        found += zip(*(block.fields[name].rows() for name in names), strict=True)
    return found


def test_operations_are_found_among_whatever_else_a_log_holds(tmp_path: Path) -> None:
    text = (
        HEAD
        + ENTRY
        + "0\t:invoke\t:write\t3\n"
        + TRACE
        + ENTRY
        + "[ 17 ] 0\t:info\t:write\t3\tindeterminate: Read timed out; see {\n"
        + ENTRY
        + ":nemesis\t:info\t:start\t#<Atom@1f: [>\n"
        + "Everything looks good!\n"
    )
    assert rows(tmp_path, text) == [
        (0, "invoke", "write", 3, None),
        (0, "info", "write", 3, "indeterminate: Read timed out; see {"),
        ("nemesis", "info", "start", None, "#<Atom@1f: [>"),
    ]


@pytest.mark.parametrize(
    "damaged", ["0\t:ok\t:read\t[1\n", "0\t:ok\t:read\n", "0\t:done\t:read\t1\n", "0\t:ok\t:read\t]\n"]
)
def test_a_damaged_operation_is_not_passed_over(tmp_path: Path, damaged: str) -> None:
    with pytest.raises(BrokenText) as caught:
        rows(tmp_path, HEAD + ENTRY + damaged + ENTRY + "0\t:ok\t:read\t1\n")
    assert caught.value.at == len(HEAD)


@pytest.mark.parametrize("torn", ["0\t:ok\t:read\t[1", "0\t:ok", "0\t:ok\t:read\t"])
def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path, torn: str) -> None:
    assert len(rows(tmp_path, HEAD + ENTRY + "0\t:invoke\t:read\tnil\n" + ENTRY + torn)) == 1


def test_an_operation_without_a_function_is_none(tmp_path: Path) -> None:
    asked = f"{ENTRY}0\t:invoke\tnil\tnil\n{ENTRY}0\t:fail\tnil\tnil\tNo matching clause: \n"
    assert rows(tmp_path, f"{HEAD}{asked}{ENTRY}1\t:invoke\t:read\tnil\n") == [(1, "invoke", "read", None, None)]


def test_an_error_goes_on_over_many_lines_where_there_are_no_entries(tmp_path: Path) -> None:
    error = '0\t:info\t:add\t1\tMalformed response. It was:\n\n{:type "add",\n :offset 1}\n\nThis is why.\n'
    text = f"0\t:invoke\t:add\t1\n{error}1\t:invoke\t:read\tnil\n1\t:ok\t:read\t[]\n"
    assert [row[:3] for row in rows(tmp_path, text)] == [
        (0, "invoke", "add"),
        (0, "info", "add"),
        (1, "invoke", "read"),
        (1, "ok", "read"),
    ]
    with pytest.raises(BrokenText, match="neither EDN"):
        rows(tmp_path, f"{text}{{:offset 1}}\n{text}")


def test_what_comes_before_the_first_entry_needs_no_form(tmp_path: Path) -> None:
    assert len(rows(tmp_path, "Retrieving a library\n" + HEAD + ENTRY + "0\t:invoke\t:read\tnil\n")) == 1
    with pytest.raises(BrokenText, match="neither EDN"):
        rows(tmp_path, "Retrieving a library\nof somebody\n")
