"""The compact text of dbcop: transactions in brackets, a line of dashes between sessions.

    // a comment
    [x:=1 y:=1] [z==2 z:=3]
    ---
    [x==1 y==?]!

`:=` writes and `==` reads, `?` is a register that nobody has written, and `!` a transaction that did not commit.
"""

from __future__ import annotations

import re

from harness.jepsen.source import BrokenText
from harness.notations.sessions import Access, Sessions, SessionTransaction

_BEGINS = re.compile(rb"(?:\s|//[^\n]*\n|-+\s*\n)*\[\s*[A-Za-z_]\w*\s*(?::=|==)")
_TOKEN = re.compile(
    rb"""(?P<blank>\s+|//[^\n]*) | (?P<dashes>-+) | (?P<open>\[) | (?P<close>\]\s*(?P<aborted>!)?)
    | (?P<key>[A-Za-z_]\w*)\s*(?P<how>:=|==)\s*(?P<value>\d+|\?) | (?P<comma>,)""",
    re.VERBOSE,
)


def looks_so(head: bytes) -> bool:
    return _BEGINS.match(head) is not None


def parse(text: bytes) -> Sessions:
    """Raises BrokenText."""
    sessions: list[list[SessionTransaction]] = [[]]
    transaction: SessionTransaction | None = None
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BrokenText(at, f"nothing of dbcop's text begins with {text[at : at + 40]!r}")
        if found["dashes"]:
            sessions.append([])
        elif found["open"] and transaction is None:
            transaction = SessionTransaction()
        elif found["key"] and transaction is not None:
            transaction.accesses.append(_access(found, at))
        elif found["close"] and transaction is not None:
            transaction.committed = found["aborted"] is None
            sessions[-1].append(transaction)
            transaction = None
        elif not found["blank"] and not found["comma"]:
            raise BrokenText(at, f"{'within' if transaction else 'outside of'} a transaction stands {found[0]!r}")
        at = found.end()
    if transaction is not None:
        raise BrokenText(at, "the text ends within a transaction")
    return Sessions([session for session in sessions if session]).beginning_with(0)


def _access(found: re.Match[bytes], at: int) -> Access:
    writes = found["how"] == b":="
    if writes and found["value"] == b"?":
        raise BrokenText(at, "a write has a value")
    value = None if found["value"] == b"?" else int(found["value"])
    return Access(writes=writes, key=found["key"].decode(), value=value)
