"""What came of a campaign's storms: in a file, a line each, so that a campaign goes on where it was cut off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.rocketmq.findings.storms import Storm

REFUSED = "refused"
"""The harness does not blow such a storm at this system; `reasons` has its words."""
FAILED = "failed"
"""The harness itself, and so nothing is known of the system; such a storm is blown again."""
VALID, INVALID, UNKNOWN = "valid", "invalid", "unknown"
WRONG_USAGE, HARNESS_FAILED = 254, 255
VERDICTS = (VALID, UNKNOWN, INVALID, REFUSED, FAILED)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    storm: Storm
    verdict: str
    exit_code: int
    anomalies: Mapping[str, int] = field(default_factory=dict)
    """Those that are broken promises, with their counts."""
    reasons: tuple[str, ...] = ()
    excused: str = ""
    beyond_s: float | None = None
    """By the clock, beyond the storm's own length: start, calm, final reads, judgement; None where nobody wrote it
    down."""

    @property
    def is_final(self) -> bool:
        return self.verdict != FAILED

    def line(self) -> str:
        found = ", ".join(f"{name} × {count}" for name, count in self.anomalies.items()) or "; ".join(self.reasons)
        beyond = "" if self.beyond_s is None else f"  +{self.beyond_s:.0f} s"
        return f"{self.verdict:<8} {self.storm.words()}{beyond}  {found}".rstrip()


def outcome_of(storm: Storm, exit_code: int, verdict_file: Path | None, last_words: str, beyond_s: float) -> Outcome:
    """What a command ended with. `verdict_file` is None where it left none; it says nothing where the harness failed,
    for example because the system did not even start."""
    if verdict_file is None or exit_code == HARNESS_FAILED:
        verdict = REFUSED if exit_code == WRONG_USAGE else FAILED
        return Outcome(
            storm=storm, verdict=verdict, exit_code=exit_code, reasons=(last_words,), beyond_s=round(beyond_s, 1)
        )
    content = json.loads(verdict_file.read_text("utf-8"))
    return Outcome(
        storm=storm,
        verdict=content["verdict"],
        exit_code=exit_code,
        anomalies=_broken(content["checkers"].values()),
        reasons=tuple(content["reasons"]),
        excused=content["excused"],
        beyond_s=round(beyond_s, 1),
    )


def _broken(checkers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return {
        name: summary["count"]
        for checker in checkers
        for name, summary in checker["anomalies"].items()
        if not summary["legal"]
    }


class Kept:
    """A file of outcomes. Of a storm that was blown again the last one counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of: dict[Storm, Outcome] = {}
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            row = json.loads(line)
            outcome = Outcome(**{**row, "storm": Storm(**row["storm"]), "reasons": tuple(row["reasons"])})
            self._of[outcome.storm] = outcome

    def outcomes(self) -> list[Outcome]:
        return list(self._of.values())

    def left(self, storms: Sequence[Storm]) -> list[Storm]:
        """Those that were not blown to an end."""
        return [storm for storm in storms if storm not in self._of or not self._of[storm].is_final]

    def add(self, outcome: Outcome) -> None:
        self._of[outcome.storm] = outcome
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
