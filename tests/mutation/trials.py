"""Which tests reach which statements, and whether those that reach a change notice it.

All tests are collected once, in a process in which kernels are plain Python; each trial is a copy of that process. The
tests of a concern run once unchanged, with statements marked: so only those that reach the changed statement are tried,
the shortest first, up to the first one that fails.
"""

from __future__ import annotations

import importlib
import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from types import FunctionType

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.changes import Change, changed_tree
from tests.mutation.children import Ended, Tell, allow_s, in_child
from tests.mutation.concerns import CONCERNS, ROOT, Concern
from tests.mutation.functions import caches, functions_by_file, mark, put
from tests.mutation.outcomes import Fate, Outcome

TIMES, MORE_S = 5, 5
"""Of the processor time that a test takes without a change."""
TOGETHER_S = 20
"""What the tests of one change take unchanged: the longest ones are left out."""
UNMEASURED_S = 120
ELSEWHERE = ("docker", "xdist_group")
"""Marks of tests that ask processes in which nothing is changed."""


class TestsFail(Exception):
    """Without any change."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A test without any change."""

    item: pytest.Item
    seconds: float
    """Of processor time."""
    reached: dict[str, bytes]
    """By file: a byte a statement."""

    def reaches(self, change: Change) -> bool:
        return bool(self.reached[str(ROOT / change.path)][change.statement])


class Trials:
    def __init__(self, items: Sequence[pytest.Item]) -> None:
        here = [item for item in items if not any(item.get_closest_marker(mark) for mark in ELSEWHERE)]
        self._items = {concern: [item for item in here if concern.has(item.nodeid)] for concern in CONCERNS}
        self._measured: dict[Concern, list[Measured]] = {}
        self._files = [path for concern in CONCERNS for path in concern.paths()]
        for file in self._files:
            importlib.import_module(_module(file))
        self._functions: dict[str, list[FunctionType]] = functions_by_file(self._files)
        self._caches = caches()

    def of(self, concern: Concern, change: Change) -> Outcome:
        """Raises TestsFail if a test of this concern fails without the change."""
        if concern not in self._measured:
            self._measured[concern] = self._measure(concern)
        reaching = sorted(
            (one for one in self._measured[concern] if one.reaches(change)), key=lambda measured: measured.seconds
        )
        spent_s = list(accumulate(one.seconds for one in reaching))
        few = reaching[: max(1, bisect_right(spent_s, TOGETHER_S))]
        outcome = self._try(change, [(one.item, one.seconds * TIMES + MORE_S) for one in few])
        left_out = len(reaching) - len(few)
        return replace(outcome, why=f"{left_out} longer tests reach it") if outcome.is_open and left_out else outcome

    def unmeasured(self, concern: Concern, change: Change) -> Outcome:
        """As `of`, with all tests of the concern in their order: sooner for a few changes."""
        return self._try(change, [(item, UNMEASURED_S) for item in self._items[concern]])

    def measured(self, concern: Concern) -> Iterable[Measured]:
        return self._measured.get(concern, ())

    def _measure(self, concern: Concern) -> list[Measured]:
        items = self._items[concern]

        def measure(tell: Tell) -> None:
            marks = {str(file): mark(file, self._functions[str(file)]) for file in concern.paths()}
            self._forget()
            for item, following in _pairs(items):
                for of_file in marks.values():
                    of_file[:] = bytes(len(of_file))
                begun = time.process_time()
                passes = _passes(item, following)
                tell((passes, time.process_time() - begun, {file: bytes(marks[file]) for file in marks}))
                if not passes:
                    return
            tell(sorted(sys.modules))

        ended = in_child(measure)
        if len(ended.reports) <= len(items):
            failing = items[max(0, len(ended.reports) - 1)].nodeid
            raise TestsFail(f"{failing} fails unchanged ({ended.code} {ended.words})")
        *told, modules = ended.reports
        for name in modules:
            with suppress(ImportError):
                importlib.import_module(name)
        return [
            Measured(item=item, seconds=seconds, reached=reached)
            for item, (_, seconds, reached) in zip(items, told, strict=True)
        ]

    def _try(self, change: Change, tests: list[tuple[pytest.Item, float]]) -> Outcome:
        def work(tell: Tell) -> None:
            file = ROOT / change.path
            put(changed_tree(file, change.place), file, self._functions[str(file)])
            self._forget()
            allowed_s = dict(tests)
            for item, following in _pairs([item for item, _ in tests]):
                allow_s(allowed_s[item])
                passes = _passes(item, following)
                tell(passes)
                if not passes:
                    return

        begun = time.monotonic()
        ended = in_child(work) if tests else Ended(reports=[], code=0, words="no test reaches it")
        fate = fate_of(ended)
        last = tests[min(len(ended.reports), len(tests)) - 1][0].nodeid if ended.reports and fate is Fate.KILLED else ""
        why = ended.words if fate in (Fate.SURVIVED, Fate.UNDECIDED) else ""
        return Outcome(change=change, fate=fate, by=last, why=why.strip(), seconds=time.monotonic() - begun)

    def _forget(self) -> None:
        for cache in self._caches:
            cache.cache_clear()


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def fate_of(ended: Ended) -> Fate:
    if ended.reports and ended.reports[-1] is False:
        return Fate.KILLED
    if ended.code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Fate.ENDLESS
    return Fate.UNDECIDED if ended.code else Fate.SURVIVED


def _pairs(items: Sequence[pytest.Item]) -> Iterable[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, nextitem=following, log=False))


class Collected:
    """A plugin of pytest that collects tests, and hands them on instead of running them."""

    def __init__(self, handed: Callable[[Trials], int]) -> None:
        self._handed = handed
        self.code = 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        usual = settings.get_profile(settings.get_current_profile_name())
        settings.register_profile(
            "mutation", parent=usual, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("not all tests can be collected")
        try:
            self.code = self._handed(Trials(session.items))
        except TestsFail as failure:
            print(failure, file=sys.stderr)
        return True


def with_trials(concerns: Iterable[Concern], handed: Callable[[Trials], int], tier: str | None = None) -> int:
    """What is returned by whom the trials of these concerns are handed to, with tests of that tier."""
    files = sorted({argument.partition("::")[0] for concern in concerns for argument in concern.arguments()})
    collected = Collected(handed)
    quiet = ["-qq", "-s", "-p", "no:cacheprovider", "-o", "addopts=--strict-markers", "--tb=no", "-W", "ignore"]
    pytest.main([*quiet, *(("--tier", tier) if tier else ()), *files], plugins=[collected])
    return collected.code
