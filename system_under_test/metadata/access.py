"""What a process may do with the metadata store, wherever it is: keys with versions, and ephemeral keys.

Versions are numbers of the whole store: each change gives the keys that it changed a greater one than any key ever had,
so a key that was deleted and created again never has a version that it had before.

A change whose answer was lost may have happened, or may still happen later (`Unavailable` that is not definite).
`settling.py` settles such a one by reading back what it would have written.

Ephemeral keys belong to a session, and go with it: when the store has not heard of its process for the session's
time-out, or the process ends it. A process may outlive its session without noticing: an ephemeral key is a hint for
others, never a promise to its owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class MetadataError(Exception):
    """What a request to the store may come to instead of an answer."""


class Conflict(MetadataError):
    """The version does not fit, or a key that was to be created is there. Nothing was changed."""

    def __init__(self, key: str, found: int | None) -> None:
        """`found`: the version that the key has, None if it is not there."""
        super().__init__(f"{key} is not there" if found is None else f"{key} has version {found}")
        self.key = key
        self.found = found


class Unavailable(MetadataError):
    """No answer came in time. `is_definite`: certainly nothing was changed, and never will be by this request."""

    def __init__(self, reason: str, *, is_definite: bool = False) -> None:
        super().__init__(reason)
        self.is_definite = is_definite


class SessionLost(MetadataError):
    """The session to which an ephemeral key was to belong is over, or none is open yet. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Versioned:
    value: str
    version: int
    session: str | None = None
    """The session whose ephemeral key this is; None: it is no ephemeral key."""


class MetadataAccess(Protocol):
    """Every method that is awaited raises Unavailable; one that only reads may be tried again."""

    @property
    def session(self) -> str | None:
        """To which ephemeral keys belong that are created now; None while none is open."""

    async def session_other_than(self, session: str | None) -> str:
        """The session, as soon as one is open that is not this one: at once, or after that was lost. Its ephemeral keys
        are gone then, and may be created again."""

    async def get(self, key: str) -> Versioned | None:
        """The newest at some moment of the call, as of all reads; None if the key is not there."""

    async def list(self, prefix: str) -> Mapping[str, Versioned]:
        """All keys that begin so, in the order of their names."""

    async def create(self, key: str, value: str, ephemeral: bool = False) -> int:
        """Its version. Raises Conflict where the key is there, SessionLost."""

    async def put(self, key: str, value: str, version: int) -> int:
        """The version that the key has from now on. Raises Conflict unless it has had `version`."""

    async def delete(self, key: str, version: int) -> None:
        """Raises Conflict unless it has had `version`."""

    async def next_number(self, counter: str) -> int:
        """A greater number than the counter ever gave, from 1 on. One whose answer is lost is given to nobody."""

    async def wait(self, prefix: str, since: int) -> int:
        """Returns once a key that begins so was changed or deleted after version `since`; 0: after the beginning.

        What it returns is the `since` of the next call: read after it, and no change is missed. It may return without
        a change."""
