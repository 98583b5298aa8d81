"""A guarded command ends with the process that asked for it, however that ends, and its children with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.lifetime import supervised

LONGEST_WAIT_S = 60.0
TOKEN = "STORMPROOF_TEST_OF_GUARDS"

# A shell with a child in a process group of its own, as PySpark's daemon is, and a grandchild.
FAMILY = ["bash", "-mc", "sleep 1000 & (sleep 1000 & wait) & echo started; wait"]
OWNER = f"""
import os, subprocess, sys
from harness.lifetime.supervised import Guarded
guarded = Guarded({FAMILY!r}, stdout=subprocess.PIPE)
print(guarded.process.stdout.readline().decode(), end="", flush=True)
"""


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def marked(token: str) -> list[int]:
    """The processes that were given this token, by whomever they were started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"{TOKEN}={token}".encode() in environment.split(b"\0"):
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    "ending",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os; os._exit(0)",
        "raise ValueError",
        "guarded.end()",
        "guarded.process.kill()",
    ],
)
def test_whatever_ends_the_owner_ends_the_command_and_its_children(ending: str, tmp_path: Path) -> None:
    token = str(tmp_path)
    environment = {**os.environ, TOKEN: token}
    finished = subprocess.run(
        [sys.executable, "-c", OWNER + ending], env=environment, capture_output=True, text=True, check=False
    )
    assert finished.stdout == "started\n", finished.stderr
    if "process.kill" in ending:  # the guard itself: the command's own input has ended as well, and bash ends of that
        for pid in marked(token):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not marked(token))


def test_an_owner_that_is_gone_before_the_guard_begins_is_noticed(tmp_path: Path) -> None:
    token = str(tmp_path)
    begin = OWNER.partition("print(")[0] + "import signal; os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", begin], env={**os.environ, TOKEN: token}, check=False)
    until(lambda: not marked(token))


def test_a_command_that_ends_first_has_its_code_and_words_passed_on() -> None:
    finished = supervised.run(["bash", "-c", "echo out; echo err >&2; exit 7"])
    assert (finished.returncode, finished.stdout, finished.stderr) == (7, "out\n", "err\n")
    assert supervised.run(["bash", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL
    assert supervised.run(["/no/such/program"]).returncode == 127


def test_a_command_may_end_by_itself_within_its_grace(tmp_path: Path) -> None:
    script = f"echo started; cat >/dev/null; echo ended > {tmp_path}/ended"
    command = supervised.Guarded(["bash", "-c", script], stdout=subprocess.PIPE, grace_s=LONGEST_WAIT_S)
    assert command.process.stdout is not None and command.process.stdout.readline() == b"started\n"
    command.end()
    assert (tmp_path / "ended").exists()


def test_directories_made_for_it_go_with_it(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    command = supervised.Guarded(["sleep", "1000"], remove=[place])
    command.end()
    assert not place.exists()
