"""What came of a change of a ledger's metadata whose version did not fit, or whose answer was lost.

What was read back is held against what the change would have written and what it was to replace. The same change is
tried again until it is settled: of tries with one version at most one takes effect, so a late one does no harm.

Ensembles of fragments before the last one are not compared: a worker that repairs one changes nothing for who writes or
recovers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from system_under_test.bookkeeper.ledger.event import Effect, Publish, ReadMetadata
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState


def is_as_written(found: LedgerMetadata, written: LedgerMetadata) -> bool:
    """Whether it is what was written, or what others may make of that."""
    if found.state is not written.state:
        return False
    if written.state is LedgerState.CLOSED:
        return (found.last_entry, found.length) == (written.last_entry, written.length)
    return len(found.fragments) == len(written.fragments) and found.last_fragment == written.last_fragment


@dataclass(frozen=True, slots=True)
class Settled:
    """What is in the store."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody else changed what was to be changed; None: it was not found out what came of it."""

    found: LedgerMetadata | None


class Publication:
    """One change, from its first try until it is known what came of it."""

    def __init__(self, base: LedgerMetadata, wanted: LedgerMetadata, most_tries: int) -> None:
        """`wanted` is to take the place of `base`."""
        self._base = base
        self._wanted = wanted
        self._tries_left = most_tries

    @property
    def wanted(self) -> LedgerMetadata:
        return self._wanted

    def next_try(self) -> Effect | Overtaken:
        if self._tries_left == 0:
            return Overtaken(None)
        self._tries_left -= 1
        return Publish(self._wanted)

    def published(self, version: int | None) -> Effect | Settled:
        if version is None:
            return ReadMetadata()
        return Settled(replace(self._wanted, version=version))

    def read(self, found: LedgerMetadata | None) -> Effect | Settled | Overtaken:
        if found is None:
            if self._tries_left == 0:
                return Overtaken(None)
            self._tries_left -= 1
            return ReadMetadata()
        if is_as_written(found, self._wanted):
            return Settled(found)
        if not self.may_try_again(found):
            return Overtaken(found)
        before = len(self._base.fragments) - 1
        self._wanted = replace(
            self._wanted,
            fragments=(*found.fragments[:before], *self._wanted.fragments[before:]),
            version=found.version,
        )
        return self.next_try()

    def may_try_again(self, found: LedgerMetadata) -> bool:
        """Only fragments before the last one have changed, if anything has."""
        return is_as_written(found, self._base)
