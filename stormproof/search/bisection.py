"""Since which commit a storm fails: halving between one at which it does not and one at which it does.

Each commit is tried in a process of its own, with the system as it lay in that commit and the harness as it is; where
these do not fit together, with all of the checkout as it lay there. What cannot be tried at all is passed over.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.lifetime import scratch, supervised
from harness.progress import Progress
from stormproof.search.checkout import Checkout
from stormproof.search.revision_runner import SYSTEMS
from stormproof.search.storm_file import StormFile, storm_text
from stormproof.session.registry import Parts

LONGEST_S = 600.0
"""The longest time for one storm."""
RUNNERS = ("stormproof.search.revision_runner", "harness.explore.at_revision")
"""What carries a storm out at a revision: today's module, and where older revisions have it."""
NODES = "system_under_test"
"""The folder of systems that come with the harness, beside their adapters."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The result at a commit."""

    fails: bool | None
    """Whether the storm fails there; None if that is unknown."""
    why: str = ""
    """Neither can be said."""


Try = Callable[[str], Tried]


@dataclass(frozen=True, kw_only=True)
class Since:
    """The commit since which the storm fails, or several of which any may be it, oldest first."""

    commits: tuple[str, ...]
    tried: int


def since(checkout: Checkout, good: str, bad: str, tries: Try, progress: Progress) -> Since:
    """Raises UsageError for revisions that are unknown, in the wrong order, fail where they should not or the other way
    round, or cannot be tried."""
    first, last = checkout.commit(good), checkout.commit(bad)
    commits = (first, *checkout.between(first, last))
    tried: dict[int, Tried] = {}

    def fails(place: int) -> bool | None:
        if place not in tried:
            tried[place] = tries(commits[place])
            words = {True: "fails", False: "holds", None: f"cannot be tried: {tried[place].why}"}[tried[place].fails]
            progress(f"{commits[place][:12]} {words} ({checkout.subject(commits[place])})")
        return tried[place].fails

    for name, place, wanted in ((good, 0, False), (bad, len(commits) - 1, True)):
        if fails(place) is None:
            raise UsageError(f"{name} cannot be tried ({tried[place].why}); name another revision")
        if fails(place) is not wanted:
            did = "fails at the good revision, too" if wanted is False else "does not fail at the bad revision"
            raise UsageError(f"the storm {did} ({name}); give good..bad such that it fails at the second alone")
    low, high = halved(len(commits), fails)
    return Since(commits=commits[low + 1 : high + 1], tried=len(tried))


def halved(count: int, fails: Callable[[int], bool | None]) -> tuple[int, int]:
    """The last place known to hold and the first known to fail, such that nothing can be said of those between."""
    low, high = 0, count - 1
    undecided: set[int] = set()
    while True:
        open_ = [place for place in range(low + 1, high) if place not in undecided]
        if not open_:
            return low, high
        middle = min(open_, key=lambda place: (abs(2 * place - low - high), place))
        failed = fails(middle)
        if failed is None:
            undecided.add(middle)
        elif failed:
            high = middle
        else:
            low = middle


def trier(storm: StormFile, parts: Parts, checkout: Checkout, bad: str) -> Try:
    """Tries commits of the checkout. Raises UsageError where the system does not lie in it."""
    own = _path_of(parts)
    if not checkout.holds(checkout.commit(bad), own):
        raise UsageError(f"{storm.scenario.system} does not lie in {checkout.root} ({own}); go to its checkout")
    # Adapters that came with the harness rest on each other.
    beside = SYSTEMS.replace(".", "/")
    paths = (beside if own.startswith(beside) else own, NODES)
    return partial(_tried, storm_text(storm), paths, checkout)


def _path_of(parts: Parts) -> str:
    """Of the system's adapter in its checkout: its package, if it came with the harness, or its topmost one."""
    module = type(parts.system).__module__
    depth = len(SYSTEMS.split(".")) + 1 if module.startswith(f"{SYSTEMS}.") else 1
    names = module.split(".")[:depth]
    return "/".join(names) if module != names[0] else f"{names[0]}.py"


def _tried(text: str, paths: Sequence[str], checkout: Checkout, commit: str) -> Tried:
    alone = _ran(text, paths, checkout, commit)
    if alone.fails is not None:
        return alone
    whole = _ran(text, (), checkout, commit)
    return whole if whole.fails is not None else alone


def _holds(root: Path, module: str) -> bool:
    return root.joinpath(*module.split(".")).with_suffix(".py").exists()


def _ran(text: str, paths: Sequence[str], checkout: Checkout, commit: str) -> Tried:
    """With what lay at these paths, or with all of the checkout."""
    with scratch.directory() as place:
        file, root = place / "bisected.storm.toml", place / "revision"
        file.write_text(text, encoding="utf-8")
        root.mkdir()
        checkout.extract(commit, paths, root)
        module = RUNNERS[0] if paths else next((one for one in RUNNERS if _holds(root, one)), None)
        if module is None:
            return Tried(fails=None, why="its harness knows no storm files")
        command = [sys.executable, "-P", "-m", module, str(file), str(root)]
        path = [] if paths else [str(root)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
        try:
            ran = supervised.run(command, environment=environment, timeout_s=LONGEST_S)
        except subprocess.TimeoutExpired:
            return Tried(fails=None, why=f"it takes longer than {LONGEST_S:g} s")
    last = ran.stdout.strip().rpartition("\n")[2]
    try:
        return Tried(**json.loads(last))
    except (ValueError, TypeError):
        error = ran.stderr.strip().rpartition("\n")[2]
        if not error:
            raise HarnessError(
                f"the storm at {commit[:12]} ended without a word (exit code {ran.returncode})"
            ) from None
        return Tried(fails=None, why=error)
