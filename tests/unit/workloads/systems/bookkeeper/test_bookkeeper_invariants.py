"""What contradicts what in BookKeeper, as it happens: each rule broken by the fewest events, and kept by its twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.invariants import Breaches
from harness.watch import ENDED
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerState,
    Quorums,
    encode_metadata,
    key_of,
)
from system_under_test.metadata.store import put
from workloads.systems.bookkeeper.invariants import INVARIANTS, BookkeeperInvariants
from workloads.systems.bookkeeper.settings import BookkeeperSettings


class Cluster:
    """Bookies b1 to b4 with the identities i1 to i4; p1 writes ledger 7 on the first three, of which Qa is 2."""

    def __init__(self, settings: BookkeeperSettings | None = None) -> None:
        self.breaches = Breaches(lambda: 0, INVARIANTS)
        self.invariants = BookkeeperInvariants(settings or BookkeeperSettings(), self.breaches)
        self.version = 0
        self.metadata = LedgerMetadata(
            ledger=7, quorums=Quorums(ensemble=3, write=3, ack=2), fragments=(Fragment(0, ("i1", "i2", "i3"), 0),)
        )
        for number in (1, 2, 3, 4):
            self.is_now(f"b{number}", f"i{number}")
        self.publishes(self.metadata)

    def is_now(self, node: str, identity: str, *, fresh: bool = True) -> None:
        self.invariants.saw(node, ENDED, {"how": "killed"})
        self.invariants.saw(node, "bookie", {"bookie": identity, "fresh": fresh})

    def publishes(self, metadata: LedgerMetadata, node: str = "m1") -> None:
        self.metadata = metadata
        self.version += 1
        command = put(key_of(7), encode_metadata(metadata), 0).decode()
        self.invariants.saw(node, "metadata_changed", {"version": self.version, "command": command})

    def recovery_reads(self, entry: int, **replies: Reply) -> None:
        for bookie, reply in replies.items():
            fields = {"ledger": 7, "entry": entry, "bookie": bookie, "reply": reply.value}
            self.invariants.saw("p2", "recovery_read", fields)

    def recovery_ends(self, last: int) -> None:
        self.invariants.saw("p2", "recovery_ends", {"ledger": 7, "last": last})

    def writes(self, nodes: str, entry: int, *, mark: int = 0, recovers: bool = False) -> None:
        fields = {"log": "ledger-7", "start": entry, "end": entry + 1, "checksum": 10 * entry + mark}
        for node in nodes.split():
            self.invariants.saw(node, "written", {**fields, "is_recovery": recovers})

    def confirms(self, node: str, lac: int) -> None:
        self.invariants.saw(node, "confirmed", {"log": "ledger-7", "offset": lac + 1, "master_epoch": 0})

    def acknowledges(self, entry: int, node: str = "p1") -> None:
        self.invariants.saw(node, "entry_acknowledged", {"ledger": 7, "entry": entry})

    def closes(self, node: str, last: int) -> None:
        self.invariants.saw(node, "closed", {"log": "ledger-7", "end": last + 1})

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
    cluster.is_now("b1", "i5")
    cluster.acknowledges(2)


def confirms_what_was_pushed(cluster: Cluster) -> None:
    cluster.confirms("b2", 1)


def confirms_what_was_closed(cluster: Cluster) -> None:
    cluster.closes("p2", 1)
    cluster.confirms("b2", 1)


def takes_an_add_after_its_fence(cluster: Cluster) -> None:
    cluster.fences("b3")
    cluster.is_now("b3", "i3", fresh=False)
    cluster.writes("b3", 1)


def takes_an_add_of_recovery(cluster: Cluster) -> None:
    cluster.fences("b3")
    cluster.writes("b3", 1, recovers=True)


def another_takes_an_add(cluster: Cluster) -> None:
    cluster.fences("b3")
    cluster.is_now("b3", "i5")
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


def counts_one_that_is_not_asked(cluster: Cluster) -> None:
    """Two bookies have the entry, and readers look at one of them."""
    cluster.writes("b1 b4", 2)
    cluster.acknowledges(2)


def counts_one_that_took_a_place(cluster: Cluster) -> None:
    cluster.publishes(cluster.metadata.with_ensemble(Fragment(2, ("i1", "i4", "i3"), 0)))
    cluster.writes("b1 b4", 2)
    cluster.acknowledges(2)


def moves_what_was_acknowledged(cluster: Cluster) -> None:
    cluster.acknowledges(1)
    cluster.publishes(cluster.metadata.with_ensemble(Fragment(1, ("i1", "i4", "i3"), 0)))


def moves_what_was_copied_before(cluster: Cluster) -> None:
    cluster.acknowledges(1)
    cluster.writes("b4", 1)
    cluster.publishes(cluster.metadata.with_ensemble(Fragment(1, ("i1", "i4", "i3"), 0)))


def opens_what_was_recovered(cluster: Cluster) -> None:
    cluster.publishes(cluster.metadata.in_recovery())
    cluster.publishes(replace(cluster.metadata, state=LedgerState.OPEN))


def hears_of_it_from_another_node(cluster: Cluster) -> None:
    """Which is behind, and applies what others have applied long ago."""
    before = cluster.metadata
    cluster.publishes(before.in_recovery())
    cluster.version = 0
    cluster.publishes(before, "m2")


def is_closed_with_another_end(cluster: Cluster) -> None:
    """Of whom nobody hears by itself what it wrote."""
    cluster.publishes(cluster.metadata.closed(1, 0))
    cluster.publishes(cluster.metadata.closed(0, 0))


def recovers(cluster: Cluster) -> None:
    for node in ("b1", "b2", "b3"):
        cluster.fences(node)
    cluster.publishes(cluster.metadata.in_recovery())


def ends_behind_one_no(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.recovery_reads(2, i1=Reply.NO_SUCH_ENTRY, i2=Reply.CORRUPT, i3=Reply.SILENT)
    cluster.recovery_ends(1)
    cluster.publishes(cluster.metadata.closed(1, 0))


def ends_behind_two_noes(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.recovery_reads(2, i1=Reply.NO_SUCH_LEDGER, i2=Reply.CORRUPT, i3=Reply.NO_SUCH_ENTRY)
    cluster.recovery_ends(1)
    cluster.publishes(cluster.metadata.closed(1, 0))


def ends_where_others_lost_it(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.recovery_reads(2, i1=Reply.NO_SUCH_ENTRY, i2=Reply.GONE, i3=Reply.UNKNOWN)
    cluster.recovery_ends(1)
    cluster.publishes(cluster.metadata.closed(1, 0))


def ends_behind_a_no_that_comes_too_late(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.recovery_reads(2, i1=Reply.NO_SUCH_ENTRY)
    cluster.recovery_ends(1)
    cluster.recovery_reads(2, i2=Reply.NO_SUCH_ENTRY)
    cluster.publishes(cluster.metadata.closed(1, 0))


def comes_back_without_its_fence(cluster: Cluster) -> None:
    cluster.fences("b1")
    cluster.is_now("b1", "i1", fresh=False)
    cluster.invariants.saw("b1", "remembers", {"fences": [6, 8], "ends": []})


def comes_back_with_its_fence(cluster: Cluster) -> None:
    cluster.fences("b1")
    cluster.is_now("b1", "i1", fresh=False)
    cluster.invariants.saw("b1", "remembers", {"fences": [6, 7], "ends": []})


def refuses_what_a_bookie_has(cluster: Cluster) -> None:
    cluster.invariants.saw("p1", "entry_refused", {"ledger": 7, "entry": 1})


def refuses_what_no_bookie_has(cluster: Cluster) -> None:
    cluster.invariants.saw("p1", "entry_refused", {"ledger": 7, "entry": 2})


def names_a_bookie_without_a_copy(cluster: Cluster) -> None:
    cluster.writes("b3", 1)
    cluster.publishes(cluster.metadata.closed(1, 0))
    cluster.writes("b4", 0, recovers=True)
    cluster.publishes(replace(cluster.metadata, fragments=(Fragment(0, ("i4", "i2", "i3"), 0),)))


def names_a_bookie_without_what_nobody_has(cluster: Cluster) -> None:
    cluster.invariants.saw("b4", "entry_lost", {"ledger": 7, "entry": 1})
    names_a_bookie_without_a_copy(cluster)


def forgets_an_unsynced_entry(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.recovery_reads(1, i1=Reply.NO_SUCH_ENTRY)


def says_no_while_recovery_writes_it_again(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.writes("b3", 1, recovers=True)
    cluster.recovery_reads(1, i3=Reply.NO_SUCH_ENTRY)


def comes_back_with_less(cluster: Cluster, *, limbo: tuple[int, ...] = (), end: int = 1) -> None:
    cluster.is_now("b1", "i1", fresh=False)
    cluster.invariants.saw("b1", "limbo", {"ledgers": limbo})
    cluster.invariants.saw("b1", "remembers", {"fences": [], "ends": [(7, end)]})


def comes_back_with_less_and_says_so(cluster: Cluster) -> None:
    comes_back_with_less(cluster, limbo=(7,))


def comes_back_with_all(cluster: Cluster) -> None:
    comes_back_with_less(cluster, end=2)


def comes_back_with_less_when_all_is_over(cluster: Cluster) -> None:
    cluster.publishes(cluster.metadata.closed(1, 0))
    comes_back_with_less(cluster)


def comes_back_with_less_and_is_not_needed(cluster: Cluster) -> None:
    cluster.writes("b4", 0)
    cluster.writes("b4", 1)
    cluster.publishes(replace(cluster.metadata, fragments=(Fragment(0, ("i4", "i2", "i3"), 0),)))
    comes_back_with_less(cluster)


def does_not_know(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.recovery_reads(1, i1=Reply.UNKNOWN)


def says_no_of_a_closed_ledger(cluster: Cluster) -> None:
    recovers(cluster)
    cluster.publishes(cluster.metadata.closed(1, 0))
    cluster.recovery_reads(1, i1=Reply.NO_SUCH_ENTRY)


def says_no_without_a_fence(cluster: Cluster) -> None:
    cluster.fences("b2")
    cluster.recovery_reads(2, i1=Reply.NO_SUCH_ENTRY, i2=Reply.NO_SUCH_ENTRY)


def fails_without_a_fence(cluster: Cluster) -> None:
    cluster.recovery_reads(2, i1=Reply.CORRUPT, i2=Reply.OK)


def reads_what_was_settled(cluster: Cluster) -> None:
    cluster.publishes(cluster.metadata.with_ensemble(Fragment(1, ("i1", "i2", "i4"), 0)))
    cluster.publishes(cluster.metadata.in_recovery())
    cluster.recovery_reads(0, i1=Reply.OK)


def reads_from_the_last_ensemble_on(cluster: Cluster) -> None:
    cluster.publishes(cluster.metadata.with_ensemble(Fragment(1, ("i1", "i2", "i4"), 0)))
    cluster.publishes(cluster.metadata.in_recovery())
    cluster.recovery_reads(1, i1=Reply.OK)


def is_born_again(cluster: Cluster) -> None:
    cluster.is_now("b2", "i2")


def comes_back(cluster: Cluster) -> None:
    cluster.is_now("b2", "i2", fresh=False)


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
        (counts_one_that_is_not_asked, ["unheld-ack"]),
        (counts_one_that_took_a_place, []),
        (moves_what_was_acknowledged, ["unheld-entry"]),
        (moves_what_was_copied_before, []),
        (opens_what_was_recovered, ["reopened"]),
        (hears_of_it_from_another_node, []),
        (is_closed_with_another_end, ["two-ends"]),
        (ends_behind_one_no, ["unproven-end"]),
        (ends_behind_two_noes, []),
        (ends_where_others_lost_it, []),
        (ends_behind_a_no_that_comes_too_late, ["unproven-end"]),
        (names_a_bookie_without_a_copy, ["uncopied-replacement"]),
        (names_a_bookie_without_what_nobody_has, []),
        (forgets_an_unsynced_entry, []),
        (comes_back_without_its_fence, ["forgotten-fence"]),
        (comes_back_with_its_fence, []),
        (refuses_what_a_bookie_has, ["refused-entry"]),
        (refuses_what_no_bookie_has, []),
        (says_no_without_a_fence, ["unfenced-no"]),
        (fails_without_a_fence, []),
        (reads_what_was_settled, ["settled-read"]),
        (reads_from_the_last_ensemble_on, []),
        (is_born_again, ["reborn"]),
        (comes_back, []),
        (metadata_differ, ["diverging-metadata"]),
        (metadata_agree, []),
    ],
)
def test_what_is_broken_is_said_and_nothing_else(story: Callable[[Cluster], None], names: list[str]) -> None:
    cluster = Cluster()
    writes_and_closes(cluster)
    story(cluster)
    assert cluster.names() == names


@pytest.mark.parametrize(
    ("story", "names"),
    [
        (forgets_an_unsynced_entry, ["forgotten-entry"]),
        (comes_back_with_less, ["forgotten-entry"]),
        (comes_back_with_less_and_says_so, []),
        (comes_back_with_all, []),
        (comes_back_with_less_when_all_is_over, []),
        (comes_back_with_less_and_is_not_needed, []),
        (does_not_know, []),
        (says_no_of_a_closed_ledger, []),
        (says_no_while_recovery_writes_it_again, []),
    ],
)
def test_an_unsynced_bookie_may_not_forget_for_certain(story: Callable[[Cluster], None], names: list[str]) -> None:
    cluster = Cluster(BookkeeperSettings(journal_sync=False))
    writes_and_closes(cluster)
    story(cluster)
    assert cluster.names() == names


def test_every_invariant_is_broken_by_some_story() -> None:
    stories = (
        *(ends_twice, is_late_and_beyond, counts_one, confirms_what_was_pushed),
        *(takes_an_add_after_its_fence, holds_another_entry, metadata_differ, moves_what_was_acknowledged),
        *(opens_what_was_recovered, ends_behind_one_no, says_no_without_a_fence, reads_what_was_settled, is_born_again),
        *(names_a_bookie_without_a_copy, forgets_an_unsynced_entry),
        *(comes_back_without_its_fence, refuses_what_a_bookie_has),
    )
    found = set()
    for story in stories:
        cluster = Cluster(BookkeeperSettings(journal_sync=story is not forgets_an_unsynced_entry))
        writes_and_closes(cluster)
        story(cluster)
        found |= set(cluster.names())
    assert found == set(INVARIANTS)
