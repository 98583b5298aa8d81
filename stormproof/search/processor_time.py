"""An end for what would compute for ever."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from harness.errors import HarnessError


class ComputesForEver(HarnessError):
    """It took far more processor time than it may."""


@contextmanager
def processor_time_limit(seconds: float) -> Iterator[None]:
    """Raise ComputesForEver, wherever the code inside is, once this process has computed for so long.

    It strikes in the main thread alone; in another one there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def strike(number: int, frame: FrameType | None) -> None:
        raise ComputesForEver(f"it did not come to its end in {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, strike)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)  # again, should somebody catch it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
