"""`make mutate`: of many one-token changes of the judging modules, which do the tests notice?

    python -m tests.mutation.campaign --count 300 --seed 1 --outcomes outcomes.jsonl
    python -m tests.mutation.campaign --change checkers/buckets.py:0

Each change runs against the fast tests that concern its module (`concerns`), in a process of its own in which kernels
are plain Python (`world`, `trials`). It is killed if a test fails; it is endless if a test takes five times the
processor time that it takes without it, and five seconds more. A change that no test notices survived: either it
decides nothing, and is written down with the reason (`exemptions`), or a smallest history is missing. Whatever else
happened could not be decided.

Which changes are tried is decided by the seed. The exit code is 0, for what survives is to be read by a person, or 1 if
the tests fail without any change.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutation.changes import Change, Wording, changes
from tests.mutation.children import die_with_parent
from tests.mutation.concerns import CONCERNS, ROOT, Concern
from tests.mutation.exemptions import by_kind, gone, read_exemptions
from tests.mutation.outcomes import Fate, Kept, Outcome, table
from tests.mutation.trials import Trials, with_trials
from tests.mutation.world import enter


def every(only: Sequence[str] = ("",)) -> list[tuple[Concern, Change]]:
    return [
        (concern, change)
        for concern in CONCERNS
        for path in concern.paths()
        if any(part in str(path.relative_to(ROOT)) for part in only)
        for change in changes(path, str(path.relative_to(ROOT)))
    ]


def chosen(count: int, seed: int, only: Sequence[str]) -> list[tuple[Concern, Change]]:
    """A share of all changes in an order of chance, so that a run that is cut short is a fair sample as well. What is
    edited elsewhere changes nothing about that order."""
    return sorted(every(only), key=lambda found: _lot(seed, found[1].wording))[:count]


def _lot(seed: int, wording: Wording) -> bytes:
    return hashlib.blake2b(repr((seed, wording)).encode(), digest_size=8).digest()


def tried(trials: Trials, those: Iterable[tuple[Concern, Change]], kept: Kept, again: bool, most_s: float) -> int:
    begun = time.monotonic()
    entries = read_exemptions()
    outcomes: list[Outcome] = []
    for concern, change in those:
        if time.monotonic() - begun > most_s:
            break
        before = kept.get(change)
        if change.wording in entries:
            outcomes.append(Outcome(change=change, fate=Fate.EXEMPT))
        elif before is not None and not (again and before.is_open):
            outcomes.append(before)
        else:
            outcome = trials.of(concern, change)
            kept.add(outcome)
            outcomes.append(outcome)
            print(outcome.line(), flush=True)
    print(table(outcomes))
    print(f"known: {by_kind(entries[one.change.wording] for one in outcomes if one.fate is Fate.EXEMPT)}")
    for wording in gone(entries):
        print(f"no change any more: {wording.path} {wording.function}: {wording.before}")
    return 0


def by_name(trials: Trials, those: list[tuple[Concern, Change]]) -> int:
    """Those changes, each with the test that notices it."""
    for concern, change in those:
        outcome = trials.unmeasured(concern, change)
        print(f"{outcome.fate.value}: {change.words()}  {outcome.by or outcome.why}", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many changes (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", nargs="+", default=[""], help="of modules whose path has one of these in it")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no change later than that")
    parser.add_argument("--outcomes", type=Path, help="a file that is added to: what is in there is not tried again")
    parser.add_argument("--again", action="store_true", help="but for what survived, or could not be decided")
    parser.add_argument("--change", action="append", default=[], help="only this one, as it is named: PATH:PLACE")
    parser.add_argument("--tier", choices=["gate"], help="with tests of that tier, for what survived all others")
    given = parser.parse_args()
    if "MAKELEVEL" in os.environ:
        die_with_parent(signal.SIGTERM)
    os.chdir(ROOT)
    enter()
    named = [(concern, change) for concern, change in every() if change.name in given.change]
    if len(named) < len(given.change):
        parser.error("no such change")
    those = named or chosen(given.count, given.seed, given.only)
    kept = Kept(given.outcomes)

    def handed(trials: Trials) -> int:
        if named:
            return by_name(trials, named)
        return tried(trials, those, kept, given.again, given.minutes * 60)

    return with_trials({concern: None for concern, _ in those}, handed, given.tier)


if __name__ == "__main__":
    sys.exit(main())
