"""PySyncObj's reasons for a failure (`FAIL_REASON` in its `config.py`), and whether nothing certainly happened.

NOT_LEADER, LEADER_CHANGED and UNKNOWN_OUTCOME leave open whether somebody else has committed the command.
"""

from __future__ import annotations

from stormproof import CLIENT_TIMEOUT, CONNECTION_LOST, OUTCOME_UNKNOWN, ErrorCode

DEFINITE = {
    "QUEUE_FULL": ErrorCode("queue-full", definite=True),  # never sent
    "MISSING_LEADER": ErrorCode("missing-leader", definite=True),  # never sent
    "DISCARDED": ErrorCode("discarded", definite=True),  # another command has its place in the log
}


def code_of(reason: str) -> ErrorCode:
    return DEFINITE.get(reason, OUTCOME_UNKNOWN)


def code_of_silence(error: Exception) -> ErrorCode:
    """Of a request that was sent, and whose answer did not come."""
    return CLIENT_TIMEOUT if isinstance(error, TimeoutError) else CONNECTION_LOST
