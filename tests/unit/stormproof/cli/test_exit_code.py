"""Exit codes over several runs: invalid outranks all, then a failed harness, then unknown."""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from stormproof.cli.exit_code import ExitCode, combined, exit_code_of


def test_each_verdict_has_its_code() -> None:
    assert [exit_code_of(verdict) for verdict in (Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ([0, 0], 0),
        ([0, 2], 2),
        ([2, 255, 0], 255),
        ([255, 1, 2], 1),
        ([254, 2], 254),
        ([254, 255], 255),
        ([], 2),
    ],
)
def test_the_worst_of_several_decides(codes: list[int], worst: int) -> None:
    assert combined(codes) == worst


def test_order_decides_nothing() -> None:
    assert combined([ExitCode.UNKNOWN, ExitCode.INVALID]) == combined([ExitCode.INVALID, ExitCode.UNKNOWN])
