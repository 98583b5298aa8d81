"""What a broker answers in the place of a result, as the history has it, and whether it was certainly not carried
out."""

from __future__ import annotations

from harness.errors import OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, ErrorCode
from system_under_test.bookkeeper.partition.wire import Code

NOT_SERVING = ErrorCode("not-serving", definite=True)
REFUSED = ErrorCode("refused", definite=True)
LEDGER_LOST = ErrorCode("ledger-lost", definite=False)
METADATA_UNAVAILABLE = ErrorCode("metadata-unavailable", definite=True)
"""The client could not find out whom to ask."""
ENTRY_UNREAD = ErrorCode("entry-unread", definite=True)
"""Too few bookies answered to say what the entry is."""

REFUSALS = {
    Code.NOT_SERVING: NOT_SERVING,
    Code.REFUSED: REFUSED,
    Code.FAILED: LEDGER_LOST,
    Code.MALFORMED: SERVICE_NOT_AVAILABLE,
}


def error_of(code: int) -> ErrorCode:
    """Any other code leaves open what happened."""
    return next((error for known, error in REFUSALS.items() if known == code), OUTCOME_UNKNOWN)
