"""What clients ask members of a DLedger group, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.message import Code


@dataclass(frozen=True, slots=True)
class AppendRequest:
    bodies: tuple[bytes, ...]
    """The public library's server takes one alone: it has requests of several, but does not read them so."""


@dataclass(frozen=True, slots=True)
class GetRequest:
    """The public library's server answers with one entry whatever else it is asked, and fails without `begin`."""

    begin: int = NOTHING
    max_bytes: int = 0
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The public library's server has the code, and answers that it has failed."""

    node: str
    begin: int


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendAnswer:
    code: Code
    term: int = NOTHING
    leader: str | None = None
    index: int = NOTHING
    """The index of the last entry."""
    position: int = NOTHING
    """The position of the last entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesAnswer:
    code: Code
    term: int = NOTHING
    leader: str | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAnswer:
    code: Code
    term: int = NOTHING
    """The public library leaves it out."""
    leader: str | None = None
    peers: Mapping[str, str] = field(default_factory=dict)
    """Addresses by ids."""


ClientRequest = AppendRequest | GetRequest | PullRequest | MetadataRequest
ClientAnswer = AppendAnswer | EntriesAnswer | MetadataAnswer
