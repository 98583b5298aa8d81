"""Until when searches may go on: a moment that a kernel sets for all searches that it leads to.

A search asks now and then, between pieces of its work that take a second or so. Whatever it had decided by then stands;
what was not decided is UNKNOWN. No other bound depends on a clock: where no moment is given, every machine decides
alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float | None] = ContextVar("searches_until", default=None)


@contextmanager
def searching_until(moment: float | None) -> Iterator[None]:
    """In seconds since the epoch, which all workers of an engine agree on; None for as long as it takes."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def is_bounded() -> bool:
    return _until.get() is not None


def is_over() -> bool:
    until = _until.get()
    return until is not None and time.time() >= until
