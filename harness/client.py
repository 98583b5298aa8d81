"""The Client protocol: how the interpreter talks to a system."""

from __future__ import annotations

import re
from typing import Protocol

from harness.operation import Operation

_NAME = re.compile(r"client-[0-9]+")


def client_names(concurrency: int) -> tuple[str, ...]:
    """Of the hosts from which so many threads of clients reach the system, one each."""
    return tuple(f"client-{thread}" for thread in range(concurrency))


def is_client(host: str) -> bool:
    """Whether it is the name of one of these hosts."""
    return _NAME.fullmatch(host) is not None


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
