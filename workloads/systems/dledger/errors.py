"""What a member answers in the place of a result, as the history has it, and whether the request was certainly not
carried out."""

from __future__ import annotations

from harness.errors import OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, ErrorCode
from system_under_test.dledger.message import Code

NOT_LEADER = ErrorCode("not-leader", definite=True)
DISK_FULL = ErrorCode("disk-full", definite=True)
PENDING_FULL = ErrorCode("pending-full", definite=True)
TRANSFERRING = ErrorCode("transferring", definite=True)
OUT_OF_RANGE = ErrorCode("out-of-range", definite=True)
"""The public library's leader, of an index behind its log, or before it."""
TOO_LONG = ErrorCode("too-long", definite=True)
TERM_CHANGED = ErrorCode("term-changed", definite=False)
NO_QUORUM = ErrorCode("no-quorum-in-time", definite=False)

REFUSALS = {
    Code.NOT_LEADER: NOT_LEADER,
    Code.DISK_FULL: DISK_FULL,
    Code.LEADER_PENDING_FULL: PENDING_FULL,
    Code.LEADER_TRANSFERRING: TRANSFERRING,
    Code.INDEX_OUT_OF_RANGE: OUT_OF_RANGE,
    Code.UNEXPECTED_ARGUMENT: TOO_LONG,
    Code.TERM_CHANGED: TERM_CHANGED,
    Code.WAIT_QUORUM_ACK_TIMEOUT: NO_QUORUM,
    Code.UNKNOWN_GROUP: SERVICE_NOT_AVAILABLE,
    Code.UNKNOWN_MEMBER: SERVICE_NOT_AVAILABLE,
    Code.REQUEST_WITH_EMPTY_BODYS: SERVICE_NOT_AVAILABLE,
}
"""Any other code leaves open what happened."""


def error_of(code: Code) -> ErrorCode:
    return REFUSALS.get(code, OUTCOME_UNKNOWN)
