"""What a command's exit code says, for one run and for several."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from checkers.api.verdict import Verdict


class ExitCode(IntEnum):
    VALID = 0
    INVALID = 1
    UNKNOWN = 2
    REFUTED = 3
    """A certificate is refuted, which says nothing about the system. It is not 1, with which Python ends if it cannot
    start."""
    WRONG_USAGE = 254
    HARNESS_FAILED = 255


_OF_VERDICT = {
    Verdict.VALID: ExitCode.VALID,
    Verdict.INVALID: ExitCode.INVALID,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}
_RANK = (ExitCode.INVALID, ExitCode.HARNESS_FAILED, ExitCode.WRONG_USAGE, ExitCode.UNKNOWN)


def exit_code_of(verdict: Verdict) -> ExitCode:
    return _OF_VERDICT[verdict]


def combined(codes: Iterable[int]) -> ExitCode:
    """The worst of several: invalid outranks all, then a failed harness, then unknown; of nothing we know nothing."""
    seen = [ExitCode(code) for code in codes]
    for code in _RANK:
        if code in seen:
            return code
    return ExitCode.VALID if seen else ExitCode.UNKNOWN
