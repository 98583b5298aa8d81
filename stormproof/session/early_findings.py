"""What is certain of a history while the pipe that it comes through is still open.

At intervals the rows so far are judged as a history of their own. Findings that no later row can undo
(`checkers.prefix`) are reported, each once. The verdict comes from the whole.

Nothing waits for it: another thread copies what comes. A look at the rows so far begins when twice the time has passed
that the last one took, so that looks take a third of the time at most, however slowly rows come. A pipe that ends in
its first second is not looked at.

Nothing is reported of histories whose first rows do not say what they are: without --workload and --model, with rows to
be put in another order, or session by session; nor of Parquet, which has its index at its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary
from checkers.linearizable.checker import TooLargeToCertify
from checkers.prefix import certain
from checkers.search_budget import Effort
from harness.errors import HarnessError, UsageError
from harness.jepsen.source import BLOCK_BYTES, BrokenText, opened
from harness.lifetime.scratch import directory
from harness.progress import Progress, Remark, unwatched
from harness.record.history import MalformedHistory
from stormproof.session import engines
from stormproof.session.check_spec import CheckSpec
from stormproof.session.decide import CheckOutcome
from stormproof.session.engines import CheckOptions
from stormproof.session.foreign_history import Form, HistoryFile, locate_history
from stormproof.session.judge_history import judge_history

PAUSE_S = 1.0
"""The least time between two looks, and before the first."""
PAUSE_SHARE = 2.0
"""A look waits for this many times what the last one took."""
SEARCHED_S = 5.0
"""How long searches go on in one look."""
MOST_BYTES = 1 << 29
"""The most bytes of a history. Of a longer one nothing more is reported before its end."""


@dataclass
class EarlyFindings:
    """Reports what is certain of one history; called with the file that it is copied to, and how much has come."""

    path: Path
    """The name of the history as it was given."""
    spec_of: Callable[[HistoryFile], CheckSpec | None]
    """How what has come is judged; None for not at all."""
    check_options: CheckOptions
    progress: Progress
    clock: Callable[[], float] = time.monotonic
    _reported: Reported = field(default_factory=lambda: Reported())
    _seen_bytes: int = 0
    _next_s: float | None = None

    def __call__(self, file: Path, came: int) -> None:
        begun = self.clock()
        if self._next_s is None:
            self._next_s = begun + PAUSE_S
        if not self._seen_bytes < came <= MOST_BYTES or begun < self._next_s:
            return
        self._seen_bytes = came
        # What is wrong with these rows is reported when all are there.
        with suppress(BrokenText, MalformedHistory, UsageError, HarnessError, TooLargeToCertify, OSError):
            self._look(file)
        ended = self.clock()
        self._next_s = ended + max(PAUSE_S, PAUSE_SHARE * (ended - begun))

    def _look(self, file: Path) -> None:
        with directory() as scratch:
            prefix = _prefix(file, self.path, scratch)
            spec = None if prefix is None else self.spec_of(prefix)
            if prefix is None or spec is None or spec.shape.by_time:
                return
            spec = replace(spec.without_figures(), certifier=None, certificate=None)
            effort = Effort(give_up_after_s=SEARCHED_S, searches=self.check_options.effort.searches)
            check_options = replace(self.check_options, engine=engines.IN_PROCESS, master=None, effort=effort)
            judged = judge_history(prefix, spec, check_options, scratch=scratch, progress=unwatched)
        for name, anomaly in self._reported.new(judged.outcome, spec.checkers):
            self.progress(Remark(_words(name, anomaly)))


def _prefix(file: Path, path: Path, scratch: Path) -> HistoryFile | None:
    """What has come, as a history by itself, up to the end of a line if it is text; None for what cannot be read yet.

    Raises what reading it raises.
    """
    kept = scratch / "prefix"
    line_end = at = 0
    with opened(file) as text, kept.open("wb") as copy:
        while block := text.read(BLOCK_BYTES):
            copy.write(block)
            newline = block.rfind(b"\n")
            line_end = at + newline + 1 if newline >= 0 else line_end
            at += len(block)
    history = locate_history(kept, scratch)
    if history.form is Form.PARQUET or history.notation:
        return None
    if history.form is Form.TEXT and line_end:
        # A number whose last digits are still to come is another number.
        with kept.open("r+b") as copy:
            copy.truncate(line_end)
    return replace(history, path=path)


@dataclass
class Reported:
    """The findings that were reported, so that none is twice, even if its witnesses change while more comes."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """The count that was reported for each checker and name."""
    keys: set[tuple[str, str, str | None]] = field(default_factory=set)
    examples: set[tuple[str, str, str | None, tuple[int, ...]]] = field(default_factory=set)

    def new(self, outcome: CheckOutcome, checkers: Mapping[str, object]) -> Iterator[tuple[str, Anomaly]]:
        """Those that were found for the first time."""
        for checker, name, summary in certain(outcome.results, checkers):
            yield from ((name, one) for one in self._new(checker, name, summary))

    def _new(self, checker: str, name: str, summary: AnomalySummary) -> list[Anomaly]:
        """As many as were added, of other keys first."""
        before = self.counts.get((checker, name), 0)
        self.counts[checker, name] = max(before, summary.count)
        unseen = [one for one in summary.examples if (checker, name, one.key, one.operations) not in self.examples]
        unseen.sort(key=lambda one: (checker, name, one.key) in self.keys)
        new = unseen[: max(summary.count - before, 0)]
        self.keys.update((checker, name, one.key) for one in summary.examples)
        self.examples.update((checker, name, one.key, one.operations) for one in summary.examples)
        return new


def _words(name: str, anomaly: Anomaly) -> str:
    """`certain already: duplicated, key q0, operations 1 and 5: …`."""
    key = "" if anomaly.key is None else f", key {anomaly.key}"
    numbers = [str(number) for number in anomaly.operations]
    listed = " and ".join(filter(None, (", ".join(numbers[:-1]), *numbers[-1:])))
    operations = f", operation{'s' if len(numbers) > 1 else ''} {listed}" if numbers else ""
    return f"certain already: {name}{key}{operations}: {anomaly.because}"
