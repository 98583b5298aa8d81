"""Whatever a value holds, it is shown on one line and acts on nothing."""

from __future__ import annotations

import os
import unicodedata

import pytest

from harness.printable import last_lines, printable, printable_data


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\r\nverdict   VALID\n", r"a\r\nverdict   VALID\n"),
        ("\x00\x07\x08\t\x7f", r"\x00\x07\x08\t\x7f"),
        ("\x85\x9b31m", r"\x85\x9b31m"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\u202egnp.exe \u2066\u2069", r"\u202egnp.exe \u2066\u2069"),
        ("a\u200bb\ufeff\U000e0041", r"a\u200bb\ufeff\U000e0041"),
        ("\ud800", r"\ud800"),
        (os.fsdecode(b"caf\xe9.edn"), r"caf\udce9.edn"),
        ("plain, é, ×, →, 漢字 and 🙂", "plain, é, ×, →, 漢字 and 🙂"),
        (r"C:\new", r"C:\new"),
    ],
)
def test_what_is_not_printable_is_shown_escaped_and_all_else_as_it_is(text: str, escaped: str) -> None:
    assert printable(text) == escaped


def test_no_character_that_controls_separates_or_turns_is_left() -> None:
    every = "".join(map(chr, range(0x110000)))
    left = printable(every)
    assert {unicodedata.category(one) for one in left} & {"Cc", "Cs", "Zl", "Zp"} == set()
    assert {
        one for one in left if unicodedata.bidirectional(one) in ("LRE", "RLE", "LRO", "RLO", "PDF", "B", "S")
    } == set()
    assert {one for one in left if unicodedata.bidirectional(one) in ("LRI", "RLI", "FSI", "PDI", "BN")} == set()
    assert len(left.splitlines()) == 1
    assert left.encode().decode() == left


def test_data_keeps_its_form_and_all_of_its_strings_are_printable() -> None:
    data = {"a\n": ["\x1b", 1, 2.5, None, True, {"b": ("\u202e",)}]}
    assert printable_data(data) == {r"a\n": [r"\x1b", 1, 2.5, None, True, {"b": [r"\u202e"]}]}


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", ""),
        ("a\n\n  b\n", "a | b"),
        ("1\n2\n3\n4\n5\n6\n", "2 | 3 | 4 | 5 | 6"),
        ("exit code 3\n1\n2\n3\n4\n5", "exit code 3 | 2 | 3 | 4 | 5"),
    ],
)
def test_the_last_lines_of_a_program_are_told_on_one_with_its_exit_code(output: str, line: str) -> None:
    assert last_lines(output) == line
