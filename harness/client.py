"""The Client protocol: how the interpreter talks to a system."""

from __future__ import annotations

from typing import Protocol

from harness.operation import Operation


class Client(Protocol):
    """One logical process's connection to the system under test.

    Never retries hidden: one invocation is at most one request that can take effect. Errors of the
    system are raised as `harness.errors.OperationError`, whose code says definite or indefinite; a
    client never guesses. After an `info` the interpreter closes the client and opens a fresh one.
    """

    async def open(self) -> None: ...

    async def invoke(self, operation: Operation) -> Operation:
        """Carry out an `invoke`; returns its completion (type, value, error and node filled in)."""

    async def close(self) -> None: ...
