"""What became of changes: in a file, so that a run goes on where it was ended, and in a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from tests.mutation.changes import Change, Wording


class Fate(Enum):
    KILLED = "killed"
    ENDLESS = "endless"
    EXEMPT = "known"
    """Not tried, for it was read by a person: see `exemptions.py`."""
    SURVIVED = "survived"
    UNDECIDED = "not decided"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    change: Change
    fate: Fate
    by: str = ""
    """The test that failed."""
    why: str = ""
    """It survived, or could not be decided."""
    seconds: float = 0.0
    """That it took by the clock."""

    def line(self) -> str:
        shown = f"{self.change.name}  {self.change.words()}  {self.why}" if self.is_open else self.change.name
        return f"{self.fate.value:<12} {self.seconds:6.1f} s  {shown.rstrip()}"

    @property
    def is_open(self) -> bool:
        return self.fate in (Fate.SURVIVED, Fate.UNDECIDED)


class Kept:
    """A file of outcomes, a line each."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._fates: dict[Wording, tuple[Fate, str]] = {}
        for line in path.read_text().splitlines() if path is not None and path.exists() else ():
            row = json.loads(line)
            self._fates[Wording(**row["change"])] = Fate(row["fate"]), row["by"]

    def get(self, change: Change) -> Outcome | None:
        """The last one of this change."""
        if change.wording not in self._fates:
            return None
        fate, by = self._fates[change.wording]
        return Outcome(change=change, fate=fate, by=by)

    def add(self, outcome: Outcome) -> None:
        if self._path is None:
            return
        row = {"change": asdict(outcome.change.wording), "fate": outcome.fate.value, "by": outcome.by}
        with self._path.open("a") as file:
            file.write(json.dumps(row | {"seconds": round(outcome.seconds, 2)}) + "\n")


def table(outcomes: Iterable[Outcome]) -> str:
    """A row a package, and below it all that nobody knows yet."""
    of_package: dict[str, Counter[Fate]] = {}
    outcomes = list(outcomes)
    for one in outcomes:
        package = str(Path(one.change.path).parent if one.change.path.count("/") > 1 else one.change.path)
        of_package.setdefault(package, Counter())[one.fate] += 1
    width = max((len(package) for package in of_package), default=7)
    lines = ["", "  ".join([f"{'package':<{width}}", "changes", *(fate.value for fate in Fate)])]
    sums: Counter[Fate] = Counter()
    for package, fates in sorted(of_package.items()):
        lines.append(_row(package, width, fates))
        sums += fates
    lines.append(_row("all", width, sums))
    lines += [f"{one.fate.value}: {one.change.words()}" for one in outcomes if one.is_open]
    return "\n".join(lines)


def _row(package: str, width: int, fates: Counter[Fate]) -> str:
    numbers = [f"{fates[fate]:>{len(fate.value)}}" for fate in Fate]
    return "  ".join([f"{package:<{width}}", f"{fates.total():>7}", *numbers])
