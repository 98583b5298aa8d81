"""How one scenario of a suite ended, what that counts for, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkers.api.verdict import Verdict
from harness.printable import printable
from results.junit import Case
from results.verdict_file import ACCEPTED, as_accepted
from stormproof.cli.console import Console
from stormproof.cli.exit_code import ExitCode, exit_code_of
from stormproof.cli.outcome_text import title, tone_of
from stormproof.session.outcome import Outcome, replay_line, scenario_name, vacuity_note
from stormproof.session.suite_file import Row

LINES_SHOWN = 5
"""The most lines of a finding that are shown; the report has all."""
AS_EXPECTED, NOT_AS_EXPECTED = "as expected", "not as expected"


@dataclass(frozen=True, kw_only=True)
class Result:
    row: Row
    verdict: Verdict | None
    """The verdict; None if the harness failed before one was reached."""
    words: str
    """Printable, but for its line breaks."""
    directory: Path | None
    seconds: float
    found: tuple[str, ...] = ()
    """Names of the anomalies that were found, legal ones included."""
    accepted: tuple[str, ...] = ()
    """Why the verdict would be vacuous, if that was accepted."""

    @classmethod
    def of(cls, row: Row, outcome: Outcome, seconds: float) -> Result:
        return cls(
            row=row,
            verdict=outcome.verdict,
            words=outcome.words(),
            directory=outcome.directory,
            seconds=seconds,
            found=tuple(sorted({name for result in outcome.results.values() for name, _ in result.found()})),
            accepted=outcome.accepted,
        )

    @classmethod
    def of_failure(cls, row: Row, words: str, seconds: float = 0.0) -> Result:
        """The harness failed."""
        return cls(row=row, verdict=None, words=printable(words), directory=None, seconds=seconds)

    @property
    def as_expected(self) -> bool | None:
        """Whether the result is the expected one; None if nothing was expected or no verdict was reached."""
        if self.row.expected is None or self.verdict is None:
            return None
        return self.row.expected.met_by(self.verdict, self.found)

    @property
    def exit_code(self) -> ExitCode:
        """0 for what came out as expected; otherwise the verdict's own, but for a pass that was not expected: it did
        not show what it was to show, so nothing is known."""
        if self.verdict is None:
            return ExitCode.HARNESS_FAILED
        own = exit_code_of(self.verdict)
        if self.as_expected is None:
            return own
        if self.as_expected:
            return ExitCode.VALID
        return ExitCode.UNKNOWN if own is ExitCode.VALID else own

    @property
    def name(self) -> str:
        return "harness failed" if self.verdict is None else self.verdict.value

    @property
    def kind(self) -> str:
        """The name by which results are counted: a verdict, and whether it was expected if that is not obvious."""
        if self.as_expected is None or (self.as_expected and self.verdict is Verdict.VALID):
            return self.name
        return f"{self.name} {AS_EXPECTED if self.as_expected else NOT_AS_EXPECTED}"

    @property
    def standing(self) -> str:
        """How the verdict stands to what was expected, in words; empty where nothing was, or no verdict was reached."""
        if self.row.expected is None or self.verdict is None:
            return ""
        return self.row.expected.words(self.verdict, self.found)

    def case(self) -> Case:
        scenario, expected = self.row.scenario, self.row.expected
        notes = {"seed": str(scenario.seed), "replay": replay_line(scenario), **vacuity_note(self.accepted)}
        if self.directory is not None:
            notes["directory"] = str(self.directory)
        if expected is not None:
            notes |= {"expected": expected.name, "because": expected.because}
        if self.standing:
            notes |= {"verdict": self.name, "standing": self.standing}
        return Case(
            name=title(scenario),
            classname=f"stormproof.{scenario_name(scenario)}",
            seconds=self.seconds,
            verdict=self.verdict,
            as_expected=self.as_expected,
            words="\n".join(part for part in (self.standing, self.words) if part),
            notes=notes,
        )

    def tell(self, console: Console) -> None:
        scenario = self.row.scenario
        console.say(f"{self.name:<14}  {self.seconds:6.1f} s  {title(scenario)}", tone_of(self.exit_code))
        lines = [as_accepted(reason) for reason in self.accepted]
        lines += [self.standing] if self.standing else []
        is_fine = self.exit_code is ExitCode.VALID
        if not is_fine or self.verdict is not Verdict.VALID:
            lines += self.words.split("\n")[: 1 if is_fine else LINES_SHOWN]
        lines += [str(self.directory)] if self.directory is not None and not is_fine else []
        lines += [] if is_fine else [f"replay: {replay_line(scenario)}"]
        for line in filter(None, lines):
            console.say(f"{'':14}  {line}")

    def to_json(self) -> dict[str, Any]:
        expected = self.row.expected
        return {
            "scenario": self.row.scenario.to_json(),
            "verdict": None if self.verdict is None else self.verdict.value,
            "expected": None
            if expected is None
            else {
                "verdict": expected.name,
                "because": expected.because,
                "anomalies": list(expected.anomalies),
            },
            "as_expected": self.as_expected,
            "anomalies": list(self.found),
            "exit_code": int(self.exit_code),
            "words": self.words,
            ACCEPTED: list(self.accepted),
            "directory": None if self.directory is None else str(self.directory),
            "seconds": round(self.seconds, 3),
            "replay": replay_line(self.row.scenario),
        }
