"""What RocketMQ's clients report beside the general errors, by the code that the client under test gives."""

from __future__ import annotations

from harness.errors import GENERAL, OUTCOME_UNKNOWN, ErrorCode
from system_under_test.rocketmq.proxy.v2 import Code

FLUSH_DISK_TIMEOUT = ErrorCode("flush-disk-timeout", definite=False)
FLUSH_SLAVE_TIMEOUT = ErrorCode("flush-slave-timeout", definite=False)
NO_ROUTE = ErrorCode("no-route", definite=True)
NOT_MASTER = ErrorCode("not-master", definite=True)
NOT_LEADER = ErrorCode("not-leader", definite=True)
IN_SYNC_REPLICAS_NOT_ENOUGH = ErrorCode("in-sync-replicas-not-enough", definite=True)
MESSAGE_ILLEGAL = ErrorCode("message-illegal", definite=True)
DISK_FULL = ErrorCode("disk-full", definite=True)
NOT_HELD = ErrorCode("not-held", definite=True)
ROLLED_BACK = ErrorCode("rolled-back", definite=True)
OFFSET_ILLEGAL = ErrorCode("offset-illegal", definite=True)

CODES = {
    error.code: error
    for error in (
        *GENERAL,
        FLUSH_DISK_TIMEOUT,
        FLUSH_SLAVE_TIMEOUT,
        NO_ROUTE,
        NOT_MASTER,
        NOT_LEADER,
        IN_SYNC_REPLICAS_NOT_ENOUGH,
        MESSAGE_ILLEGAL,
        DISK_FULL,
        NOT_HELD,
        ROLLED_BACK,
        OFFSET_ILLEGAL,
    )
}
"""Code -> error."""

_SAID_FOR_CERTAIN = {
    Code.INVALID_RECEIPT_HANDLE: NOT_HELD,
    Code.TOPIC_NOT_FOUND: NO_ROUTE,
    Code.BAD_REQUEST: MESSAGE_ILLEGAL,
    Code.ILLEGAL_INVISIBLE_TIME: MESSAGE_ILLEGAL,
}
"""Code that a proxy answers -> the error that it certainly is."""


def of_status(code: int) -> ErrorCode:
    """Of what a proxy answers other than OK: after any other code the request may have taken effect."""
    return {int(known): error for known, error in _SAID_FOR_CERTAIN.items()}.get(code, OUTCOME_UNKNOWN)
