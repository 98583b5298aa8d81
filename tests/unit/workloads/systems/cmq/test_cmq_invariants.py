"""What contradicts what in a group of CMQ, as it happens: each rule broken by the fewest events, and kept by their
healthy twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.invariants import Breaches
from harness.watch import ENDED
from workloads.systems.cmq.invariants import INVARIANTS, CmqInvariants
from workloads.systems.raft_invariants import RAFT_INVARIANTS

NODES = ("n1", "n2", "n3")


class Group:
    """The second of two groups: n1 leads it in term 1, and its logs are empty."""

    def __init__(self) -> None:
        self.breaches = Breaches(lambda: 0, INVARIANTS)
        self.invariants = CmqInvariants(2, NODES, 1_000, self.breaches)
        for node in NODES:
            self.starts(node)
        self.votes("n1", 1, "n2")
        assert self.names() == []

    def saw(self, node: str, event: str, **fields: object) -> None:
        self.invariants.saw(node, event, {"group": "g2", **fields})

    def observe(self, nodes: str, point: str, **values: int) -> None:
        for node in nodes.split():
            self.invariants.observe(node, point, {"group": 2, **values})

    def starts(self, node: str, end: int = 0, voters: str = "n1 n2 n3", since: int = 0) -> None:
        self.saw(node, "recovered", end=end)
        self.goes_by(node, since, voters)

    def ends(self, nodes: str, how: str = "power lost") -> None:
        for node in nodes.split():
            self.saw(node, ENDED, how=how)

    def goes_by(self, nodes: str, index: int, voters: str) -> None:
        for node in nodes.split():
            self.saw(node, "membership", index=index, voters=voters.split(), learners=[])

    def votes(self, candidate: str, term: int, voter: str, *, promised: bool = True, last: int = 0) -> None:
        """A candidate is elected by itself and another one."""
        if promised:
            self.saw(voter, "pre_vote", term=term, candidate=candidate)
        self.saw(candidate, "term", term=term, vote=candidate)
        self.saw(voter, "term", term=term, vote=candidate)
        self.saw(candidate, "voted_in", term=term, by=[candidate, voter], needed=2, last=[term - 1, last])
        self.saw(candidate, "leader", term=term, start=last)

    def writes(self, nodes: str, index: int, mark: int = 0) -> None:
        for node in nodes.split():
            self.saw(node, "written", start=index - 1, end=index, checksum=10 * index + mark)

    def syncs(self, nodes: str, durable: int) -> None:
        self.observe(nodes, "appended-before-answer", durable=durable)

    def has(self, nodes: str, index: int, mark: int = 0) -> None:
        """They write an entry, and sync it."""
        self.writes(nodes, index, mark)
        self.syncs(nodes, index)

    def cuts(self, node: str, to: int) -> None:
        self.saw(node, "truncated", to=to)

    def commits(self, nodes: str, index: int) -> None:
        for node in nodes.split():
            self.saw(node, "confirmed", offset=index, master_epoch=1)

    def applies_message(self, node: str, number: int, index: int) -> None:
        self.observe(node, "about-to-apply", index=index, term=1)
        self.observe(node, "applied-not-confirmed", queue=0, number=number, index=index)

    def confirms(self, node: str, number: int) -> None:
        self.observe(node, "about-to-confirm", queue=0, number=number)

    def acknowledges(self, node: str, number: int) -> None:
        self.observe(node, "ack-applied-not-answered", queue=0, number=number)

    def asks(self, node: str, serial: int) -> None:
        self.observe(node, "pull-taken-up", serial=serial)

    def gives_out(self, node: str, number: int, serial: int, at_ms: int = 0) -> None:
        self.observe(node, "gave-out", queue=0, number=number, serial=serial, at_ns=at_ms * 1_000_000)

    def names(self) -> list[str]:
        return [breach.name for breach in self.breaches.kept()]


Story = Callable[[Group], None]


def second_leader(term: int) -> Story:
    return lambda group: group.saw("n3", "leader", term=term, start=0)


def second_vote(term: int) -> Story:
    def story(group: Group) -> None:
        group.saw("n3", "term", term=2, vote="n1")
        group.saw("n3", "term", term=term, vote="n2")

    return story


def standing(promised: bool) -> Story:
    return lambda group: group.votes("n2", 2, "n3", promised=promised)


def standing_as_successor(asked: bool) -> Story:
    def story(group: Group) -> None:
        if asked:
            group.saw("n1", "hands_over", term=1, successor="n3")
        group.votes("n3", 2, "n2", promised=False)

    return story


def two_changes(committed: bool) -> Story:
    def story(group: Group) -> None:
        group.has("n1 n2", 1)
        group.goes_by("n1 n2", 1, "n1 n2")
        if committed:
            group.commits("n1", 1)
        group.writes("n1", 2)
        group.goes_by("n1", 2, "n1 n2 n4")

    return story


def removal(group: Group) -> None:
    """Of n3, of which n1 and n2 have the whole, and n3 nothing."""
    group.has("n1 n2", 1)
    group.goes_by("n1 n2", 1, "n1 n2")
    group.commits("n1 n2", 1)


def elected_by_the_removed(voter: str) -> Story:
    def story(group: Group) -> None:
        removal(group)
        group.votes("n2", 2, voter, last=1)

    return story


def started_again_after_a_snapshot(voters: str) -> Story:
    def story(group: Group) -> None:
        removal(group)
        group.saw("n2", "deleted", log="g2", to=1, forced=False)
        group.ends("n2", "killed")
        group.starts("n2", end=1, voters=voters, since=1)

    return story


def two_commit(mark: int) -> Story:
    def story(group: Group) -> None:
        group.has("n1 n2", 1)
        group.has("n3", 1, mark)
        group.commits("n1 n3", 1)

    return story


def cut_behind(to: int) -> Story:
    def story(group: Group) -> None:
        for index in (1, 2):
            group.has("n1 n2 n3", index)
        group.commits("n1", 1)
        group.cuts("n3", to)
        group.writes("n3", to + 1, mark=1)

    return story


def cut_and_written(mark: int) -> Story:
    def story(group: Group) -> None:
        group.has("n3", 1)
        group.has("n3", 2)
        group.cuts("n3", 0)
        group.writes("n3", 1, mark)

    return story


def cut_that_a_loss_of_power_undid(power: str) -> Story:
    """What stands at 1 after it may be the entry that was cut."""

    def story(group: Group) -> None:
        group.writes("n3", 1)
        group.cuts("n3", 0)
        group.writes("n3", 1, mark=1)
        group.ends("n3", power)
        group.starts("n3", end=1)
        group.cuts("n3", 0)
        group.writes("n3", 1, mark=1)

    return story


def taken_for_committed(index: int) -> Story:
    def story(group: Group) -> None:
        group.has("n1 n2 n3", 1)
        group.commits("n3", index)

    return story


def committed_twice(second: int) -> Story:
    def story(group: Group) -> None:
        for index in (1, 2):
            group.has("n1 n2 n3", index)
        group.commits("n3", 2)
        group.commits("n3", second)

    return story


def committed_by(holders: str) -> Story:
    def story(group: Group) -> None:
        group.writes("n1 n2 n3", 1)
        group.syncs(holders, 1)
        group.commits("n1", 1)

    return story


def committed_after_the_removal(holders: str) -> Story:
    """Two vote; n3 does not count any more."""

    def story(group: Group) -> None:
        removal(group)
        group.writes("n1 n2 n3", 2)
        group.syncs(holders, 2)
        group.commits("n1", 2)

    return story


def applied(index: int) -> Story:
    def story(group: Group) -> None:
        group.has("n1 n2", 1)
        group.commits("n1", 1)
        group.observe("n2", "about-to-apply", index=index, term=1)

    return story


def started_again(end: int) -> Story:
    def story(group: Group) -> None:
        for index in (1, 2):
            group.has("n2", index)
        group.writes("n2", 3)
        group.ends("n2")
        group.starts("n2", end=end)

    return story


def emptied(removed: bool) -> Story:
    def story(group: Group) -> None:
        group.has("n1 n2 n3", 1)
        if removed:
            group.has("n1 n2", 2)
            group.goes_by("n1 n2", 2, "n1 n2")
            group.commits("n1", 2)
        group.ends("n3", "killed")
        group.starts("n3", end=0)

    return story


def confirmed(applied: bool) -> Story:
    def story(group: Group) -> None:
        group.has("n1 n2", 1)
        group.commits("n1", 1)
        if applied:
            group.applies_message("n1", 0, 1)
        group.confirms("n1", 0)

    return story


def confirmed_behind_a_snapshot(lost: bool) -> Story:
    """The leader has its entry no more; n2 has it, or lost it."""

    def story(group: Group) -> None:
        group.has("n1 n2", 1)
        group.commits("n1", 1)
        group.applies_message("n1", 0, 1)
        group.saw("n1", "deleted", log="g2", to=1, forced=False)
        if lost:
            group.saw("n2", "recovered", end=0)
        group.confirms("n1", 0)

    return story


def states(event: str, digest: int) -> Story:
    def story(group: Group) -> None:
        group.saw("n1", "state", index=50, digest=7)
        group.saw("n2", event, index=50, digest=digest)

    return story


def given_out(acknowledged: int) -> Story:
    def story(group: Group) -> None:
        group.acknowledges("n2", acknowledged)
        group.asks("n1", 5)
        group.gives_out("n1", 3, 5)

    return story


def asked_before_the_acknowledgement(serial: int) -> Story:
    def story(group: Group) -> None:
        group.asks("n1", 5)
        group.acknowledges("n2", 3)
        group.asks("n1", 6)
        group.gives_out("n1", 3, serial)

    return story


def given_twice(after_ms: int) -> Story:
    def story(group: Group) -> None:
        group.gives_out("n1", 3, 1, at_ms=500)
        group.gives_out("n1", 3, 2, at_ms=500 + after_ms)

    return story


def given_by_one_of_two_leaders(asked_first: bool) -> Story:
    """n1 is asked before n2 leads on after it, or behind that, and does not know of it."""

    def story(group: Group) -> None:
        if asked_first:
            group.asks("n1", 1)
        group.votes("n2", 2, "n3")
        group.observe("n2", "noop-committed")
        if not asked_first:
            group.asks("n1", 1)
        group.gives_out("n1", 3, 1)

    return story


def given_by_a_node_that_led_before(again: bool) -> Story:
    def story(group: Group) -> None:
        group.gives_out("n1", 3, 1, at_ms=500)
        if not again:
            group.saw("n1", "follower", term=2)
        group.gives_out("n1", 3, 2, at_ms=600)

    return story


STORIES: tuple[tuple[str, Story, Story], ...] = (
    ("two-leaders", second_leader(1), second_leader(2)),
    ("second-vote", second_vote(2), second_vote(3)),
    ("unasked-term", standing(promised=False), standing(promised=True)),
    ("unasked-term", standing_as_successor(asked=False), standing_as_successor(asked=True)),
    ("overlapping-changes", two_changes(committed=False), two_changes(committed=True)),
    ("foreign-votes", elected_by_the_removed("n3"), elected_by_the_removed("n1")),
    ("forgotten-members", started_again_after_a_snapshot("n1 n2 n3"), started_again_after_a_snapshot("n1 n2")),
    ("diverging-commits", two_commit(1), two_commit(0)),
    ("committed-cut", cut_behind(0), cut_behind(1)),
    ("needless-cut", cut_and_written(0), cut_and_written(1)),
    ("needless-cut", cut_that_a_loss_of_power_undid("killed"), cut_that_a_loss_of_power_undid("power lost")),
    ("beyond-log", taken_for_committed(2), taken_for_committed(1)),
    ("committed-back", committed_twice(1), committed_twice(2)),
    ("unheld-commit", committed_by("n1"), committed_by("n1 n3")),
    ("unheld-commit", committed_after_the_removal("n1 n3"), committed_after_the_removal("n1 n2")),
    ("early-apply", applied(2), applied(1)),
    ("not-durable", started_again(1), started_again(2)),
    ("not-durable", emptied(removed=False), emptied(removed=True)),
    ("early-confirm", confirmed(applied=False), confirmed(applied=True)),
    ("unheld-message", confirmed_behind_a_snapshot(lost=True), confirmed_behind_a_snapshot(lost=False)),
    ("diverging-states", states("state", 8), states("state", 7)),
    ("diverging-states", states("restored", 8), states("restored", 7)),
    ("torn-snapshot", states("snapshot", 8), states("snapshot", 7)),
    ("given-again", given_out(3), given_out(4)),
    ("given-again", asked_before_the_acknowledgement(6), asked_before_the_acknowledgement(5)),
    ("deposed-leader", given_by_one_of_two_leaders(asked_first=False), given_by_one_of_two_leaders(asked_first=True)),
    ("given-while-held", given_twice(999), given_twice(1_000)),
    ("given-while-held", given_by_a_node_that_led_before(again=True), given_by_a_node_that_led_before(again=False)),
)


@pytest.mark.parametrize(
    ("name", "broken", "kept"), STORIES, ids=[f"{name}-{place}" for place, (name, _, _) in enumerate(STORIES)]
)
def test_a_rule_is_broken_by_what_contradicts_it_and_by_nothing_else(name: str, broken: Story, kept: Story) -> None:
    healthy, group = Group(), Group()
    kept(healthy)
    assert healthy.names() == []
    broken(group)
    assert name in group.names()


def test_each_rule_has_a_story() -> None:
    assert {name for name, _, _ in STORIES} == {*INVARIANTS}
    assert {*RAFT_INVARIANTS} < {*INVARIANTS}


def test_groups_are_held_apart() -> None:
    group = Group()
    group.invariants.saw("n2", "leader", {"group": "g1", "term": 1, "start": 0})
    group.invariants.saw("n3", "state", {"group": "g1", "index": 50, "digest": 7})
    group.saw("n3", "state", index=50, digest=8)
    assert group.names() == []


def test_what_a_node_cut_off_has_changed_alone_is_not_taken_for_agreed() -> None:
    """A change that an old leader appended lies at an index at which others have committed another entry."""
    group = Group()
    group.has("n1 n2 n3", 1)
    group.commits("n1", 1)
    group.votes("n2", 2, "n3", last=1)
    for index in (2, 3):
        group.has("n2 n3", index)
    group.commits("n2 n3", 3)
    group.writes("n1", 2, mark=1)
    group.goes_by("n1", 2, "n1 n3")
    group.cuts("n1", 1)
    group.writes("n1", 2)
    group.goes_by("n1", 0, "n1 n2 n3")
    assert group.names() == []


def test_a_leaders_snapshot_that_takes_the_place_of_a_log_cuts_nothing_that_was_committed() -> None:
    group = Group()
    for index in (1, 2, 3):
        group.has("n1 n2", index)
    group.has("n3", 1)
    group.writes("n3", 2, mark=1)
    group.commits("n1 n2", 3)
    group.cuts("n3", 0)
    group.saw("n3", "deleted", log="g2", to=3, forced=False)
    group.commits("n3", 3)
    group.ends("n3")
    group.starts("n3", end=1)
    assert group.names() == []
