"""The text of PolySI, Plume and AWDIT: an access a line, with its session and its transaction.

    w(KEY,VALUE,SESSION,TRANSACTION)
    r(KEY,VALUE,SESSION,TRANSACTION)

Registers begin with 0. Transaction -1 is that of writes that were aborted.
"""

from __future__ import annotations

import re

from harness.jepsen.source import BrokenText
from harness.notations.sessions import Access, Sessions, SessionTransaction

ABORTED = -1
_LINE = re.compile(rb"\s*([rw])\((-?\d+),(-?\d+),(-?\d+),(-?\d+)\)\s*")


def looks_so(head: bytes) -> bool:
    return _LINE.fullmatch(head.lstrip().partition(b"\n")[0]) is not None


def parse(text: bytes) -> Sessions:
    """Raises BrokenText."""
    sessions: dict[int, dict[int, SessionTransaction]] = {}
    aborted: list[SessionTransaction] = []
    at = 0
    for line in text.split(b"\n"):
        begun, at = at, at + len(line) + 1
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise BrokenText(begun, f"a line must be w(key,value,session,transaction) or r(…), it is {line[:60]!r}")
        key, value, session, transaction = map(int, found.groups()[1:])
        one = Access(writes=found[1] == b"w", key=key, value=value)
        if transaction == ABORTED:
            if one.writes:
                aborted.append(SessionTransaction(accesses=[one], committed=False))
            continue
        of_session = sessions.setdefault(session, {})
        of_session.setdefault(transaction, SessionTransaction()).accesses.append(one)
    of = [list(transactions.values()) for _, transactions in sorted(sessions.items())]
    return Sessions([*of, *([aborted] if aborted else [])]).beginning_with(0)
