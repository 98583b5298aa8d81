"""How far a machine's CLOCK_MONOTONIC is ahead of this one's: events of nodes come home on the harness's clock."""

from __future__ import annotations

import shlex
import time
from typing import Any

from harness.environments.ssh.shell import PYTHON
from harness.errors import HarnessError

EXCHANGES = 20
ANSWERING = """import sys, time
while sys.stdin.readline():
    print(time.monotonic_ns(), flush=True)
"""


def clock_ahead_ns(session: Any) -> int:
    """By the quickest of several exchanges: half of what it took is the most by which it errs.

    `session`: a fresh channel, which is closed. Any user may read the clock. Raises HarnessError.
    """
    try:
        session.exec_command(shlex.join([*PYTHON, "-c", ANSWERING]))
        answers = session.makefile("rb")
        exchanges = []
        for _ in range(EXCHANGES):
            asked_ns = time.monotonic_ns()
            session.sendall(b"\n")
            there_ns = int(answers.readline())
            answered_ns = time.monotonic_ns()
            exchanges.append((answered_ns - asked_ns, there_ns - (asked_ns + answered_ns) // 2))
    except (OSError, ValueError) as error:
        raise HarnessError(f"a machine's clock could not be read: {error}") from error
    finally:
        session.close()
    return min(exchanges)[1]
