"""For how long a leader may take for certain that nobody else was elected, by the rounds that were confirmed."""

from __future__ import annotations

from collections import deque


class Lease:
    """Of one leadership. It goes from when a round began, for voters keep their promise from some later moment on."""

    def __init__(self, length_ns: int) -> None:
        """`length_ns`: 0 for a leader that asks for each read."""
        self._length_ns = length_ns
        self._begins: deque[tuple[int, int]] = deque()
        """Rounds that were not found to be confirmed, and when they began."""
        self._ends_ns = 0
        self._is_over = False

    def begin(self, number: int, now_ns: int) -> None:
        """A round begins, of which the number is the greatest so far."""
        if self._length_ns:
            self._begins.append((number, now_ns))

    def confirm(self, number: int) -> None:
        """A majority has confirmed the rounds up to this one."""
        while self._begins and self._begins[0][0] <= number:
            self._ends_ns = self._begins.popleft()[1] + self._length_ns

    def end(self) -> None:
        """For good: another one was asked to stand for election, which may happen late."""
        self._is_over = True

    def holds(self, now_ns: int) -> bool:
        return not self._is_over and now_ns < self._ends_ns
