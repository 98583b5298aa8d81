"""What can become of a call, by gRPC's numbers."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class GrpcError(Exception):
    """A call that ended with another status than OK. `status` is any number where the other side sent it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {int(status)}: {message}")
        self.status = status
        self.message = message


class StreamEnded(Exception):
    """The other side takes nothing more on this stream: it was reset, or its connection ended."""
