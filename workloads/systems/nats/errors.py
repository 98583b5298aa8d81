"""What JetStream answers in the place of a result, and whether the request was certainly not carried out.

Source of the numbers: server/errors.json of nats-server 2.9.
"""

from __future__ import annotations

from harness.errors import NOT_FOUND, OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, ErrorCode


class Refused(Exception):
    """An error that JetStream answered, by the number that it has in its API."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(words)
        self.number = number


NOT_AVAILABLE, STREAM_OFFLINE, NO_PEERS, NO_MESSAGE = 10008, 10118, 10005, 10037
REFUSALS = {
    **dict.fromkeys((NOT_AVAILABLE, STREAM_OFFLINE, NO_PEERS), SERVICE_NOT_AVAILABLE),
    NO_MESSAGE: NOT_FOUND,
}
"""Answered before anything is proposed. Any other error leaves open what happened."""


def code_of(error: Refused) -> ErrorCode:
    return REFUSALS.get(error.number, OUTCOME_UNKNOWN)
