"""The live line of a terminal: one line on standard error that is redrawn in place while something takes its time.

A thread of its own draws it a few times a second from the last report. So a report costs nothing, and the time shown
goes on even if nothing is reported. Without a terminal the same words are printed as a plain line at intervals. Other
lines are printed in its place, and it goes on below them until it is ended.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from harness.printable import printable
from harness.progress import Moment

REDRAWN_EVERY_S = 0.25
SAID_EVERY_S = 10.0
"""Where there is no terminal to redraw a line on."""
MEASURED_OVER_S = 3.0
"""How many of the last seconds rates are measured over, or else the time between two drawings."""
FALLBACK_COLUMNS = 80

ERASE = "\r\x1b[K"


class LiveLine:
    """Draws on `stream`, in place if that is a terminal that can be erased. `clock` gives seconds for the watcher, who
    has been waiting since `started`."""

    def __init__(
        self, stream: TextIO, *, in_place: bool, started: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.stream = stream
        self._in_place = in_place
        self._clock = clock
        self._started = started
        self._lock = threading.RLock()
        self._reported: tuple[float, Moment] | None = None
        """When the last moment was reported; replaced as a whole, so that a reporter needs no lock."""
        self._ended: threading.Event | None = None
        self._since = 0.0
        self._samples: deque[Moment] = deque()
        self.is_shown = False

    def report(self, moment: Moment) -> None:
        begins = self._reported is None or self._reported[1].doing != moment.doing
        self._reported = (self._clock(), moment)
        if begins:
            with self._lock:
                self._since = self._clock()
                self._samples = deque([moment])
                if self._ended is None:
                    self._ended = threading.Event()
                    threading.Thread(target=self._draw_at_intervals, args=(self._ended,), daemon=True).start()

    def end(self) -> None:
        """Erase it; nothing is drawn until the next moment. Its thread waits for that: to start another one for each
        small history takes time."""
        if self._reported is not None or self.is_shown:
            with self.erased():
                self._reported = None

    def close(self) -> None:
        """End it for good."""
        self.end()
        if self._ended is not None:
            self._ended.set()

    @contextmanager
    def erased(self) -> Iterator[None]:
        """Its place is empty and stays so meanwhile."""
        with self._lock:
            if self.is_shown:
                self._write(ERASE)
                self.is_shown = False
            yield

    def draw(self) -> None:
        """As it is now."""
        with self._lock:
            if self._reported is None:
                return
            words = self._words(*self._reported)
            if self._in_place:
                self._write(f"\r{_cut(words, _columns(self.stream) - 1)}\x1b[K")
                self.is_shown = True
            else:
                self._write(f"{words}\n")

    def _draw_at_intervals(self, ended: threading.Event) -> None:
        # Signals are for the thread that works: one that came here would not wake it from what it waits for.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not ended.wait(REDRAWN_EVERY_S if self._in_place else SAID_EVERY_S):
            with self._lock:
                if not ended.is_set():
                    self.draw()

    def _words(self, reported_at: float, moment: Moment) -> str:
        now = self._clock()
        words = [f"{now - self._started:7.1f} s  {moment.doing}"]
        if moment.left_s is None:
            words[0] += f", {now - self._since:.0f} s"
        else:
            # Where nothing completes nothing is reported, and time goes on all the same.
            words[0] += f", {max(moment.left_s - (now - reported_at), 0.0):.0f} s left"
        if moment.detail:
            words.append(moment.detail)
        if any((moment.ok, moment.failed, moment.unknown)):
            words.append(self._rates(moment))
        if moment.faults:
            words.append(f"faults: {', '.join(moment.faults)}")
        return printable(" · ".join(words))

    def _rates(self, moment: Moment) -> str:
        while len(self._samples) > 1 and self._samples[1].at_s <= moment.at_s - MEASURED_OVER_S:
            self._samples.popleft()
        before = self._samples[0]
        if moment is not self._samples[-1]:
            self._samples.append(moment)
        seconds = max(moment.at_s - before.at_s, 1e-3)
        counted = [
            ("ok", moment.ok - before.ok),
            ("failed", moment.failed - before.failed),
            ("unknown", moment.unknown - before.unknown),
        ]
        return ", ".join(f"{count / seconds:.0f} {name}" for name, count in counted) + " a second"

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            # Nobody reads it any more; the work goes on.
            self._reported = None


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or FALLBACK_COLUMNS
    except (OSError, ValueError):
        return FALLBACK_COLUMNS


def _cut(text: str, columns: int) -> str:
    """As much as fits, with an ellipsis where something does not; wide characters take two columns."""
    taken = 0
    for position, character in enumerate(text):
        taken += _width(character)
        if taken > columns:
            return _fitting(text[:position], columns - 1) + "…" if columns > 0 else ""
    return text


def _fitting(text: str, columns: int) -> str:
    while sum(map(_width, text)) > columns:
        text = text[:-1]
    return text


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
