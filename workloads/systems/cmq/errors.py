"""What a node answers in the place of a result, as the history has it, and whether it was certainly not carried out."""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, ErrorCode
from system_under_test.cmq.wire import Code
from system_under_test.remoting.codes import ResponseCode

NOT_LEADER = ErrorCode("not-leader", definite=True)
UNKNOWN_QUEUE = ErrorCode("unknown-queue", definite=True)
UNKNOWN_MESSAGE = ErrorCode("unknown-message", definite=True)
TOO_LONG = ErrorCode("too-long", definite=True)
TOO_MANY_QUEUES = ErrorCode("too-many-queues", definite=True)
DISK_FULL = ErrorCode("disk-full", definite=True)
BUSY = ErrorCode("busy", definite=True)
UNFIT_CHANGE = ErrorCode("unfit-change", definite=True)
PULL_UNANSWERED = ErrorCode("pull-unanswered", definite=True)
"""Whatever it was given out, nothing was taken: it comes again."""
ACKNOWLEDGED_BY_ANOTHER = ErrorCode("acknowledged-by-another", definite=True)
"""The message came again while it was held here, and somebody else took it."""
MESSAGES_LEFT = ErrorCode("messages-left", definite=True)
"""Nothing came, for consumers hold what is there."""
CUT_SHORT = ErrorCode("cut-short", definite=False)
"""Some messages were taken, and are shown, and others may still be there."""

REFUSALS: Mapping[int, ErrorCode] = {
    ResponseCode.SYSTEM_BUSY: SERVICE_NOT_AVAILABLE,
    Code.NOT_LEADER: NOT_LEADER,
    Code.UNKNOWN_QUEUE: UNKNOWN_QUEUE,
    Code.TOO_LONG: TOO_LONG,
    Code.MALFORMED: SERVICE_NOT_AVAILABLE,
    Code.DISK_FULL: DISK_FULL,
    Code.BUSY: BUSY,
    Code.TOO_MANY_QUEUES: TOO_MANY_QUEUES,
    Code.UNKNOWN_MESSAGE: UNKNOWN_MESSAGE,
    Code.UNFIT_CHANGE: UNFIT_CHANGE,
}


def error_of(code: int) -> ErrorCode:
    """Any other code leaves open what happened."""
    return REFUSALS.get(code, OUTCOME_UNKNOWN)
