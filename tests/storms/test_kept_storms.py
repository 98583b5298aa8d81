"""Storms that searches found the system not to withstand, made small: it withstands them now.

Each file tells what was wrong, and how it was found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from stormproof.search.storm import blown_and_judged
from stormproof.search.storm_file import load_storm

STORMS = sorted(Path(__file__).parent.glob("*.toml"))
COSTLY = (
    "newer-epoch-without-bytes-before-what-expired",
    "popped-in-order-and-expired",
    "started-again-after-a-failed-fsync",
    "stays-down-with-a-rotten-snapshot",
)
"""Each of them takes as much as all others together."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.gate] if path.stem in COSTLY else []) for path in STORMS],
)
def test_the_system_withstands_a_storm_that_it_did_not(path: Path) -> None:
    storm, parts = load_storm(path)
    judged = blown_and_judged(storm.scenario, parts)
    assert judged.verdict is not Verdict.INVALID, judged.words()
    assert not judged.anomalies


def test_there_are_storms() -> None:
    assert {path.stem for path in STORMS} > set(COSTLY)
