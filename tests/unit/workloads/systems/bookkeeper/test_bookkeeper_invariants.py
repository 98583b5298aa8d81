"""What contradicts what in BookKeeper, as it happens: each rule broken by the fewest events, and kept by its twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.invariants import Breaches
from harness.watch import ENDED
from workloads.systems.bookkeeper.invariants import INVARIANTS, BookkeeperInvariants
from workloads.systems.bookkeeper.settings import BookkeeperSettings


class Cluster:
    """Bookies b1 to b3 with the identities i1 to i3; p1 writes ledger 7, of which Qa is 2."""

    def __init__(self) -> None:
        self.breaches = Breaches(lambda: 0, INVARIANTS)
        self.invariants = BookkeeperInvariants(BookkeeperSettings(), self.breaches)
        for number in (1, 2, 3):
            self.is_now(f"b{number}", f"i{number}")

    def is_now(self, node: str, identity: str) -> None:
        self.invariants.saw(node, ENDED, {"how": "killed"})
        self.invariants.saw(node, "bookie", {"bookie": identity, "fresh": True})

    def writes(self, nodes: str, entry: int, *, mark: int = 0, recovers: bool = False) -> None:
        fields = {"log": "ledger-7", "start": entry, "end": entry + 1, "checksum": 10 * entry + mark}
        for node in nodes.split():
            self.invariants.saw(node, "written", {**fields, "is_recovery": recovers})

    def confirms(self, node: str, lac: int) -> None:
        self.invariants.saw(node, "confirmed", {"log": "ledger-7", "offset": lac + 1, "master_epoch": 0})

    def acknowledges(self, entry: int, node: str = "p1") -> None:
        self.invariants.saw(node, "entry_acknowledged", {"ledger": 7, "entry": entry})

    def closes(self, node: str, last: int) -> None:
        self.invariants.saw(node, "ledger_closed", {"ledger": 7, "last": last})

    def fences(self, node: str) -> None:
        self.invariants.saw(node, "fenced", {"ledger": 7})

    def applies(self, node: str, index: int, version: int) -> None:
        self.invariants.observe(node, "metadata-changed", {"index": index, "version": version})

    def names(self) -> list[str]:
        return [breach.name for breach in self.breaches.kept()]


def writes_and_closes(cluster: Cluster) -> None:
    cluster.writes("b1 b2 b3", 0)
    cluster.acknowledges(0)
    cluster.confirms("b1", 0)
    cluster.writes("b1 b2", 1)


def ends_twice(cluster: Cluster) -> None:
    cluster.closes("p1", 0)
    cluster.closes("p2", 1)


def ends_alike(cluster: Cluster) -> None:
    cluster.closes("p1", 0)
    cluster.closes("p2", 0)


def is_late_and_beyond(cluster: Cluster) -> None:
    cluster.closes("p2", 0)
    cluster.acknowledges(1)


def is_closed_too_early(cluster: Cluster) -> None:
    cluster.acknowledges(1)
    cluster.closes("p2", 0)


def is_late_and_within(cluster: Cluster) -> None:
    """Of a paused owner, which hears of the answers after another one has closed the ledger."""
    cluster.closes("p2", 1)
    cluster.acknowledges(1)


def counts_one(cluster: Cluster) -> None:
    cluster.writes("b1", 2)
    cluster.acknowledges(2)


def counts_one_twice(cluster: Cluster) -> None:
    """A bookie that is another one by now has it no more than before."""
    cluster.writes("b1 b1", 2)
    cluster.acknowledges(2)


def counts_who_was_wiped_later(cluster: Cluster) -> None:
    cluster.writes("b1 b2", 2)
    cluster.is_now("b1", "i4")
    cluster.acknowledges(2)


def confirms_what_was_pushed(cluster: Cluster) -> None:
    cluster.confirms("b2", 1)


def confirms_what_was_closed(cluster: Cluster) -> None:
    cluster.closes("p2", 1)
    cluster.confirms("b2", 1)


def takes_an_add_after_its_fence(cluster: Cluster) -> None:
    cluster.fences("b3")
    cluster.is_now("b3", "i3")
    cluster.writes("b3", 1)


def takes_an_add_of_recovery(cluster: Cluster) -> None:
    cluster.fences("b3")
    cluster.writes("b3", 1, recovers=True)


def another_takes_an_add(cluster: Cluster) -> None:
    cluster.fences("b3")
    cluster.is_now("b3", "i4")
    cluster.writes("b3", 1)


def holds_another_entry(cluster: Cluster) -> None:
    cluster.writes("b3", 1, mark=1)


def metadata_differ(cluster: Cluster) -> None:
    cluster.applies("m1", 5, 3)
    cluster.applies("m2", 5, 4)


def metadata_agree(cluster: Cluster) -> None:
    cluster.applies("m1", 5, 3)
    cluster.applies("m2", 6, 4)
    cluster.applies("m2", 5, 3)


@pytest.mark.parametrize(
    ("story", "names"),
    [
        (ends_twice, ["two-ends"]),
        (ends_alike, []),
        (is_late_and_beyond, ["beyond-end"]),
        (is_closed_too_early, ["beyond-end"]),
        (is_late_and_within, []),
        (counts_one, ["unheld-ack"]),
        (counts_one_twice, ["unheld-ack"]),
        (counts_who_was_wiped_later, []),
        (confirms_what_was_pushed, ["early-lac"]),
        (confirms_what_was_closed, []),
        (takes_an_add_after_its_fence, ["fenced-add"]),
        (takes_an_add_of_recovery, []),
        (another_takes_an_add, []),
        (holds_another_entry, ["different-copies"]),
        (metadata_differ, ["diverging-metadata"]),
        (metadata_agree, []),
    ],
)
def test_what_is_broken_is_said_and_nothing_else(story: Callable[[Cluster], None], names: list[str]) -> None:
    cluster = Cluster()
    writes_and_closes(cluster)
    story(cluster)
    assert cluster.names() == names


def test_every_invariant_is_broken_by_some_story() -> None:
    stories = (
        *(ends_twice, is_late_and_beyond, counts_one, confirms_what_was_pushed),
        *(takes_an_add_after_its_fence, holds_another_entry, metadata_differ),
    )
    found = set()
    for story in stories:
        cluster = Cluster()
        writes_and_closes(cluster)
        story(cluster)
        found |= set(cluster.names())
    assert found == set(INVARIANTS)
