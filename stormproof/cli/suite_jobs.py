"""Scenarios of a suite in processes of their own: they end when this one is asked to end, and when it is killed.

Fresh processes, each with a Spark session of its own: forking a running JVM's client would share its sockets.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait as wait_for_sentinel
from typing import TypeVar

from harness.arrow import start_arrow
from harness.lifetime import interruption
from stormproof.cli.console import remark_at_once

In = TypeVar("In")
Out = TypeVar("Out")

ASKED_AGAIN_S = 0.5
"""A process that was just beginning when all were asked to end is asked again."""


def each(work: Callable[[In], Out], items: Iterable[In], jobs: int) -> Iterator[Future[Out]]:
    """The futures in this order, as they are done. Raises Interrupted, after all ended, if that was asked for."""
    with (
        interruption.unwinding(_ask_all),
        ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin) as pool,
    ):
        with _held_back():
            futures = [pool.submit(partial(_worked, work), item) for item in items]
        for future in futures:
            while not wait([future], timeout=ASKED_AGAIN_S).done:
                if interruption.has_come():
                    _ask_all()
            if interruption.has_come():
                return
            yield future


def _ask_all() -> None:
    # Of children that end at this moment the list may change while it is made; one that was missed is asked again.
    with contextlib.suppress(RuntimeError, ProcessLookupError):
        for child in multiprocessing.active_children():
            if child.pid is not None:
                os.kill(child.pid, signal.SIGTERM)


@contextmanager
def _held_back() -> Iterator[None]:
    """A process that begins would print a traceback for a signal; it has none before `_begin` lets them through."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interruption.SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    interruption.install(remark_at_once)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interruption.SIGNALS)
    start_arrow()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait_for_sentinel([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _worked(work: Callable[[In], Out], item: In) -> Out:
    interruption.forget_words()
    try:
        return work(item)
    except KeyboardInterrupt:
        interruption.end()  # otherwise the next item would be begun here
