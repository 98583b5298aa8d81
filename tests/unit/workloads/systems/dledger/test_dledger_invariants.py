"""What contradicts what in a group of DLedger, as it happens: each rule broken by the fewest events, and kept by their
healthy twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.invariants import Breaches
from harness.watch import BOOTED, ENDED
from workloads.systems.dledger.invariants import INVARIANTS, DledgerInvariants
from workloads.systems.dledger.settings import DledgerSettings, Store

SECOND_NS = 1_000_000_000


class Group:
    """n1 leads in term 1; the logs of n1, n2 and n3 are empty."""

    def __init__(self, settings: DledgerSettings | None = None) -> None:
        self.now_ns = 0
        self.breaches = Breaches(lambda: self.now_ns, INVARIANTS)
        self.settings = settings or DledgerSettings()
        self.invariants = DledgerInvariants(self.settings, self.breaches)
        for node in self.settings.names:
            self.saw(node, BOOTED)
            self.saw(node, "recovered", end=0)
            self.saw(node, "term", term=0, vote=None)
            self.saw(node, "term", term=1, vote="n1")
        self.saw("n1", "leader", term=1)
        assert self.names() == []

    def saw(self, node: str, event: str, **fields: object) -> None:
        self.invariants.saw(node, event, fields)

    def observe(self, node: str, point: str, **values: int) -> None:
        self.invariants.observe(node, point, values)

    def writes(self, nodes: str, index: int, term: int = 1, mark: int = 0) -> None:
        for node in nodes.split():
            checksum = 1_000 * term + 10 * index + mark
            self.saw(node, "written", start=index, end=index + 1, checksum=checksum, term=term)

    def syncs(self, nodes: str) -> None:
        """The one entry that each has."""
        for node in nodes.split():
            self.observe(node, "about-to-persist-log", index=0)
            self.observe(node, "log-persisted", index=0)

    def commits(self, nodes: str, index: int, leads: int = 0) -> None:
        for node in nodes.split():
            self.observe(node, "committed", index=index, leads=leads)

    def acknowledges(self, index: int) -> None:
        """To the client whose append n1 wrote last."""
        self.observe("n1", "append-committed", index=index, serial=7)

    def ends(self, node: str, recovered: int) -> None:
        """And starts again, with so many entries."""
        self.saw(node, ENDED, how="power lost")
        self.saw(node, BOOTED)
        self.saw(node, "recovered", end=recovered)

    def names(self) -> list[str]:
        return [breach.name for breach in self.breaches.kept()]


Story = Callable[[Group], None]


def two_commit(mark: int) -> Story:
    def story(group: Group) -> None:
        group.writes("n1", 0)
        group.writes("n2", 0, mark=mark)
        group.commits("n1 n2", 0)

    return story


def cut_behind(committed: int) -> Story:
    def story(group: Group) -> None:
        group.writes("n1 n2", 0)
        group.writes("n1 n2", 1)
        group.commits("n1", committed)
        group.saw("n2", "truncated", to=1)

    return story


def believes(index: int) -> Story:
    def story(group: Group) -> None:
        group.writes("n2", 0)
        group.commits("n2", index)

    return story


def learns_anew(*, after_an_end: bool) -> Story:
    def story(group: Group) -> None:
        group.writes("n2", 0)
        group.writes("n2", 1)
        group.commits("n2", 1)
        if after_an_end:
            group.ends("n2", recovered=2)
        group.commits("n2", 0)

    return story


def committed_with(holders: str) -> Story:
    def story(group: Group) -> None:
        group.writes("n1", 0)
        group.writes(holders, 0)
        group.commits("n1", 0, leads=1)

    return story


def counts_one_of(term: int) -> Story:
    def story(group: Group) -> None:
        group.writes("n1 n2 n3", 0, term=term)
        group.commits("n1", 0, leads=1)

    return story


def replaced_then_acknowledged(term: int) -> Story:
    def story(group: Group) -> None:
        group.writes("n1 n2 n3", 0)
        group.observe("n1", "append-written", index=0, serial=7)
        group.saw("n1", "truncated", to=0)
        group.writes("n1", 0, term=term)
        group.acknowledges(0)

    return story


def commits_beside_a_laggard(laggard_term: int) -> Story:
    def story(group: Group) -> None:
        if laggard_term:
            group.writes("n3", 0, term=laggard_term)
        group.writes("n1 n2", 0)
        group.commits("n1", 0, leads=1)

    return story


def vouches_for(mark: int) -> Story:
    def story(group: Group) -> None:
        group.writes("n1", 0)
        group.writes("n2", 0, mark=mark)
        group.observe("n2", "push-acknowledged", index=0, term=1)

    return story


def takes_over_with(index: int) -> Story:
    def story(group: Group) -> None:
        group.observe("n2", "took-over", index=index, leaders=1)

    return story


def lost_what_was(*, synced: bool) -> Story:
    def story(group: Group) -> None:
        group.writes("n2", 0)
        if synced:
            group.syncs("n2")
        group.ends("n2", recovered=0)

    return story


def votes(*kept: tuple[int, str]) -> Story:
    def story(group: Group) -> None:
        for term, vote in kept:
            group.saw("n2", "vote_persisted", term=term, vote=vote)

    return story


def starts_again_in(term: int, vote: str | None) -> Story:
    def story(group: Group) -> None:
        group.saw("n2", "vote_persisted", term=2, vote="n1")
        group.ends("n2", recovered=0)
        group.saw("n2", "term", term=term, vote=vote)

    return story


BROKEN_AND_HEALTHY: dict[str, tuple[Story, Story]] = {
    "diverging-commits": (two_commit(mark=1), two_commit(mark=0)),
    "committed-cut": (cut_behind(committed=1), cut_behind(committed=0)),
    "beyond-log": (believes(1), believes(0)),
    "committed-back": (learns_anew(after_an_end=False), learns_anew(after_an_end=True)),
    "unheld-commit": (committed_with(""), committed_with("n3")),
    "old-term-counted": (counts_one_of(term=0), counts_one_of(term=1)),
    "wrong-ack": (replaced_then_acknowledged(term=2), replaced_then_acknowledged(term=1)),
    "electable-laggard": (commits_beside_a_laggard(2), commits_beside_a_laggard(0)),
    "unlike-leader": (vouches_for(mark=1), vouches_for(mark=0)),
    "hurried-transfer": (takes_over_with(0), takes_over_with(1)),
    "not-durable": (lost_what_was(synced=True), lost_what_was(synced=False)),
    "second-vote": (votes((1, "n1"), (1, "n3")), votes((1, "n1"), (2, "n3"))),
    "forgotten-vote": (starts_again_in(1, None), starts_again_in(2, "n1")),
}


def test_each_rule_has_its_two_stories() -> None:
    assert set(BROKEN_AND_HEALTHY) == set(INVARIANTS)


@pytest.mark.parametrize("name", INVARIANTS)
def test_a_rule_is_broken_by_the_fewest_events_and_kept_by_their_twin(name: str) -> None:
    broken, healthy = (Group(), Group())
    broken.now_ns = 7 * SECOND_NS
    BROKEN_AND_HEALTHY[name][0](broken)
    BROKEN_AND_HEALTHY[name][1](healthy)
    assert broken.names()[0] == name
    assert healthy.names() == []
    breach = broken.breaches.kept()[0]
    assert breach.time_ns == 7 * SECOND_NS and breach.nodes and breach.because


def test_the_vote_is_forgotten_as_well_where_the_term_is_not() -> None:
    group = Group()
    starts_again_in(2, None)(group)
    assert group.names() == ["forgotten-vote"]


def test_where_acknowledgements_are_durable_who_has_not_synced_does_not_count() -> None:
    unsynced, synced = Group(DledgerSettings(ack_durable=True)), Group(DledgerSettings(ack_durable=True))
    for group in (unsynced, synced):
        group.writes("n1 n2 n3", 0)
        group.syncs("n1" if group is unsynced else "n1 n2")
        group.commits("n1", 0, leads=1)
    assert unsynced.names() == ["unheld-commit"]
    assert synced.names() == []


@pytest.mark.parametrize("ack_durable", [False, True])
def test_what_a_disk_lost_counts_as_held_until_something_else_stands_there(ack_durable: bool) -> None:
    """What clients see of it is judged by the faults that struck; where acknowledgements are durable, what was not
    synced never counted."""
    lost, replaced = Group(DledgerSettings(ack_durable=ack_durable)), Group(DledgerSettings(ack_durable=ack_durable))
    for group in (lost, replaced):
        group.writes("n1 n2", 0)
        group.syncs("n1")
        group.ends("n2", recovered=0)
        if group is replaced:
            group.writes("n2", 0, mark=1)
        group.commits("n1", 0, leads=1)
    assert lost.names()[:1] == (["unheld-commit"] if ack_durable else [])
    assert replaced.names()[:1] == ["unheld-commit"]


def test_what_is_cut_while_it_is_synced_is_not_durable_afterwards() -> None:
    group = Group()
    group.writes("n2", 0)
    group.writes("n2", 1)
    group.observe("n2", "about-to-persist-log", index=1)
    group.saw("n2", "truncated", to=1)
    group.writes("n2", 1, term=2)
    group.observe("n2", "log-persisted", index=1)
    group.ends("n2", recovered=1)
    assert group.names() == []


def test_a_log_in_memory_is_gone_with_its_process() -> None:
    group = Group(DledgerSettings(store=Store.MEMORY))
    lost_what_was(synced=True)(group)
    assert group.names() == []


def test_a_log_that_begins_later_has_no_end_before_that() -> None:
    group = Group()
    group.saw("n2", "deleted", to=5)
    group.writes("n2", 5)
    group.commits("n2", 5)
    assert group.names() == []


def test_who_leads_no_more_is_no_measure() -> None:
    group = Group()
    group.writes("n1", 0)
    group.writes("n2", 0, mark=1)
    group.saw("n1", "candidate", term=1)
    group.observe("n2", "push-acknowledged", index=0, term=1)
    assert group.names() == []


def test_what_a_process_was_asked_for_ends_with_it() -> None:
    group = Group()
    group.writes("n1 n2", 0)
    group.writes("n1", 1)
    group.observe("n1", "append-written", index=1, serial=8)
    group.ends("n1", recovered=1)
    group.writes("n1", 1, term=2)
    group.observe("n1", "append-written", index=1, serial=8)
    group.writes("n2", 1, term=2)
    group.observe("n1", "append-committed", index=1, serial=8)
    assert group.names() == []
