"""What is certain of a history is told while its pipe is open, and the verdict comes from the whole."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

PATIENCE_S = 300.0
"""Of a test that would wait for ever: then the command is killed. Nothing is measured by it."""
COMMAND = [sys.executable, "-m", "stormproof.cli.main", "check", "-", "--engine", "inprocess"]
INVALID = """\
{:process 0, :type :invoke, :f :write, :value 1}
{:process 0, :type :ok, :f :write, :value 1}
{:process 0, :type :invoke, :f :read, :value nil}
{:process 0, :type :ok, :f :read, :value 2}
"""
MORE = """\
{:process 1, :type :invoke, :f :read, :value nil}
{:process 1, :type :ok, :f :read, :value 1}
"""
TORN = "{:process 1, :type "
SAID = "stormproof: certain already: nonlinearizable, operations 2 and 3: "


@contextmanager
def checking(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    impatience = threading.Timer(PATIENCE_S, command.kill)
    impatience.start()
    try:
        yield command
    finally:
        impatience.cancel()
        command.kill()
        command.communicate()


def write(command: subprocess.Popen[str], text: str) -> None:
    assert command.stdin is not None
    command.stdin.write(text)
    command.stdin.flush()


def next_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def without_report(out: str) -> list[str]:
    return [line for line in out.splitlines() if not line.startswith("report ")]


def test_a_finding_is_told_before_the_pipe_ends_and_once_and_the_verdict_is_that_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    how = ("--model", "register")
    with checking(*how) as command:
        write(command, INVALID)
        assert next_line(command.stderr).startswith(SAID)
        assert command.poll() is None
        write(command, MORE + TORN)
        out, err = command.communicate(timeout=PATIENCE_S)
        assert (command.returncode, err) == (1, "")
    at_once = subprocess.run(
        [*COMMAND, *how], input=INVALID + MORE + TORN, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert without_report(out) == without_report(at_once.stdout)
    assert any("the text ends within an operation" in line for line in out.splitlines())


def test_who_interrupts_it_while_the_pipe_is_open_gets_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with checking("--model", "register") as command:
        write(command, INVALID)
        assert next_line(command.stderr).startswith(SAID)
        command.send_signal(signal.SIGINT)
        assert "interrupted by SIGINT: no verdict was reached" in next_line(command.stderr)
        assert command.wait(PATIENCE_S) == 255
