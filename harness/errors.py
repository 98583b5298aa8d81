"""One table: which error is definite (`fail`, it certainly did not happen) and which is not (`info`)."""

from __future__ import annotations

from enum import Enum
from typing import Literal


class ErrorCode(Enum):
    """Every error a client may report: (code in the history, is it definite)."""

    CLIENT_TIMEOUT = ("client-timeout", False)
    CONNECTION_LOST = ("connection-lost", False)
    CLIENT_CRASHED = ("client-crashed", False)
    OUTCOME_UNKNOWN = ("outcome-unknown", False)
    FLUSH_DISK_TIMEOUT = ("flush-disk-timeout", False)
    FLUSH_SLAVE_TIMEOUT = ("flush-slave-timeout", False)
    CONNECT_FAILED = ("connect-failed", True)
    NO_ROUTE = ("no-route", True)
    NOT_MASTER = ("not-master", True)
    NOT_LEADER = ("not-leader", True)
    IN_SYNC_REPLICAS_NOT_ENOUGH = ("in-sync-replicas-not-enough", True)
    SERVICE_NOT_AVAILABLE = ("service-not-available", True)
    MESSAGE_ILLEGAL = ("message-illegal", True)
    DISK_FULL = ("disk-full", True)
    OFFSET_ILLEGAL = ("offset-illegal", True)
    PRECONDITION_FAILED = ("precondition-failed", True)
    NOT_FOUND = ("not-found", True)

    def __init__(self, code: str, definite: bool) -> None:
        self.code = code
        self.definite = definite

    @property
    def completion(self) -> Literal["fail", "info"]:
        return "fail" if self.definite else "info"


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
