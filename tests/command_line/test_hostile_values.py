"""A history, a name or a verdict that holds control characters forges no line and acts on no terminal, log or page."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.command_line.answers import Answer, Stormproof

IN_PROCESS = ("--engine", "inprocess")
HOSTILE = "k\x1b[2J\x1b[31m\r\nverdict   VALID\n\u202e\u2028\u200b\x9b"
SHOWN = r"k\x1b[2J\x1b[31m\r\nverdict   VALID\n\u202e\u2028\u200b\x9b"
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\ud800-\udfff]")


def require_printable(answer: Answer) -> None:
    assert UNPRINTABLE.search(answer.out + answer.err) is None
    assert [line for line in (answer.out + answer.err).splitlines() if line.startswith("verdict")] in (
        ["verdict   INVALID"],
        [],
    )


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """One key, written 1 and read 2: INVALID, explained with the key and the operations."""
    rows = [("invoke", "write", 1), ("ok", "write", 1), ("invoke", "read", None), ("ok", "read", 2)]
    operations = [
        {"process": 0, "type": kind, "f": f, "key": HOSTILE, "value": value, "time": at}
        for at, (kind, f, value) in enumerate(rows)
    ]
    path = tmp_path / "history.json"
    path.write_text("\n".join(map(json.dumps, operations)))
    return path


def test_a_key_forges_no_verdict_on_the_terminal_nor_on_the_page(stormproof: Stormproof, forged: Path) -> None:
    answer = stormproof("check", forged, "--model", "register", "--progress", *IN_PROCESS)
    assert answer.code == 1
    assert SHOWN in answer.out
    require_printable(answer)
    (page,) = Path("runs/checked").glob("*/report.html")
    text = re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.DOTALL)
    assert SHOWN in text
    assert UNPRINTABLE.search(text) is None


def test_for_machines_the_key_is_whole_and_the_line_is_one(stormproof: Stormproof, forged: Path) -> None:
    answer = stormproof("check", forged, "--model", "register", "--json", *IN_PROCESS)
    assert answer.code == 1
    require_printable(answer)
    assert answer.out.count("\n") == 1
    verdict = json.loads((Path(answer.json["directory"]) / "verdict.json").read_text())
    (example,) = verdict["checkers"]["linearizable"]["anomalies"]["nonlinearizable"]["examples"]
    assert example["key"] == HOSTILE


def test_what_an_operation_is_called_forges_nothing_in_an_error(stormproof: Stormproof, tmp_path: Path) -> None:
    history = tmp_path / "history.json"
    history.write_text(json.dumps({"process": 0, "type": "invoke", "f": HOSTILE, "value": 1}))
    answer = stormproof("check", history, "--model", "register", *IN_PROCESS)
    assert answer.code == 254
    assert SHOWN in answer.err
    require_printable(answer)


def test_the_name_of_a_file_forges_nothing(stormproof: Stormproof, forged: Path) -> None:
    named = forged.with_name(f"{HOSTILE}.json")
    forged.rename(named)
    for arguments in (("check", named, "--model", "register"), ("check", named), ("check", f"{named}x")):
        answer = stormproof(*arguments, *IN_PROCESS)
        assert SHOWN in answer.out
        require_printable(answer)
    for command in ("export", "replay", "suite", "run"):
        answer = stormproof(command, named)
        assert answer.code == 254
        require_printable(answer)


def test_a_name_that_is_no_text_is_shown_and_read(stormproof: Stormproof, forged: Path) -> None:
    named = forged.with_name(os.fsdecode(b"caf\xe9.json"))
    try:
        forged.rename(named)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    answer = stormproof("check", named, "--model", "register", "--json", *IN_PROCESS)
    assert answer.code == 1
    assert r"caf\udce9.json" in answer.err
    assert answer.json["path"] == str(named)
    require_printable(answer)
    assert Path(answer.json["directory"], "report.html").exists()


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ('"key": "a\\ud800"', "half of a surrogate pair is no text"),
        ('"error": "\\udfff"', "error must be string, it is"),
        ('"node": "\\ud83d"', "node must be string, it is"),
    ],
)
def test_half_of_a_surrogate_pair_is_no_text_and_refused_with_its_row(
    stormproof: Stormproof, tmp_path: Path, part: str, words: str
) -> None:
    history = tmp_path / "history.json"
    history.write_text(
        '{"process": 0, "type": "invoke", "f": "write", "value": 1}\n'
        '{"process": 0, "type": "info", "f": "write", "value": 1}\n'
        f'{{"process": 1, "type": "invoke", "f": "write", "value": 2, {part}}}\n'
    )
    answer = stormproof("check", history, "--model", "register", *IN_PROCESS)
    assert answer.code == 254
    assert f"line 3, row 2: {words}" in answer.err
    require_printable(answer)
