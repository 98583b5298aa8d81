"""Which bookies have an entry: Qw of the ensemble, beginning with the one whose turn it is."""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, Placement, Quorums


class NotEnoughBookies(Exception):
    """Fewer bookies may be chosen than a new ledger needs. Nothing was created."""


def first_ensemble(quorums: Quorums, writable: Sequence[str]) -> tuple[str, ...]:
    """The first of those that may be chosen, in their order. Raises NotEnoughBookies."""
    if len(writable) < quorums.ensemble:
        raise NotEnoughBookies(f"{len(writable)} bookies are writable, and an ensemble has {quorums.ensemble}")
    return tuple(writable[: quorums.ensemble])


def write_set(metadata: LedgerMetadata, fragment: Fragment, entry: int) -> tuple[str, ...]:
    """Of an entry as the fragment places it, which may be one that was not published yet."""
    size = metadata.quorums.ensemble
    begin = entry - fragment.first_entry if metadata.placement is Placement.FRAGMENT else entry
    return tuple(fragment.ensemble[(begin + place) % size] for place in range(metadata.quorums.write))


def bookies_of(metadata: LedgerMetadata, entry: int) -> tuple[str, ...]:
    """Of an entry as the metadata place it."""
    return write_set(metadata, metadata.fragment_of(entry), entry)


def windows(metadata: LedgerMetadata, fragment: Fragment) -> tuple[tuple[str, ...], ...]:
    """Every write set that the fragment has."""
    size = metadata.quorums.ensemble
    return tuple(
        tuple(fragment.ensemble[(begin + place) % size] for place in range(metadata.quorums.write))
        for begin in range(size)
    )
