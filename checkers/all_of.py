"""Several checkers as one: it reports what any of them finds, and leaves open what any of them leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from checkers.api.plan import Checker, CheckRequest, Engine
from checkers.api.verdict import CheckerResult, merge
from checkers.prefix import Finals, finals_of
from harness.record.meaning import Meaning


@dataclass(frozen=True, kw_only=True)
class Conjunction:
    """Several checkers, whose anomalies have different names. If statistics have the same name, the first part's
    count."""

    name: str
    parts: tuple[Checker, ...]

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        return {name: meaning for part in self.parts for name, meaning in part.meanings.items()}

    @property
    def final_on_a_prefix(self) -> Finals:
        return {name: others for part in self.parts for name, others in finals_of(part).items()}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        results = [part.check(request, engine) for part in self.parts]
        statistics: dict[str, Any] = reduce(lambda merged, result: {**result.statistics, **merged}, results, {})
        anomalies = {name: found for result in results for name, found in result.anomalies.items()}
        return CheckerResult(
            verdict=merge(result.verdict for result in results),
            reasons=tuple(reason for result in results for reason in result.reasons),
            vacuous=tuple(reason for result in results for reason in result.vacuous),
            anomalies=dict(sorted(anomalies.items())),
            statistics=statistics,
        )
