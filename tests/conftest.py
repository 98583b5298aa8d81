"""Fast tests first, slow ones last, but in other tiers; what is not run is named, and those of other tiers counted.
Where CI=true, a test with containers that is not run has failed.

Tests of one group share a worker: those of one Spark session, that it is started once, and those with containers, that
they do not fight over processors. Whole storms in containers mostly wait, and have a worker of their own. Groups come
between fast and slow tests, so that no worker is left alone with one at the end.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import docker
import pytest
from hypothesis import HealthCheck, settings

from checkers.spark.java import adopt_java
from harness.arrow import start_arrow
from harness.compiled import interpreted

gc.disable()  # until all tests are collected, for there is hardly any garbage among them
adopt_java()
start_arrow()
# Which kernels are interpreted would else depend on which tests came before.
interpreted.allowance.left_s = 0.0
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it runs in the background ignore SIGINT, and so would every command that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
# How long an example takes says something of the machine, not of the code.
# Nor is it for an environment variable of continuous integration to decide whether examples are random.
settings.register_profile(
    "any machine", settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

LATE = ("docker", "xdist_group", "slow")
"""Marks of tests that do not come first, in their order."""
TIERS = ("gate", "thorough")
"""Marks of tests that `make test` leaves to a command of that name, longest last."""
CONTAINERS_MUST_RUN = os.environ.get("CI") == "true"
"""Of continuous integration nobody reads which tests were not run."""


@cache
def docker_answers() -> bool:
    try:
        client = docker.from_env(timeout=10)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except docker.errors.DockerException:
        return False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, help="only the tests of that tier; unless named, only those of none")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Most files have no test of a given tier: they are not even imported."""
    wanted = config.getoption("--tier")
    is_of_others = wanted is not None and collection_path.suffix == ".py" and not _names(collection_path, wanted)
    return True if is_of_others else None


@cache
def _names(file: Path, tier: str) -> bool:
    """Whether some of its tests may be of that tier."""
    text = file.read_text(encoding="utf-8")
    return f"mark.{tier}" in text or "@thousands" in text


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--tier")
    tiers = [_tier(item) for item in items]
    left_out = [item for item, tier in zip(items, tiers, strict=True) if tier != wanted]
    for item, tier in zip(items, tiers, strict=True):
        if tier is not None and not _names(item.path, tier):
            raise pytest.UsageError(f"{item.nodeid} is of the tier {tier}, but its file has no text `mark.{tier}`")
    items[:] = [item for item, tier in zip(items, tiers, strict=True) if tier == wanted]
    config.hook.pytest_deselected(items=left_out)
    items.sort(key=_late if wanted is None else _early)
    for item in items:
        if item.get_closest_marker("docker") is not None:
            if item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group("docker"))
            if not docker_answers():
                item.add_marker(pytest.mark.skip(reason="not run: no Docker engine answers"))


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end: collections of garbage would look at them again and again."""
    gc.freeze()
    gc.enable()


def _tier(item: pytest.Item) -> str | None:
    return next((tier for tier in TIERS if item.get_closest_marker(tier) is not None), None)


def _late(item: pytest.Item) -> int:
    return next((place for place, mark in enumerate(LATE, start=1) if item.get_closest_marker(mark) is not None), 0)


def _early(item: pytest.Item) -> int:
    """Of long tests those come first that one worker works through alone, so that all are at work to the end."""
    return next((place for place, mark in enumerate(LATE) if item.get_closest_marker(mark) is not None), len(LATE))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    is_skipped = report.skipped and not hasattr(report, "wasxfail")
    if CONTAINERS_MUST_RUN and is_skipped and item.get_closest_marker("docker") is not None:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"where CI=true every test with containers must be run, and this one was not: {why}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = [
        report for report in terminalreporter.stats.get("skipped", []) if "no Docker engine" in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.section("not run: no Docker engine answers")
        for report in skipped:
            terminalreporter.line(report.nodeid)
