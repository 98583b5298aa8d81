"""What every history is judged by, whether it came with its run or without: engine, checkers, verdict."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Verdict, in_words, judged_as, merge
from checkers.deadline_engine import EngineInTime
from checkers.history_batches import history_rows
from checkers.run import check_history
from checkers.search_budget import Searches, heard_by
from harness.progress import Moment, Progress
from harness.record.history import MalformedHistory
from harness.record.history.message import shortened
from harness.record.history.named_values import names_of
from results.verdict_file import Checking
from stormproof.session import engines
from stormproof.session.engines import CheckOptions, Chosen
from stormproof.session.outcome import check_line, vacuity_arguments


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """What came of a check."""

    results: Mapping[str, CheckerResult] = field(default_factory=dict)
    """The result of each checker."""
    doubts: tuple[str, ...] = ()
    """Further reasons, not the checkers', why a verdict of VALID could not be trusted."""
    chosen: Chosen | None = None
    """The choice of the engine; None if there was nothing to check."""
    engine: Engine | None = None
    """The one chosen."""

    @property
    def verdict(self) -> Verdict:
        return merge([*(result.verdict for result in self.results.values()), *(Verdict.UNKNOWN for _ in self.doubts)])

    @property
    def reasons(self) -> tuple[str, ...]:
        of_checkers = dict.fromkeys(chain.from_iterable(result.reasons for result in self.results.values()))
        return (*self.doubts, *(reason for reason in of_checkers if reason not in self.doubts))

    @property
    def checked(self) -> str:
        """On which engine, and why; empty where there was nothing to check."""
        return "" if self.chosen is None else self.chosen.words()

    def checking(self, path: Path, options: CheckOptions, *, history: Path, arguments: Sequence[str] = ()) -> Checking:
        """Where the verdict comes from; `path` and `arguments` are the words with which `check` reaches it again."""
        assert self.chosen is not None, "nothing was checked"
        again = (*arguments, *vacuity_arguments(options.vacuous), "--engine", self.chosen.name)
        return Checking(
            history=str(history.resolve()),
            judged_as=shlex.join(arguments),
            engine=self.chosen.name,
            engine_because=self.chosen.because,
            command=check_line(path, *again),
        )


def decide(
    request: CheckRequest,
    checkers: Mapping[str, Any],
    options: CheckOptions,
    *,
    subject: str,
    named: str,
    progress: Progress,
    doubts: tuple[str, ...] = (),
) -> CheckOutcome:
    """`subject`: the name of the workload or model; `named`: what the history is called in a line of progress.

    Raises MalformedHistory, UsageError, HarnessError.
    """
    chosen = engines.choose(options.engine, options.master, rows=history_rows(request.history), subject=subject)
    progress(f"checking {named} {chosen.words()}")
    progress(Moment(f"starting engine {chosen.name}"))
    engine = engines.make_engine(chosen, progress)
    if options.effort.until is not None:
        engine = EngineInTime(engine, options.effort.until)
    begun = time.monotonic()
    if options.effort.searches is Searches.ALL:
        request = replace(request, searches=Searches.ALL)
    doing = Doing(engine.name, progress)
    names = names_of(request.history)
    try:
        with heard_by(doing.hears):
            results = check_history(request, checkers, engine, begins=doing.begins)
    except MalformedHistory as error:
        raise error.in_words(names.with_names) from None
    results = in_words(results, lambda value: shortened(names.with_names(value)))
    progress(f"checked in {time.monotonic() - begun:.1f} s")
    return CheckOutcome(results=judged_as(results, options.vacuous), doubts=doubts, chosen=chosen, engine=engine)


@dataclass
class Doing:
    """Reports which checker is at work, and what it says."""

    engine: str
    progress: Progress
    what: str = ""

    def begins(self, checker: str) -> None:
        self.what = f"checking: {checker} ({self.engine})"
        self.progress(Moment(self.what))

    def hears(self, words: str) -> None:
        self.progress(Moment(self.what, detail=words))
