"""Types the rows of a table one after the other in one process. `python -m tests.command_line.bad_inputs.batch TABLE`

Prints a JSON object a row: what was wrong with the answer, in words (nothing is what is to be). The last line is the
most memory that the process ever held. Started in the folder in which the rows are to be typed.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType

from stormproof.cli import main
from tests.command_line.bad_inputs.rows import Row
from tests.command_line.bad_inputs.shared import lay_out, write

HANGS_AFTER_S = 120
"""No row takes a second; one that takes so long waits for something that never comes."""
MOST_DATA_BYTES = 4 << 30
"""A row that reads without a bound fails here, before it takes the machine along."""
CHECKED = ("run", "suite", "check", "replay")
WRONG_USAGE = 254
MAY_CHANGE = ("runs", "run")


class Hangs(BaseException):
    """Past all handlers of Exception."""


def answer(row: Row, outermost: Path) -> str:
    """What is wrong with it, in words."""
    for name, content in row.files.items():
        write(Path(name), content)
    before = tree(outermost)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    signal.alarm(HANGS_AFTER_S)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main.run(complete(row.arguments))
    except Hangs:
        return f"hangs for {HANGS_AFTER_S} s"
    finally:
        signal.alarm(0)
    after = tree(outermost)
    for name in row.files:
        Path(name).unlink(missing_ok=True)
    for name in MAY_CHANGE:
        shutil.rmtree(name, ignore_errors=True)
    err.flush()
    problems = wrong_with(row, code, err.buffer.getvalue().decode())
    changed = sorted({path for path, _ in before.items() ^ after.items()})
    return "; ".join([*problems, *(f"{path} was written" for path in changed)])


def complete(arguments: tuple[str, ...]) -> list[str]:
    """With the engine that needs no Java, where none is named."""
    if arguments and arguments[0] in CHECKED and "--engine" not in arguments:
        return [arguments[0], "--engine", "inprocess", *arguments[1:]]
    return list(arguments)


def wrong_with(row: Row, code: int, err: str) -> list[str]:
    problems = []
    if code != WRONG_USAGE:
        problems.append(f"exit code {code}")
    if err.count("\n") != 1 or not err.startswith("stormproof: "):
        problems.append("not one line that begins with stormproof")
    if row.words not in err:
        problems.append(f"lacks {row.words!r}")
    return [*problems, f"said {err[:300]!r}"] if problems else []


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file with its size and time, without those that a command may write."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.is_dir() and not any(Path(name).absolute() in path.parents for name in MAY_CHANGE)
    }


def most_memory_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise Hangs


def type_all(table: str) -> None:
    signal.signal(signal.SIGALRM, _hangs)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA_BYTES, MOST_DATA_BYTES))
    outermost = Path(os.environ["TMPDIR"]).parent
    lay_out(Path.cwd())
    rows: tuple[Row, ...] = importlib.import_module(f"tests.command_line.bad_inputs.{table}").ROWS
    for row in rows:
        print(json.dumps({"row": str(row), "wrong": answer(row, outermost)}), flush=True)
    print(json.dumps({"bytes": most_memory_bytes()}))


if __name__ == "__main__":
    type_all(sys.argv[1])
