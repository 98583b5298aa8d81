"""Work in a process of its own, a copy of this one, that tells as it goes and never outlives this one."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

MOST_BYTES = 4 << 30
PATIENCE_S = 600
"""By the clock, without a word: one that waits for something takes no processor time, and has no other limit."""
_PR_SET_PDEATHSIG = 1

Tell = Callable[[Any], None]


@dataclass(frozen=True, kw_only=True)
class Ended:
    reports: list[Any]
    code: int
    """As `os.waitstatus_to_exitcode`: below 0, the signal."""
    words: str
    """What it said at last, if it failed by itself."""


def die_with_parent(number: signal.Signals) -> None:
    """This process gets the signal when the one that started it ends, however that ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


def in_child(work: Callable[[Tell], None]) -> Ended:
    """Work in a copy of this process, whose temporary files and output are of no interest."""
    parent, directory = os.getpid(), tempfile.mkdtemp(prefix="stormproof-mutation-")
    heard, tells = Pipe(duplex=False)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        heard.close()
        die_with_parent(signal.SIGKILL)
        if os.getppid() == parent:
            _run(work, tells, directory)
        os._exit(0)
    tells.close()
    told, words = [], ""
    try:
        while heard.poll(PATIENCE_S):
            told.append(heard.recv())
        os.kill(child, signal.SIGKILL)
    except EOFError:
        pass
    _, status = os.waitpid(child, 0)
    heard.close()
    shutil.rmtree(directory, ignore_errors=True)
    if told and isinstance(told[-1], BaseException):
        words = "".join(traceback.format_exception_only(told.pop()))
    return Ended(reports=told, code=os.waitstatus_to_exitcode(status), words=words)


def allow_s(more_s: float) -> None:
    """So much processor time more for this process, then it ends by SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    at_most = int(used.ru_utime + used.ru_stime + more_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (at_most, resource.RLIM_INFINITY))


def _run(work: Callable[[Tell], None], tells: Connection, directory: str) -> None:
    """In the child: never returns."""
    code = 3
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = directory
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work(tells.send)
        code = 0
    except BaseException as failure:  # noqa: BLE001 what a change does to a process is not foreseen
        tells.send(RuntimeError(repr(failure)))
    finally:
        tells.close()
        os._exit(code)
