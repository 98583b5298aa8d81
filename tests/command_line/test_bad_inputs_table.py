"""A table of bad inputs over all commands: each is answered by its exit code and one line, and leaves nothing behind.

The tables are in `bad_inputs/`, one a command. A row is what is typed and what the line must contain. Each ends with
254, prints one line on standard error that begins with `stormproof: ` and is no
traceback, and writes nothing outside the directory of runs: neither beside the files it was given, nor in the directory
for temporary files. The rows of a table are typed in one process, whose memory stays below 1 GiB; some are typed once
more as processes of their own, with standard input and bytes that only these can have.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line.bad_inputs.batch import complete
from tests.command_line.bad_inputs.shared import SOUND_SUITE, lay_out

ROOT = Path(__file__).resolve().parents[2]
TABLES = ("run", "suite", "check", "explore", "stored", "others")
MOST_BYTES = 1 << 30
FEWEST_ROWS = 300


@pytest.fixture
def nested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder so deep that a path with a few `..` in it is still seen, with a directory for temporary files above."""
    folder = tmp_path / "a" / "b" / "c" / "work"
    folder.mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("STORMPROOF_DEBUG", raising=False)
    return folder


@pytest.mark.parametrize("table", TABLES)
def test_every_row_is_answered_in_one_line_and_leaves_nothing_behind(nested: Path, table: str) -> None:
    batch = [sys.executable, "-m", "tests.command_line.bad_inputs.batch", table]
    ran = subprocess.run(batch, cwd=nested, capture_output=True, text=True, check=True)
    *answers, memory = map(json.loads, ran.stdout.splitlines())
    wrong = [f"{answer['row']}\n    {answer['wrong']}" for answer in answers if answer["wrong"]]
    assert not wrong, f"{len(wrong)} of {len(answers)} rows:\n" + "\n".join(wrong)
    assert memory["bytes"] < MOST_BYTES


def test_there_are_rows_for_every_command_and_enough_of_them() -> None:
    rows = [row for table in TABLES for row in importlib.import_module(f"tests.command_line.bad_inputs.{table}").ROWS]
    assert len({(row.arguments, tuple(row.files.items())) for row in rows}) >= FEWEST_ROWS
    commands = {
        "run",
        "suite",
        "explore",
        "check",
        "export",
        "replay",
        "list",
        "verify",
        "doctor",
        "cleanup",
        "completion",
        "new",
    }
    assert commands <= {row.arguments[0] for row in rows if row.arguments}


PROCESSES = """
run \udcff                                |           | system takes printable text
suite -                                   | /dev/zero | suite file - cannot be read: it is a device
suite -                                   | text      | -: not TOML
suite /dev/stdin                          | text      | /dev/stdin: not TOML
check \udcff --model register             |           | there is no history \\udcff
check - --model register                  | /dev/zero | - cannot be read: it is a device
check /dev/stdin --model register         | text      | /dev/stdin: line 1, row 0: neither EDN, nor JSON
export -                                  | text      | - is no history of ours
cleanup --nope                            |           | No such option '--nope'
"""


def test_a_process_answers_as_the_row_says_whatever_its_standard_input_is(nested: Path) -> None:
    lay_out(nested)
    wrong = []
    for line in PROCESSES.strip().splitlines():
        typed, standard_input, words = (part.strip() for part in line.split("|"))
        arguments = [os.fsencode(argument) for argument in complete(tuple(typed.split()))]
        with_input = os.open(nested / (standard_input or "/dev/null"), os.O_RDONLY)
        ran = subprocess.run(
            [sys.executable, "-m", "stormproof.cli.main", *arguments],
            cwd=nested,
            stdin=with_input,
            capture_output=True,
            text=True,
            check=False,
        )
        os.close(with_input)
        said = ran.stderr.removeprefix("history   -\n")
        if ran.returncode != 254 or said.count("\n") != 1 or not said.startswith("stormproof: ") or words not in said:
            wrong.append(f"{line}\n    exit code {ran.returncode}, said {said[:300]!r}")
    assert not wrong, "\n".join(wrong)
    assert list((nested.parents[3] / "tmp").iterdir()) == []
    assert (nested / "good.toml").read_text() == SOUND_SUITE
    assert not (nested / "runs").exists()
