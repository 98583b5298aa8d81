"""Which searches begin, until when they may go on, and what they report of themselves meanwhile.

The deadline holds for all that a kernel calls (`checkers.deadline_engine`). Long searches look at it between pieces of
work of about a second. What was decided by then stands; the rest is UNKNOWN. Work that takes time in proportion to the
history may go on a little longer, and then gives up as a whole. No other bound depends on a clock: without a deadline
every machine gives the same answer.

A listener is informed of what is searched, and of how far that is. None is needed: no result depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkers.kernels.columns import Bool

LONGEST_WAIT_S = 1e6
"""The longest wait, which a timer accepts in place of one without an end."""


GRACE_S = 20.0
"""How long after the end of searches work may go on that takes time in proportion to the history."""


class TimeIsUp(Exception):
    """The time is over; what is not finished is left."""

    def __init__(self) -> None:
        super().__init__("the time of --give-up-after was up before all had been looked at; give more time")


class Searches(Enum):
    """Which searches are begun for what no decider decides."""

    UNTIL_INVALID = "until-invalid"
    """No search is begun once a broken promise was found, because then the verdict is certain."""
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long a user wants searches to go on, and which."""

    give_up_after_s: float | None = None
    """How long searches may go on; None: steps and memory alone bound them."""
    searches: Searches = Searches.UNTIL_INVALID

    @property
    def until(self) -> float | None:
        """The deadline for `searching_until` if searches begin now."""
        return None if self.give_up_after_s is None else time.time() + self.give_up_after_s


USUAL = Effort()
"""The default effort."""

_until: ContextVar[float | None] = ContextVar("searches_until", default=None)


@contextmanager
def searching_until(moment: float | None) -> Iterator[None]:
    """Sets the deadline, in seconds since the epoch, on which all workers of an engine agree; None for no deadline."""
    token = _until.set(None if moment is None else time.monotonic() + moment - time.time())
    try:
        yield
    finally:
        _until.reset(token)


def is_bounded() -> bool:
    return _until.get() is not None


def is_over() -> bool:
    until = _until.get()
    return until is not None and time.monotonic() >= until


def is_long_over() -> bool:
    """Whether work that takes time in proportion to the history has to end as well."""
    until = _until.get()
    return until is not None and time.monotonic() >= until + GRACE_S


def require_time() -> None:
    """Raises TimeIsUp if searches are over."""
    if is_long_over():
        raise TimeIsUp


def left_s() -> float:
    """How long searches may still go on; a long time if there is no deadline."""
    until = _until.get()
    return LONGEST_WAIT_S if until is None else min(max(until - time.monotonic(), 0.0), LONGEST_WAIT_S)


@contextmanager
def stopping() -> Iterator[Bool]:
    """One bit for a kernel that takes long and may give up anywhere: True once searches are over. The kernel looks at
    it between its steps, which all write into arrays, so that it is read anew each time."""
    import numpy as np  # not before: the command line imports this module for its options

    stop = np.array([is_over()])
    if not is_bounded():
        yield stop
        return

    def over() -> None:
        stop[0] = True

    with ending(over):
        yield stop


@contextmanager
def ending(over: Callable[[], None]) -> Iterator[None]:
    """Calls `over` from another thread once searches are over, unless the block has ended by then."""
    timer = Timer(left_s(), over)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


Listener = Callable[[str], None]


_listener: ContextVar[Listener | None] = ContextVar("listens_to_searches", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Lets a listener hear what searches report meanwhile, in a few words; each report replaces the one before."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def saying_of(subject: str) -> Iterator[None]:
    """Marks reports within the block as being about this subject."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    listener(subject)
    with heard_by(lambda words: listener(f"{subject}: {words}")):
        yield


def say(words: Callable[[], str]) -> None:
    """Reports progress. The words are only computed if there is a listener."""
    listener = _listener.get()
    if listener is not None:
        listener(words())
