"""What this process holds outside of itself, and how each is given back when the process is asked to end.

An ending does not unwind the stack (see `harness.lifetime.interruption`), so whatever must not outlive the process is
held here from before it is made until after it is gone. What gives it back is called in a signal's handler, at any
point of the main thread: it takes no lock, and may come while the thing is being made or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

GiveBack = Callable[[], None]

_held: dict[int, GiveBack] = {}
_next = iter(range(1 << 62))


def hold(give_back: GiveBack) -> int:
    """Remember it; returns what `let_go` takes."""
    key = next(_next)
    _held[key] = give_back
    return key


def let_go(key: int) -> None:
    """It is given back already."""
    _held.pop(key, None)


@contextmanager
def holding(give_back: GiveBack) -> Iterator[None]:
    """Held inside, and given back on every way out."""
    key = hold(give_back)
    try:
        yield
    finally:
        try:
            give_back()
        finally:
            let_go(key)


def give_all_back() -> None:
    """The newest first, for it may use an older one; what fails is left to `stormproof cleanup`."""
    for key in sorted(_held, reverse=True):
        give_back = _held.pop(key, _nothing)
        try:
            give_back()
        except OSError:
            continue


def _nothing() -> None:
    """It was let go of a moment ago."""
