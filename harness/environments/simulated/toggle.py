"""Something that is done and undone by turns, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from harness.environments.simulated.loop import VirtualTimeLoop


class Turns:
    """Done at once, undone after `on_ns`, done again after `off_ns` …, until `stop`, which leaves it undone."""

    __slots__ = ("_do", "_is_on", "_loop", "_off_ns", "_on_ns", "_timer", "_undo", "count")

    def __init__(
        self, loop: VirtualTimeLoop, do: Callable[[], None], undo: Callable[[], None], *, on_ns: int, off_ns: int
    ) -> None:
        self._loop = loop
        self._do = do
        self._undo = undo
        self._on_ns = max(1, on_ns)
        self._off_ns = max(1, off_ns)
        self._is_on = False
        self.count = 0
        """How often it was done."""
        self._turn()

    def _turn(self) -> None:
        self._is_on = not self._is_on
        if self._is_on:
            self.count += 1
            self._do()
        else:
            self._undo()
        lasts_ns = self._on_ns if self._is_on else self._off_ns
        self._timer = self._loop.kernel_at(self._loop.now_ns + lasts_ns, self._turn)

    def stop(self) -> None:
        self._timer.cancel()
        if self._is_on:
            self._is_on = False
            self._undo()
