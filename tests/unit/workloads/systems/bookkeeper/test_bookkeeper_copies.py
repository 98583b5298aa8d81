"""Which bookies hold which entries of a ledger, and which a ledger counts on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, Quorums
from workloads.systems.bookkeeper.copies import counted_on, holdings

LEDGER = LedgerMetadata(
    ledger=7,
    quorums=Quorums(ensemble=3, write=2, ack=2),
    fragments=(Fragment(0, ("a", "b", "c"), 0), Fragment(4, ("a", "d", "c"), 40)),
)


def test_each_fragment_is_held_by_its_own_bookies() -> None:
    assert list(holdings(LEDGER.closed(6, 70))) == [
        *(("a", {0, 2, 3}), ("b", {0, 1, 3}), ("c", {1, 2})),
        *(("a", {4, 6}), ("d", {4, 5}), ("c", {5, 6})),
    ]


@pytest.mark.parametrize(
    ("last_entry", "bookies"), [(-1, set()), (0, {"a", "b"}), (3, {"a", "b", "c"}), (4, {"a", "b", "c", "d"})]
)
def test_a_closed_ledger_counts_on_who_holds_its_entries(last_entry: int, bookies: set[str]) -> None:
    assert counted_on(LEDGER.closed(last_entry, 10)) == bookies


def test_a_ledger_that_is_not_closed_counts_on_all() -> None:
    for metadata in (LEDGER, LEDGER.in_recovery(), replace(LEDGER, fragments=LEDGER.fragments[:1])):
        assert counted_on(metadata) == {bookie for each in metadata.fragments for bookie in each.ensemble}
