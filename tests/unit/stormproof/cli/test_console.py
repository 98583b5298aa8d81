"""One call is one line, whatever is in it, and nothing but the console prints."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormproof.cli import main
from stormproof.cli.console import Console, Output, Watching, remark, remark_traceback

CLI = Path(main.__file__).parent
HOSTILE = "key \x1b[2J\r\nverdict   VALID\n\u202e\u2028\udcff\x9b"
SHOWN = r"key \x1b[2J\r\nverdict   VALID\n\u202e\u2028\udcff\x9b"


def test_an_essential_line_and_progress_stay_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(watching=Watching.YES)
    console.say(HOSTILE)
    console.progress(HOSTILE)
    printed = capsys.readouterr()
    assert printed.out == f"{SHOWN}\n"
    assert printed.err.endswith(f" s  {SHOWN}\n")
    assert printed.err.count("\n") == 1


def test_a_remark_names_its_source_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    remark(HOSTILE)
    remark(HOSTILE, by="docker")
    assert capsys.readouterr().err == f"stormproof: {SHOWN}\ndocker: {SHOWN}\n"


def test_a_traceback_forges_no_line_of_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        remark_traceback()
    printed = capsys.readouterr().err.split("\n")
    assert all(line.startswith("traceback: ") for line in printed[:-1])
    assert "\x1b" not in "".join(printed)


def test_json_is_one_line_of_ascii_and_holds_what_was_put_in(capsys: pytest.CaptureFixture[str]) -> None:
    Console(output=Output.JSON).result({"key": f"{HOSTILE}\x7f"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.isprintable() is False  # of the line break at its end
    assert out[:-1].isprintable()
    assert json.loads(out) == {"key": f"{HOSTILE}\x7f"}


def test_what_an_encoding_lacks_is_shown_escaped() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "stormproof.cli.main", "check", "nowhere-é-→"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (printed.returncode, printed.stdout) == (254, b"history   nowhere-\xe9-\\u2192\n")


def printing(source: str) -> Iterator[int]:
    """Lines that write to the terminal by themselves."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("print", "click.echo", "click.secho", "traceback.print_exc") or called.endswith(
                ("stdout.write", "stderr.write", "stdout.writelines", "stderr.writelines")
            ):
                yield node.lineno


@pytest.mark.parametrize("path", sorted(CLI.rglob("*.py")), ids=lambda path: str(path.name))
def test_nothing_but_the_console_prints(path: Path) -> None:
    if path.name not in ("console.py", "bootstrap.py"):  # the set-up runs where nothing is installed yet
        assert list(printing(path.read_text(encoding="utf-8"))) == []


def test_printing_would_be_found() -> None:
    assert list(printing("print('a')\nsys.stderr.write('b')\nclick.echo('c')")) == [1, 2, 3]
