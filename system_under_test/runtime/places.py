"""How many requests may be at work at one time, in a server that lets some of them wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """Each task at work has a place. One that waits for what others bring, a message or a word of its client, has none
    meanwhile, so that waiting tasks never keep out the ones that they wait for; what bounds them is said where they
    wait. After a wait a place is taken in any case: for a moment more may be at work than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    @property
    def is_full(self) -> bool:
        return self.taken >= self._most

    def take(self) -> None:
        self.taken += 1

    def give_back(self) -> None:
        self.taken -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Only for a task that has a place."""
        self.give_back()
        try:
            yield
        finally:
            self.take()
