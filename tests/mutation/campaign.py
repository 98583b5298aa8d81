"""`make mutate`: of many one-token changes of the deciding modules, which do the tests notice?

    python -m tests.mutation.campaign --count 300 --seed 1

Each change runs against the fast tests that concern its module (`concerns`), first the smallest histories, then what is
compared with definitions, in a process of its own in which kernels are plain Python (`world`). It is killed if a test
fails, if the module cannot be imported any more, or if the tests take five times the processor time that they take
without it, and twenty seconds more: then it does not end. A change that no test notices survived: either it decides
nothing (an equivalent mutant, a bound of work, words of an explanation), or a smallest history is missing. Whatever
else happened could not be decided.

Which changes are tried is decided by the seed. The exit code is 0, for what survives is to be read by a person, or 1 if
the tests fail without any change.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.mutation.changes import Change, changes
from tests.mutation.concerns import CONCERNS, ROOT, Concern

TIMES, MORE_S = 5, 20
"""Of the processor time that tests take without a change."""
UNCHANGED_S = 3_600
MOST_BYTES = 6 << 30


class Fate(Enum):
    KILLED = "killed"
    ENDLESS = "killed, endless"
    SURVIVED = "survived"
    UNDECIDED = "not decided"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    change: Change
    fate: Fate


def tried(path: str, place: int | None, arguments: list[str], cpu_s: int) -> tuple[int, float, str]:
    """(how the process ended, processor seconds, the last lines that it printed), with one change or none."""
    with tempfile.TemporaryFile() as printed:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _run(path, place, arguments, cpu_s, printed.fileno())
        _, status, usage = os.wait4(child, 0)
        printed.seek(0)
        words = printed.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, words


def _run(path: str, place: int | None, arguments: list[str], cpu_s: int, output: int) -> None:
    """In the child: never returns."""
    code = 3
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        from tests.mutation.world import enter

        enter(path, place)
        import pytest

        quiet = ["-q", "-x", "-p", "no:cacheprovider", "--tb=line", "-W", "ignore"]
        code = int(pytest.main([*quiet, *arguments]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def fate_of(ended: int, printed: str) -> tuple[Fate, str]:
    """`ended`: pytest's exit code, or below 0 the signal that ended it. Also why it could not be decided."""
    if ended == 0:
        return Fate.SURVIVED, ""
    if ended in (1, 2):
        return Fate.KILLED, ""
    if ended in (-signal.SIGXCPU, -signal.SIGKILL):
        return Fate.ENDLESS, ""
    last = printed.strip().splitlines()[-1:] or [""]
    return Fate.UNDECIDED, f"ended with {ended}: {last[0][:160]}"


def chosen(count: int, seed: int, only: str) -> list[tuple[Concern, Change]]:
    """A share of all changes in an order of chance, so that a run that is cut short is a fair sample as well."""
    every = [
        (concern, change)
        for concern in CONCERNS
        for path in concern.paths()
        if only in str(path)
        for change in changes(path, str(path.relative_to(ROOT)))
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def campaign(count: int, seed: int, only: str, most_s: float) -> int:
    begun = time.monotonic()
    outcomes: list[Outcome] = []
    allowed_s: dict[tuple[Concern, int], int] = {}
    for concern, change in chosen(count, seed, only):
        if time.monotonic() - begun > most_s:
            break
        fate, why = Fate.SURVIVED, ""
        for number, arguments in enumerate(concern.stages()):
            stage = concern, number
            if stage not in allowed_s:
                ended, spent_s, printed = tried("", None, arguments, UNCHANGED_S)
                if ended != 0:
                    print(f"{', '.join(concern.modules)}: the tests fail unchanged ({ended})\n{printed[-2000:]}")
                    return 1
                allowed_s[stage] = round(spent_s * TIMES + MORE_S)
            ended, _, printed = tried(change.path, change.place, arguments, allowed_s[stage])
            fate, why = fate_of(ended, printed)
            if fate is not Fate.SURVIVED:
                break
        outcomes.append(Outcome(change=change, fate=fate))
        shown = change.name if fate is Fate.KILLED else f"{change.name}  {change.words()}  {why}"
        print(f"{fate.value:<15} {shown}", flush=True)
    print(table(outcomes))
    return 0


def table(outcomes: list[Outcome]) -> str:
    """A row a package, and below it all that was not killed."""
    of_package: dict[str, Counter[Fate]] = {}
    for one in outcomes:
        package = str(Path(one.change.path).parent if one.change.path.count("/") > 1 else one.change.path)
        of_package.setdefault(package, Counter())[one.fate] += 1
    width = max((len(package) for package in of_package), default=7)
    lines = ["", f"{'package':<{width}}  changes  killed  endless  survived  not decided"]
    sums: Counter[Fate] = Counter()
    for package, fates in sorted(of_package.items()):
        lines.append(_row(package, width, fates))
        sums += fates
    lines.append(_row("all", width, sums))
    for fate in (Fate.SURVIVED, Fate.UNDECIDED):
        lines += [f"{fate.value}: {one.change.words()}" for one in outcomes if one.fate is fate]
    return "\n".join(lines)


def _row(package: str, width: int, fates: Counter[Fate]) -> str:
    numbers = f"{fates.total():>7}  {fates[Fate.KILLED]:>6}  {fates[Fate.ENDLESS]:>7}  {fates[Fate.SURVIVED]:>8}"
    return f"{package:<{width}}  {numbers}  {fates[Fate.UNDECIDED]:>11}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many changes (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", default="", help="of modules whose path has this in it")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no change later than that")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # tests start processes of their own
    import numpy  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401

    return campaign(given.count, given.seed, given.only, given.minutes * 60)


if __name__ == "__main__":
    sys.exit(main())
