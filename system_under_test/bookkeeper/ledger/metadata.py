"""What the metadata store holds of a ledger: its quorums, which bookies have which entries, its state, where it ends.

It is written whole, by compare-and-set, so a value speaks for all that was known when it was written. States only
follow each other as they are listed, and a closed ledger keeps its last entry for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Final

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.remoting.json_body import decode_json

LEDGERS: Final = "/ledgers/"
"""What the keys of ledgers begin with in the metadata store."""
MAX_ENSEMBLE: Final = 64
MAX_FRAGMENTS: Final = 10_000
MAX_NUMBER: Final = 2**63 - 1
_MAX_IDENTITY: Final = 64
"""Characters of a bookie's identity."""


class MalformedMetadata(ValueError):
    """A value that describes no ledger."""


class LedgerState(Enum):
    OPEN = "open"
    IN_RECOVERY = "in-recovery"
    CLOSED = "closed"


class Placement(Enum):
    """Where counting round the ensemble begins, by which an entry finds its bookies."""

    FRAGMENT = "fragment"
    """The fragment's first entry has the first bookie, as TDMQ describes it: each change of the ensemble turns all."""
    ENTRY = "entry"
    """Entry 0 would have it, as with BookKeeper itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorums:
    ensemble: int
    """E: so many bookies take the entries of a fragment in turns."""
    write: int
    """Qw: so many of them are sent each entry."""
    ack: int
    """Qa: so many have to have it durably before it is acknowledged."""

    def __post_init__(self) -> None:
        """Raises ValueError that names the one that does not fit."""
        if self.ack < 1:
            raise ValueError(f"an ack quorum of {self.ack} acknowledges what nobody has")
        if self.ack > self.write:
            raise ValueError(f"an ack quorum of {self.ack} is more than the write quorum of {self.write}")
        if self.write > self.ensemble:
            raise ValueError(f"a write quorum of {self.write} is more than the ensemble of {self.ensemble}")
        if self.ensemble > MAX_ENSEMBLE:
            raise ValueError(f"an ensemble of {self.ensemble} is more than {MAX_ENSEMBLE}")

    @property
    def explicit_noes(self) -> int:
        """So many of an entry's bookies without it, and it cannot have been acknowledged."""
        return self.write - self.ack + 1


@dataclass(frozen=True, slots=True)
class Fragment:
    """Entries that one ensemble has: from the first one up to the next fragment's first, or to the ledger's last."""

    first_entry: int
    ensemble: tuple[str, ...]
    """Bookies by their identities."""
    bytes_before: int
    """All payloads before the first entry have so many: of a fragment that holds nothing no bookie knows it."""

    def __post_init__(self) -> None:
        assert len(set(self.ensemble)) == len(self.ensemble), "a bookie has one place in an ensemble"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    ledger: int
    quorums: Quorums
    fragments: tuple[Fragment, ...]
    """They follow each other, and the first begins with entry 0."""
    placement: Placement = Placement.FRAGMENT
    state: LedgerState = LedgerState.OPEN
    last_entry: int = NOTHING
    """A closed ledger ends with it."""
    length: int = 0
    """All payloads of a closed ledger have so many bytes."""
    version: int = 0
    """The store gave it to this value; it is no part of it."""

    @property
    def last_fragment(self) -> Fragment:
        return self.fragments[-1]

    def fragment_of(self, entry: int) -> Fragment:
        return next(each for each in reversed(self.fragments) if each.first_entry <= entry)

    def with_ensemble(self, fragment: Fragment) -> LedgerMetadata:
        """From the fragment's first entry on."""
        before = [each for each in self.fragments if each.first_entry < fragment.first_entry]
        return replace(self, fragments=(*before, fragment))

    def in_recovery(self) -> LedgerMetadata:
        return replace(self, state=LedgerState.IN_RECOVERY)

    def closed(self, last_entry: int, length: int) -> LedgerMetadata:
        return replace(self, state=LedgerState.CLOSED, last_entry=last_entry, length=length)


def key_of(ledger: int) -> str:
    """In the metadata store."""
    return f"{LEDGERS}{ledger:010d}"


def encode_metadata(metadata: LedgerMetadata) -> str:
    quorums = metadata.quorums
    value: dict[str, object] = {
        "ledger": metadata.ledger,
        "state": metadata.state.value,
        "ensembleSize": quorums.ensemble,
        "writeQuorum": quorums.write,
        "ackQuorum": quorums.ack,
        "placement": metadata.placement.value,
        "fragments": [
            {"first": each.first_entry, "ensemble": list(each.ensemble), "bytesBefore": each.bytes_before}
            for each in metadata.fragments
        ],
    }
    if metadata.state is LedgerState.CLOSED:
        value |= {"lastEntry": metadata.last_entry, "length": metadata.length}
    return json.dumps(value, separators=(",", ":"))


def decode_metadata(value: str, version: int) -> LedgerMetadata:
    """Raises MalformedMetadata."""
    try:
        fields = decode_json(value.encode())
    except ValueError as error:
        raise MalformedMetadata(f"the value is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise MalformedMetadata("the value is no object")
    try:
        quorums = Quorums(
            ensemble=_number(fields, "ensembleSize"),
            write=_number(fields, "writeQuorum"),
            ack=_number(fields, "ackQuorum"),
        )
        state, placement = LedgerState(fields.get("state")), Placement(fields.get("placement"))
    except ValueError as error:
        raise MalformedMetadata(str(error)) from error
    is_closed = state is LedgerState.CLOSED
    return LedgerMetadata(
        ledger=_number(fields, "ledger"),
        quorums=quorums,
        fragments=_fragments(fields.get("fragments"), quorums.ensemble),
        placement=placement,
        state=state,
        last_entry=_number(fields, "lastEntry", low=NOTHING) if is_closed else NOTHING,
        length=_number(fields, "length") if is_closed else 0,
        version=version,
    )


def _fragments(value: object, size: int) -> tuple[Fragment, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_FRAGMENTS:
        raise MalformedMetadata(f"'fragments' is no list of 1 to {MAX_FRAGMENTS}")
    fragments = tuple(_fragment(each, size) for each in value)
    if fragments[0].first_entry != 0 or any(
        one.first_entry >= other.first_entry or one.bytes_before > other.bytes_before
        for one, other in pairwise(fragments)
    ):
        raise MalformedMetadata("'fragments' do not begin with entry 0, or do not follow each other")
    return fragments


def _fragment(value: object, size: int) -> Fragment:
    if not isinstance(value, dict):
        raise MalformedMetadata("a fragment is no object")
    ensemble = value.get("ensemble")
    if not isinstance(ensemble, list) or len(ensemble) != size or not all(map(_is_identity, ensemble)):
        raise MalformedMetadata(f"an 'ensemble' is no list of {size} identities of bookies")
    if len(set(ensemble)) < size:
        raise MalformedMetadata("a bookie is in an ensemble twice")
    return Fragment(_number(value, "first"), tuple(ensemble), _number(value, "bytesBefore"))


def _is_identity(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_IDENTITY and value.isascii() and value.isalnum()


def _number(fields: Mapping[str, object], name: str, low: int = 0) -> int:
    value = fields.get(name)
    if type(value) is not int or not low <= value <= MAX_NUMBER:
        raise MalformedMetadata(f"{name!r} is {str(value)[:40]!r}, not a whole number from {low} on")
    return value
