"""What etcd answers in the place of a result, and whether the request was certainly not carried out.

The gateway answers errors of gRPC (https://grpc.github.io/grpc/core/md_doc_statuscodes.html). A request that ended by a
time-out, or because the leader changed, may have been carried out, or may be yet.
"""

from __future__ import annotations

from harness.errors import OUTCOME_UNKNOWN, ErrorCode

INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 8
REFUSALS = {
    INVALID_ARGUMENT: ErrorCode("invalid-argument", definite=True),
    RESOURCE_EXHAUSTED: ErrorCode("resource-exhausted", definite=True),
}
"""Answered before anything is proposed. Any other error leaves open what happened."""
READ_FAILED = ErrorCode("read-failed", definite=True)
"""Whatever ended a request that only reads: it changed nothing."""
CHANGED_MEANWHILE = ErrorCode("changed-meanwhile", definite=True)
"""A key was written after the transaction had read it, so that nothing of it was carried out."""


class Refused(Exception):
    """An error that etcd answered."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def code_of(error: Refused) -> ErrorCode:
    return REFUSALS.get(error.code, OUTCOME_UNKNOWN)
