"""The names of the hosts from which clients reach a system."""

from __future__ import annotations

import re

_NAME = re.compile(r"client-[0-9]+")


def client_names(concurrency: int) -> tuple[str, ...]:
    """Of so many threads of clients, one each."""
    return tuple(f"client-{thread}" for thread in range(concurrency))


def is_client(host: str) -> bool:
    """Whether it is one of these names."""
    return _NAME.fullmatch(host) is not None
