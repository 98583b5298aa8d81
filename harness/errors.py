"""Errors of operations, which are definite (`fail`) or not (`info`), errors of usage, and those of the harness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error that a client may report. A system declares its own beside these; none is guessed from a text."""

    code: str
    """What the history's `error` column holds."""
    definite: bool
    """Whether the operation certainly did not happen."""

    @property
    def completion(self) -> Literal["fail", "info"]:
        return "fail" if self.definite else "info"


CLIENT_TIMEOUT = ErrorCode("client-timeout", definite=False)
CONNECTION_LOST = ErrorCode("connection-lost", definite=False)
CLIENT_CRASHED = ErrorCode("client-crashed", definite=False)
OUTCOME_UNKNOWN = ErrorCode("outcome-unknown", definite=False)
CONNECT_FAILED = ErrorCode("connect-failed", definite=True)
SERVICE_NOT_AVAILABLE = ErrorCode("service-not-available", definite=True)
PRECONDITION_FAILED = ErrorCode("precondition-failed", definite=True)
NOT_FOUND = ErrorCode("not-found", definite=True)
GENERAL = (
    CLIENT_TIMEOUT,
    CONNECTION_LOST,
    CLIENT_CRASHED,
    OUTCOME_UNKNOWN,
    CONNECT_FAILED,
    SERVICE_NOT_AVAILABLE,
    PRECONDITION_FAILED,
    NOT_FOUND,
)
"""What any system's client may report."""


class OperationError(Exception):
    """An operation did not succeed; `error` says whether it certainly did not happen."""

    def __init__(self, error: ErrorCode, detail: str = "", *, node: str | None = None) -> None:
        super().__init__(f"{error.code}: {detail}" if detail else error.code)
        self.error = error
        self.detail = detail
        self.node = node


class UsageError(Exception):
    """The user asked for something that cannot be: says what was expected, what came, what to do. Exit 254."""


class HarnessError(Exception):
    """The harness or its environment failed, which says nothing about the system. Exit 255."""
