"""The terminal is gone: the command ends as for any signal, though it can say nothing any more; nohup is honoured."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from stormproof.session.engines import HERE
from stormproof.session.judge import check_run
from tests.interruptions.attempt import ROOT, signals_are_heard
from tests.interruptions.commands import STORM

LONGEST_S = 120.0
IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes standard input the controlling terminal, and becomes the command."""


@pytest.mark.slow
def test_a_run_whose_terminal_is_closed_ends_with_255_and_can_be_checked(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    storm = ["run", "rocketmq", *STORM, "--time-limit", "3000", "--engine", "inprocess", "--progress"]
    command = [sys.executable, "-m", "stormproof.cli.main", *storm, "--runs", str(tmp_path)]
    with (
        signals_are_heard(),
        subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            start_new_session=True,
        ) as process,
    ):
        os.close(theirs)
        try:
            said = b""
            while b"storm of" not in said:
                said += os.read(ours, 4096)
            os.close(ours)
            assert process.wait(LONGEST_S) == 255
        finally:
            process.kill()
    assert check_run((tmp_path / "latest").resolve(), options=HERE).verdict is Verdict.UNKNOWN


@pytest.mark.slow
def test_under_nohup_a_closed_terminal_changes_nothing(tmp_path: Path) -> None:
    storm = ["run", "rocketmq", "--time-limit", "5", "--recovery", "10", "--seed", "11", "--engine", "inprocess"]
    command = ["nohup", sys.executable, "-m", "stormproof.cli.main", *storm, "--runs", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline().startswith("seed")
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode in (0, 2) and "verdict" in out
