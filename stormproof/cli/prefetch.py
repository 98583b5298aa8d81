"""Short histories that `stormproof check` judges together before it is their turn to be told of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.progress import Moment, Progress
from harness.reading import is_stream
from harness.record.history import MalformedHistory
from stormproof.cli.check_options import HistoryOptions, NothingHappened
from stormproof.session.batch_checking import (
    Pace,
    ShortHistory,
    judged_together,
    may_be_judged_together,
    short_history,
)
from stormproof.session.check_spec import CheckSpec
from stormproof.session.decide import CheckOptions
from stormproof.session.foreign_history import locate_history
from stormproof.session.judge_history import JudgedHistory


@dataclass(frozen=True, kw_only=True)
class EarlyVerdict:
    """What a history came to, and as what it was judged."""

    history: JudgedHistory
    options: HistoryOptions
    seconds: float
    """Its share of what those took that were judged together."""


@dataclass
class Prefetch:
    """Which of some histories are known to be valid before they are looked at one by one."""

    paths: Sequence[Path]
    options: HistoryOptions
    check_options: CheckOptions
    scratch: Path
    progress: Progress
    _pace: Pace = field(default_factory=Pace)
    _verdicts: dict[int, EarlyVerdict] = field(default_factory=dict)
    _until: int = 0
    _valid: int = 0
    reached: int = 0
    """How many of the paths were judged when the one is told of that was asked for last."""

    def take(self, number: int) -> EarlyVerdict | None:
        """Of the path of that number, which comes next; None if it is to be judged by itself."""
        if number == self._until:
            if number:
                self._pace.learn(self._valid)
            self._valid, self._until = 0, min(number + self._pace.size, len(self.paths))
            if self._pace.together and self._until - number > 1 and may_be_judged_together(self.check_options):
                self._look(range(number, self._until))
                self.reached = self._until
        self.reached = max(self.reached, number + 1)
        return self._verdicts.pop(number, None)

    def was_valid(self) -> None:
        """The path that was asked for last."""
        self._valid += 1

    def _look(self, numbers: range) -> None:
        begun = time.monotonic()
        read = {number: self._read(self.paths[number]) for number in numbers}
        short = {number: one for number, one in read.items() if one is not None}
        self.progress(Moment(f"checking {len(short)} short histories together"))
        judged = judged_together([history for history, _ in short.values()], self.check_options)
        share = (time.monotonic() - begun) / len(numbers)
        for (number, (_, options)), one in zip(short.items(), judged, strict=True):
            if one is not None:
                self._verdicts[number] = EarlyVerdict(history=one, options=options, seconds=share)

    def _read(self, path: Path) -> tuple[ShortHistory, HistoryOptions] | None:
        """None also for what cannot be read: that is told when it is its turn."""
        self.progress(Moment(f"reading {path.name}"))
        try:
            if not path.is_file() or is_stream(path):
                return None
            history = locate_history(path, self.scratch)
            options = self.options.as_recorded(history)
            spec = _spec(options)
            short = short_history(history, spec, subject=options.subject()) if spec else None
        except (OSError, ValueError, MalformedHistory, UsageError, HarnessError, NothingHappened):
            return None
        return None if short is None else (short, options)


@cache
def _spec(options: HistoryOptions) -> CheckSpec | None:
    """One for all that is judged alike. Raises UsageError."""
    return options.spec(1)
