"""What a scenario of a suite is expected to come to, and why. One that comes out otherwise is a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from checkers.api.verdict import Verdict

EXPECTED: Mapping[str, tuple[Verdict, ...]] = {
    **{verdict.value: (verdict,) for verdict in Verdict},
    # Of a system that may be found not to serve any more before it is asked what it has kept.
    "not-valid": (Verdict.INVALID, Verdict.UNKNOWN),
}
"""What a suite may expect, by name."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    name: str
    """One of EXPECTED."""
    because: str
    """Why: a promise that a vendor makes, or does not make."""
    anomalies: tuple[str, ...] = ()
    """None but these may be found, legal ones included; empty: any may."""

    def met_by(self, verdict: Verdict, found: Iterable[str]) -> bool:
        """`found`: names of anomalies, legal ones included."""
        return verdict in EXPECTED[self.name] and not self.surprising(found)

    def surprising(self, found: Iterable[str]) -> tuple[str, ...]:
        """The anomalies that were not expected, sorted."""
        return tuple(sorted(set(found) - set(self.anomalies))) if self.anomalies else ()

    def words(self, verdict: Verdict, found: Iterable[str]) -> str:
        """How the verdict stands to what was expected: `INVALID as expected: because …`."""
        came, why = verdict.value.upper(), f"because {self.because}"
        if verdict not in EXPECTED[self.name]:
            return f"{came}, where {self.name.upper()} was expected {why}"
        if surprising := self.surprising(found):
            named = ", ".join(self.anomalies)
            return f"{came} with {', '.join(surprising)}, where no anomaly but {named} was expected {why}"
        return f"{came} as expected: {why}"
