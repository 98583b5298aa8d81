"""A connection to a database as a driver shows it, and the two ways in which what was asked of it can fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Refused(Exception):
    """The database answered with an error. `code` is what it calls it: an SQLSTATE, or a number."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"{code} {words}")
        self.code = code


class Lost(Exception):
    """There is no connection, or none any more: nobody knows what came of what was sent last."""


class Session(Protocol):
    """One connection, for one transaction at a time. All but `abandon` raise Refused and Lost."""

    @property
    def node(self) -> str: ...

    async def begin(self) -> None: ...

    async def rows(self, statement: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        """What one statement answers; none for one that answers no rows."""

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...

    def abandon(self) -> None:
        """Close it at once. Nothing more is sent, no request to cancel what is under way either: a database may take
        that for a wish to answer sooner that a transaction is committed than it is."""
