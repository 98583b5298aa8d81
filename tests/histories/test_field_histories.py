"""Histories as people bring them get the exit code that their kind must have, through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormproof.cli import main

FIELD = Path(__file__).parents[3] / "shared" / "field"
ROWS = [line.split("\t") for line in (FIELD / "expected.tsv").read_text().splitlines()] if FIELD.exists() else []
KINDS = ("09", "10", "11", "12", "13", "13b", "14", "14b", "20", "21", "26", "28")
"""By the numbers with which the files begin."""
SAYS = {
    "09": 'element "n1-1" was given out more than once',
    "10": "element 4 was known to be in the set",
    "11": "judged as --workload counter --set reads=final",
    "13": 'element "b" was acked',
    "14": "lost × 3",
    "20": "passed over: 1 time that runs back by 52 ms",
    "21": "shows a total of 11, which must be 10",
}
"""Beside the exit code."""


def _kind(name: str) -> str:
    return name.partition("-")[0]


@pytest.mark.skipif(not ROWS, reason="no ../shared/field beside the checkout")
@pytest.mark.parametrize("row", [row for row in ROWS if _kind(row[0]) in KINDS], ids=lambda row: " ".join(row[:2]))
def test_each_kind_is_read_and_judged_right(row: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, options, code = row[:3]
    given = [] if options == "-" else options.split()
    answer = main.run(["check", str(FIELD / name), *given, "--engine", "inprocess", "--runs", str(tmp_path)])
    told = capsys.readouterr()
    assert answer == int(code), told
    assert SAYS.get(_kind(name), "") in told.out
