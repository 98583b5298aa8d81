"""Bookies that failed this handle, and which others take their places in an ensemble."""

from __future__ import annotations

from collections.abc import Collection


class Suspects:
    """A bookie is suspected until it acknowledges something, or goes from those that are writable and comes back."""

    def __init__(self) -> None:
        self._suspected: dict[str, None] = {}
        """Who was suspected longest ago is first."""
        self._writable: tuple[str, ...] = ()

    def has_failed(self, bookie: str) -> None:
        self._suspected.pop(bookie, None)
        self._suspected[bookie] = None

    def has_served(self, bookie: str) -> None:
        self._suspected.pop(bookie, None)

    def writable(self, bookies: tuple[str, ...]) -> None:
        """These alone may be chosen now, in this order."""
        for bookie in bookies:
            if bookie not in self._writable:
                self._suspected.pop(bookie, None)
        self._writable = bookies

    def replace(self, ensemble: tuple[str, ...], failed: Collection[str], *, in_need: bool) -> tuple[str, ...] | None:
        """The ensemble with others in the places of those that failed, as far as there are any; None if there is none.
        In need, suspects are taken as well, behind all others."""
        free = [each for each in self._writable if each not in ensemble]
        candidates = [each for each in free if each not in self._suspected]
        if in_need:
            candidates += [each for each in self._suspected if each in free]
        candidates.reverse()
        changed = tuple(candidates.pop() if each in failed and candidates else each for each in ensemble)
        return None if changed == ensemble else changed
