"""Three-valued verdicts, and how they merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from checkers.api.anomaly import Anomaly
from harness.record.meaning import Meaning

EXAMPLES = 10
"""The most examples of an anomaly that are kept. Counts are always exact."""


BETWEEN_REASONS = "; "


class Verdict(Enum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Vacuous(Enum):
    """What the verdict is if nothing could have contradicted a pass."""

    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    """VALID, with the reasons that were accepted."""


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """INVALID outranks UNKNOWN outranks VALID. Without any verdict it is UNKNOWN."""
    seen = list(verdicts)
    if Verdict.INVALID in seen:
        return Verdict.INVALID
    if not seen or Verdict.UNKNOWN in seen:
        return Verdict.UNKNOWN
    return Verdict.VALID


@dataclass(frozen=True, kw_only=True)
class AnomalySummary:
    count: int
    examples: tuple[Anomaly, ...] = ()
    legal: str = ""
    """Why this configuration may legally do this under these faults; empty if it may not."""
    meaning: Meaning | None = None
    """Its meaning; None if no checker explains it."""
    excused: AnomalySummary | None = None
    """The findings that are legal, of an anomaly that is not legal throughout. They are not counted here."""


@dataclass(frozen=True, kw_only=True)
class CheckerResult:
    """What one checker found. INVALID exactly if some anomaly with a count is not legal."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Why it is not VALID, apart from anomalies: what could not be decided, and why."""
    vacuous: tuple[str, ...] = ()
    """The reasons that say that too little happened to contradict anything."""
    accepted: tuple[str, ...] = ()
    """Vacuous reasons that a user has accepted: VALID is possible in spite of them."""
    anomalies: Mapping[str, AnomalySummary] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def found(self) -> Iterator[tuple[str, AnomalySummary]]:
        """What was found; legal findings are separate from others."""
        for name, summary in sorted(self.anomalies.items()):
            if summary.count:
                yield name, summary
            if summary.excused is not None:
                yield name, replace(summary.excused, meaning=summary.meaning)

    def accepting_vacuous(self) -> CheckerResult:
        """The same result if a pass may be vacuous. Other reasons still make it UNKNOWN."""
        reasons = tuple(reason for reason in self.reasons if reason not in self.vacuous)
        is_earned = self.verdict is not Verdict.UNKNOWN or not self.vacuous or bool(reasons)
        return replace(
            self,
            verdict=self.verdict if is_earned else Verdict.VALID,
            reasons=reasons,
            vacuous=(),
            accepted=(*self.accepted, *self.vacuous),
        )

    def with_nothing_promised(self, why: str) -> CheckerResult:
        """The same result if all findings are legal."""
        anomalies = {name: replace(summary, legal=summary.legal or why) for name, summary in self.anomalies.items()}
        if self.verdict is not Verdict.INVALID:
            return replace(self, anomalies=anomalies)
        return replace(self, verdict=Verdict.UNKNOWN if self.reasons else Verdict.VALID, anomalies=anomalies)


def judged_as(results: Mapping[str, CheckerResult], vacuous: Vacuous) -> Mapping[str, CheckerResult]:
    """The results with vacuous reasons accepted or not."""
    if vacuous is Vacuous.UNKNOWN:
        return results
    return {name: result.accepting_vacuous() for name, result in results.items()}


def with_nothing_promised(results: Mapping[str, CheckerResult], why: str) -> dict[str, CheckerResult]:
    """The results with all findings legal."""
    return {name: result.with_nothing_promised(why) for name, result in results.items()}


def accepted(results: Mapping[str, CheckerResult]) -> tuple[str, ...]:
    """The vacuous reasons that were accepted, each once."""
    return tuple(dict.fromkeys(reason for result in results.values() for reason in result.accepted))


def in_words(results: Mapping[str, CheckerResult], words: Callable[[Any], Any]) -> dict[str, CheckerResult]:
    """The results with values replaced by other words. A text becomes a text, a mapping a mapping."""
    return {name: _in_words(result, words) for name, result in results.items()}


def _in_words(result: CheckerResult, words: Callable[[Any], Any]) -> CheckerResult:
    return replace(
        result,
        reasons=tuple(map(words, result.reasons)),
        anomalies={name: _summary_in_words(summary, words) for name, summary in result.anomalies.items()},
    )


def _summary_in_words(summary: AnomalySummary, words: Callable[[Any], Any]) -> AnomalySummary:
    examples = tuple(
        replace(example, because=words(example.because), details=words(example.details)) for example in summary.examples
    )
    excused = None if summary.excused is None else _summary_in_words(summary.excused, words)
    return replace(summary, examples=examples, excused=excused)


def broken(results: Mapping[str, CheckerResult]) -> dict[str, int]:
    """Counts of the anomalies that are not legal, by name."""
    return {name: summary.count for result in results.values() for name, summary in result.found() if not summary.legal}


def found(results: Mapping[str, CheckerResult]) -> tuple[str, ...]:
    """Every anomaly that was found, in a few words: broken promises first, then legal ones."""
    counted = [one for result in results.values() for one in result.found()]
    illegal = [f"{name}: {summary.count} found" for name, summary in counted if not summary.legal]
    legal = [
        f"{name}: {summary.count} found, legal here: {summary.legal}" for name, summary in counted if summary.legal
    ]
    return (*illegal, *legal)


def excused(results: Mapping[str, CheckerResult]) -> str:
    """The legal findings in one line with their reasons: `12 lost-write excused: b1 lost power while …`."""
    legal = [(name, summary) for result in results.values() for name, summary in result.found() if summary.legal]
    counted = ", ".join(f"{summary.count} {name}" for name, summary in legal)
    reasons = dict.fromkeys(reason for _, summary in legal for reason in summary.legal.split(BETWEEN_REASONS))
    return f"{counted} excused: {BETWEEN_REASONS.join(reasons)}" if legal else ""
