"""The text of AWDIT's own tests: an access a line, a line of dashes between transactions, one of `=` between sessions.

w 0 1
w 1 1
-----
r 0 1
=====
r 1 1
"""

from __future__ import annotations

import re

from harness.jepsen.source import BrokenText
from harness.notations.sessions import Access, Sessions, SessionTransaction

_ACCESS = re.compile(rb"\s*([rw])\s+(\d+)\s+(\d+)\s*")


def looks_so(head: bytes) -> bool:
    return _ACCESS.fullmatch(head.lstrip().partition(b"\n")[0]) is not None


def parse(text: bytes) -> Sessions:
    """Raises BrokenText."""
    sessions: list[list[SessionTransaction]] = [[SessionTransaction()]]
    at = 0
    for line in text.split(b"\n"):
        begun, at = at, at + len(line) + 1
        marks = line.strip()
        found = _ACCESS.fullmatch(line)
        if found is not None:
            one = Access(writes=found[1] == b"w", key=int(found[2]), value=int(found[3]))
            sessions[-1][-1].accesses.append(one)
        elif marks and not marks.strip(b"="):
            sessions.append([SessionTransaction()])
        elif marks and not marks.strip(b"-"):
            sessions[-1].append(SessionTransaction())
        elif marks:
            raise BrokenText(begun, f"a line must be `w KEY VALUE`, `r KEY VALUE`, ---- or ====, it is {line[:60]!r}")
    filled = [[one for one in session if one.accesses] for session in sessions]
    return Sessions([session for session in filled if session])
