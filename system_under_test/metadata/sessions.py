"""Which sessions are silent, as the node that leads has heard of them by its monotonic clock; replicated to nobody.

A new leader has heard nobody yet, and begins all sessions anew: nobody loses one because an election took long.
"""

from __future__ import annotations

from collections.abc import Iterable


class SessionClock:
    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._heard_ns: dict[str, int] = {}

    def begin_anew(self) -> None:
        """Nobody counts as heard of yet."""
        self._heard_ns.clear()

    def hear(self, session: str, now_ns: int) -> None:
        self._heard_ns[session] = now_ns

    def silent(self, sessions: Iterable[str], now_ns: int) -> list[str]:
        """Those of all sessions, in their order, that were not heard of for the time-out. Of one that was never heard
        of, it begins now."""
        self._heard_ns = {session: self._heard_ns.get(session, now_ns) for session in sessions}
        return [session for session, heard_ns in self._heard_ns.items() if now_ns - heard_ns >= self._timeout_ns]

    def next_deadline_ns(self, now_ns: int) -> int:
        """Before that no session is silent, as far as they were there at the last look, or are heard of when they
        begin."""
        return min(self._heard_ns.values(), default=now_ns) + self._timeout_ns
