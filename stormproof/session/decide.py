"""What every history is judged by, whether it came with its run or without: engine, checkers, verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Vacuous, Verdict, in_words, judged_as, merge
from checkers.deadline_engine import EngineInTime
from checkers.history_batches import history_rows
from checkers.run import check_history
from checkers.search_budget import USUAL, Effort, Searches, heard_by
from harness.progress import Moment, Progress
from harness.record.history import MalformedHistory
from harness.record.history.message import shortened
from harness.record.history.named_values import names_of
from stormproof.session import engines
from stormproof.session.engines import Chosen


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """What the checkers found."""

    results: Mapping[str, CheckerResult]
    chosen: Chosen
    engine: Engine
    """The one chosen."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """By what histories are judged, beside their checkers."""

    engine: str = engines.AUTO
    master: str | None = None
    vacuous: Vacuous = Vacuous.UNKNOWN
    effort: Effort = USUAL

    def decide(
        self, request: CheckRequest, checkers: Mapping[str, Any], *, subject: str, named: str, progress: Progress
    ) -> CheckOutcome:
        """`subject`: the name of the workload or model; `named`: what the history is called in a line of progress.

        Raises MalformedHistory, UsageError, HarnessError.
        """
        chosen = engines.choose(self.engine, self.master, rows=history_rows(request.history), subject=subject)
        progress(f"checking {named} {chosen.words()}")
        progress(Moment(f"starting engine {chosen.name}"))
        engine = self._in_time(engines.make_engine(chosen, progress))
        begun = time.monotonic()
        if self.effort.searches is Searches.ALL:
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
        return CheckOutcome(results=judged_as(results, self.vacuous), chosen=chosen, engine=engine)

    def _in_time(self, engine: Engine) -> Engine:
        until = self.effort.until
        return engine if until is None else EngineInTime(engine, until)


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


def verdict_of(results: Mapping[str, CheckerResult], doubts: Sequence[str]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict with its reasons; `doubts` are reasons beside the checkers' for which VALID could not be trusted."""
    reasons = list(doubts)
    for result in results.values():
        reasons += [reason for reason in result.reasons if reason not in reasons]
    return merge([*(result.verdict for result in results.values()), *(Verdict.UNKNOWN for _ in doubts)]), tuple(reasons)
