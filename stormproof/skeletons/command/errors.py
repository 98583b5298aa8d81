"""What the command answers instead of a result, and whether the operation then certainly did not happen.

Verdicts rest on this table: an error that is called definite though the operation may have happened accuses a healthy
system of showing what was never written. What is not certain is indefinite.
"""

from __future__ import annotations

from stormproof import CLIENT_TIMEOUT, CONNECTION_LOST, OUTCOME_UNKNOWN, ErrorCode

DEFINITE = {word: ErrorCode(word.lower(), definite=True) for word in ("LOADING", "MISCONF", "READONLY")}
"""First words of errors that come before a command is carried out."""


def code_of(answered: str) -> ErrorCode:
    """Of an error that was answered; of one that nobody foresaw nothing is certain."""
    return DEFINITE.get(answered.partition(" ")[0], OUTCOME_UNKNOWN)


def code_of_silence(error: Exception) -> ErrorCode:
    """Of a request that was sent, and whose answer did not come: it may have been carried out."""
    return CLIENT_TIMEOUT if isinstance(error, TimeoutError) else CONNECTION_LOST
