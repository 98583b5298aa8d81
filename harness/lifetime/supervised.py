"""Commands that end with this process: on every way out of it, SIGKILL included, and their children with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from harness.lifetime import resources, supervisor

LONGEST_END_S = 15.0
"""How long a command's guard may take, beyond the command's grace, until nothing is left."""
STEP_S = 0.005


class Guarded:
    """A command under its guard, in a session of its own, so that signals of a terminal do not reach it."""

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
        grace_s: float = 0.0,
        terminate: bool = False,
        remove: Sequence[Path] = (),
    ) -> None:
        """`grace_s`: how long it may take to end by itself once this process is gone; `terminate`: it is sent SIGTERM
        then, for it does not look at its standard input. `remove`: directories that go when it has ended."""
        self._grace_s = grace_s
        options = json.dumps({"grace_s": grace_s, "terminate": terminate, "remove": [str(path) for path in remove]})
        guarding = [sys.executable, "-I", "-S", supervisor.__file__, options]
        read, self._write = os.pipe()
        self._pid: int | None = None
        self._held = resources.hold(self.end)
        try:
            self._process = subprocess.Popen(
                [*guarding, *(os.fspath(word) for word in command)],
                stdin=read,
                stdout=stdout,
                stderr=stderr,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
            self._pid = self._process.pid
        finally:
            os.close(read)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The guard; its exit code is the command's."""
        return self._process

    def end(self) -> None:
        """End it, its children and its guard; returns when they are gone. Takes no lock."""
        write, self._write = self._write, -1
        if write >= 0:
            os.close(write)
        deadline = time.monotonic() + self._grace_s + LONGEST_END_S
        while self._pid is not None and not _gone(self._pid) and time.monotonic() < deadline:
            time.sleep(STEP_S)
        resources.let_go(self._held)


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of a command that ends with this process. Raises subprocess.TimeoutExpired."""
    guarded = Guarded(command, stdout=stdout, stderr=stderr, environment=environment)
    try:
        out, error = guarded.process.communicate(timeout=timeout_s)
    finally:
        guarded.end()
    text = partial(bytes.decode, errors="replace")
    return subprocess.CompletedProcess(command, guarded.process.returncode, text(out or b""), text(error or b""))


def _gone(pid: int) -> bool:
    """Whether a child has ended; it may have been waited for already, or be left to another waiter."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
