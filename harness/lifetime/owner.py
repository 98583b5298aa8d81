"""Who made something on this machine: a process, by a name that no other process has, before or after it.

`host:pid:start`: a number of a process is given to another one later, but not with the same moment of its start.
"""

from __future__ import annotations

import os
import re
import socket
from enum import Enum
from pathlib import Path

PATTERN = r"[^/:\s]+:\d+:\w+"


class State(Enum):
    """What is known of an owner."""

    LIVING = "living"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    """It is on another machine, whose processes nothing is known of."""


def owner_id() -> str:
    """That of this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def state_of(owner: str) -> State:
    """GONE as well for what is no such id."""
    if not re.fullmatch(PATTERN, owner):
        return State.GONE
    host, pid, started = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return State.ELSEWHERE
    return State.LIVING if _started(int(pid)) == started else State.GONE


def _started(pid: int) -> str:
    """When a process began, as the kernel writes it; empty where there is none, or only its zombie."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return _exists(pid)
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _exists(pid: int) -> str:
    """For systems without /proc."""
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "runs"
