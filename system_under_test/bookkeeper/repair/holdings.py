"""Which entries a bookie should hold, and which of them are looked for to find out whether it does.

By default a bookie is asked for the first and the last entry that it should hold of a fragment. What it lost in between
only a look at every entry finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from system_under_test.bookkeeper.ledger.placement import write_set


@dataclass(frozen=True, slots=True)
class Span:
    """A fragment and the last entry that it certainly has: before its first one where it has none."""

    fragment: Fragment
    last_entry: int
    is_final: bool
    """Nothing comes to it any more: the ledger is closed, or the next fragment has begun."""


def spans(metadata: LedgerMetadata, lac: int) -> tuple[Span, ...]:
    """Of all fragments. `lac`: up to where a ledger that is not closed is known to be confirmed."""
    ends = [fragment.first_entry - 1 for fragment in metadata.fragments[1:]]
    is_closed = metadata.state is LedgerState.CLOSED
    ends.append(metadata.last_entry if is_closed else max(lac, metadata.last_fragment.first_entry - 1))
    finals = [True] * (len(ends) - 1) + [is_closed]
    return tuple(map(Span, metadata.fragments, ends, finals))


def own_entries(metadata: LedgerMetadata, span: Span, bookie: str) -> Iterator[int]:
    """Those that this bookie should hold, in their order."""
    fragment = span.fragment
    for entry in range(fragment.first_entry, span.last_entry + 1):
        if bookie in write_set(metadata, fragment, entry):
            yield entry


class OwnEnds:
    """By which entries a bookie is judged. Stateless."""

    def entries(self, metadata: LedgerMetadata, span: Span, bookie: str) -> Iterator[int]:
        """The first and the last one that this bookie should hold: the fragment's ends may be others' turn."""
        first, last = span.fragment.first_entry, span.last_entry
        size = metadata.quorums.ensemble
        own = next(self._own(metadata, span.fragment, bookie, range(first, min(first + size - 1, last) + 1)), None)
        if own is None:
            return
        yield own
        other = next(self._own(metadata, span.fragment, bookie, range(last, max(last - size, own), -1)), None)
        if other is not None:
            yield other

    def _own(self, metadata: LedgerMetadata, fragment: Fragment, bookie: str, entries: range) -> Iterator[int]:
        return (entry for entry in entries if bookie in write_set(metadata, fragment, entry))


class EveryEntry(OwnEnds):
    """By all that it should hold."""

    def entries(self, metadata: LedgerMetadata, span: Span, bookie: str) -> Iterator[int]:
        return own_entries(metadata, span, bookie)
