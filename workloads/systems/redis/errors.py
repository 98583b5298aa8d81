"""What Redis answers in the place of a result, and whether the request was certainly not carried out."""

from __future__ import annotations

from harness.errors import CLIENT_TIMEOUT, CONNECTION_LOST, OUTCOME_UNKNOWN, ErrorCode


class Refused(Exception):
    """An error that Redis answered: its first word is its code."""


REFUSALS = {
    word: ErrorCode(word.lower(), definite=True)
    for word in ("READONLY", "NOREPLICAS", "LOADING", "MASTERDOWN", "MISCONF")
}
"""Answered before the command is carried out. Any other error leaves open what happened."""


def code_of(error: Exception) -> ErrorCode:
    """Of what ended a request: a Refused, a time-out, or the end of its connection."""
    if isinstance(error, Refused):
        return REFUSALS.get(str(error).partition(" ")[0], OUTCOME_UNKNOWN)
    return CLIENT_TIMEOUT if isinstance(error, TimeoutError) else CONNECTION_LOST
