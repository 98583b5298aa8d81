"""Is the guide worth its cost? The same search guided and at random, from several root seeds, to the first finding."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.explore.search import Search, Trier, bounded, searched


@dataclass(frozen=True, kw_only=True)
class Caught:
    """How one search ended."""

    root: int
    storms: int
    """Up to and with the first that shows something; all of them where none does."""
    processor_s: float
    """Of these."""
    is_caught: bool
    states: int
    """Distinct ones, by the measure that the guide does not use."""
    tried: int


@dataclass(frozen=True, kw_only=True)
class Compared:
    subject: str
    guided: tuple[Caught, ...]
    random: tuple[Caught, ...]

    def lines(self) -> list[str]:
        return [
            f"{self.subject}",
            *(f"  {name:<7} {_words(caught)}" for name, caught in (("guided", self.guided), ("random", self.random))),
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "guided": [asdict(caught) for caught in self.guided],
            "random": [asdict(caught) for caught in self.random],
        }


def compared(
    search: Search, roots: int, seconds: float | None, trier: Trier, tell: Callable[[str], None] = lambda line: None
) -> Compared:
    """Root seeds from that of the search on; each search has so many seconds, or its numbers."""
    results: dict[bool, list[Caught]] = {True: [], False: []}
    for root in range(search.root, search.root + roots):
        for is_guided in (True, False):
            tell(f"{search.space.mutant or search.space.system}, {'guided' if is_guided else 'random'}, root {root}")
            results[is_guided].append(_caught(replace(search, root=root, is_guided=is_guided), seconds, trier))
    subject = search.space.mutant or search.space.system
    return Compared(subject=subject, guided=tuple(results[True]), random=tuple(results[False]))


def _caught(search: Search, seconds: float | None, trier: Trier) -> Caught:
    storms, processor_s, states, tried, is_caught = 0, 0.0, 0, 0, False
    for tally, findings in searched(search, None, trier, goes_on=bounded(seconds, first=True)):
        tried, states = tally.storms, len(tally.guide.unguided)
        storms, processor_s = tally.storms, tally.processor_s
        if findings:
            first = min(row["number"] for row in findings)
            (storms, processor_s), is_caught = tally.up_to(first), True
    return Caught(
        root=search.root, storms=storms, processor_s=processor_s, is_caught=is_caught, states=states, tried=tried
    )


def _words(caught: Sequence[Caught]) -> str:
    storms = [one.storms for one in caught]
    return (
        f"caught {sum(one.is_caught for one in caught)} of {len(caught)}; storms {_quantiles(storms)}; "
        f"processor s {_quantiles([one.processor_s for one in caught])}; "
        f"states a storm {_quantiles([one.states / max(one.tried, 1) for one in caught])}"
    )


def _quantiles(values: Sequence[float]) -> str:
    """The least, the median, the most."""
    return f"{min(values):.3g} · {statistics.median(values):.3g} · {max(values):.3g}"
