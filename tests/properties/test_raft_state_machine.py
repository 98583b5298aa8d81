"""Raft's core as a state machine that Hypothesis drives: whatever is lost, doubled, late or forgotten in a crash, no
promise of the paper's figure 3 is broken. It looks for short runs, beside the long random ones of
`test_raft_properties.py`, and finds planted mistakes.
"""

from __future__ import annotations

import random
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from system_under_test.raft.core import Role
from system_under_test.raft.event import Tick
from system_under_test.raft.message import VoteRequest
from system_under_test.raft.snapshot import Snapshot
from tests.references.raft_network import MILLISECOND, Broken, ForgetfulNode, Network, Node, SmallChunks, of

NODES = st.integers(0, 4)
SOME = st.sets(NODES, min_size=1, max_size=3)
ALL, OTHERS, NOBODY = "all", "all but the one that speaks", "nobody"
SYNCS = st.sampled_from((ALL, ALL, ALL, OTHERS, NOBODY))
"""Whose disks have what they were given before the next word is spoken."""
PLACES = st.integers(0, 1 << 16)
ONE, TWO = "it is delivered", "it is delivered and stays under way"


class RaftMachine(RuleBasedStateMachine):
    """Nodes are named by number, messages by their place on the wire, both modulo how many there are.

    Who is not among those a rule names hears nothing of it: its messages stay under way, and may come at any time.
    """

    kind: ClassVar[type[Node]] = Node

    @initialize(draw=st.randoms(use_true_random=False), size=st.sampled_from((3, 3, 5)), has_leader=st.booleans())
    def begin(self, draw: random.Random, size: int, has_leader: bool) -> None:
        self.network = Network(draw, size, self.kind)
        self.names = list(self.network.nodes)
        if has_leader:
            self.stands_for_election(0, set(range(size)), ALL)
            self.works(0, set(range(size)), ALL)

    def node(self, number: int) -> Node:
        """Running: whoever had crashed boots first."""
        node = self.network.nodes[self.names[number % len(self.names)]]
        if node.raft is None:
            node.boot(self.network.now_ns, 1000 * MILLISECOND)
        return node

    def talk(self, node: Node, others: set[int], *, rounds: int, syncs: str) -> None:
        """What this node and those others have to say to each other arrives, round by round."""
        names = {self.node(number).name for number in others} - {node.name}
        for _ in range(rounds):
            for way in ({node.name}, names):
                for message in [m for m in self.network.wire if m.sender in way and m.recipient in {node.name} | names]:
                    self.network.deliver(self.network.wire.index(message))
                for name in sorted(names | ({node.name} if syncs == ALL else set())) if syncs != NOBODY else ():
                    self.network.sync(self.network.nodes[name])

    @rule(number=NODES, voters=SOME, syncs=SYNCS)
    def stands_for_election(self, number: int, voters: set[int], syncs: str) -> None:
        """Its timer runs out, and it talks with those voters until it is elected or not."""
        node = self.node(number)
        self.network.now_ns += 2001 * MILLISECOND
        self.network.step(node, Tick(1000 * MILLISECOND))
        self.talk(node, voters, rounds=2, syncs=syncs)

    @rule(number=NODES, followers=SOME, syncs=SYNCS)
    def works(self, number: int, followers: set[int], syncs: str) -> None:
        """One of those who lead takes a proposal, and tells those followers; where nobody leads, one stands for it."""
        node = self.leader(number)
        if node is None:
            self.stands_for_election(number, followers, syncs)
        else:
            self.network.propose(node)
            self.talk(node, followers, rounds=2, syncs=syncs)

    @rule(number=NODES, followers=SOME, syncs=SYNCS)
    def reads(self, number: int, followers: set[int], syncs: str) -> None:
        node = self.leader(number) or self.node(number)
        self.network.read(node)
        self.talk(node, followers, rounds=1, syncs=syncs)

    def leader(self, number: int) -> Node | None:
        leaders = [node for node in self.network.nodes.values() if node.raft and node.raft.role is Role.LEADER]
        return leaders[number % len(leaders)] if leaders else None

    @precondition(lambda self: self.network.wire)
    @rule(place=PLACES, fate=st.sampled_from((ONE, TWO, "it is lost")))
    def a_message(self, place: int, fate: str) -> None:
        place %= len(self.network.wire)
        if fate == TWO:
            self.network.wire.append(self.network.wire[place])
        if fate in (ONE, TWO):
            self.network.deliver(place)
        else:
            self.network.wire.pop(place)

    @rule(syncs=SYNCS)
    def all_arrive(self, syncs: str) -> None:
        waiting, self.network.wire = self.network.wire, []
        for message in waiting:
            self.network.wire.append(message)
            self.network.deliver(len(self.network.wire) - 1)
        if syncs == ALL:
            for node in self.network.nodes.values():
                self.network.sync(node)

    @rule()
    def all_are_lost(self) -> None:
        self.network.wire.clear()

    @rule(number=NODES)
    def syncs(self, number: int) -> None:
        self.network.sync(self.node(number))

    @rule(number=NODES)
    def compacts(self, number: int) -> None:
        self.network.compact(self.node(number))

    @rule(number=NODES, followers=SOME, late=NODES, syncs=SYNCS)
    def leaves_behind(self, number: int, followers: set[int], late: int, syncs: str) -> None:
        """One of those who lead works with some, takes a snapshot, and then talks with another for as long as that one
        needs to get it."""
        self.works(number, followers, syncs)
        node = self.leader(number)
        if node is not None:
            self.network.compact(node)
            self.network.now_ns += 100 * MILLISECOND
            self.network.step(node, Tick(1000 * MILLISECOND))
            self.talk(node, {late}, rounds=7, syncs=syncs)

    @rule(number=NODES, place=PLACES, followers=SOME, syncs=SYNCS)
    def changes_members(self, number: int, place: int, followers: set[int], syncs: str) -> None:
        """One of those who lead adds, promotes or removes one, maybe itself, and tells some."""
        node = self.leader(number)
        changes = [] if node is None else self.network.fit_changes(node)
        if node is not None and changes:
            self.network.change(node, changes[place % len(changes)])
            self.talk(node, followers, rounds=2, syncs=syncs)

    @rule(number=NODES, to=NODES, followers=SOME, syncs=SYNCS)
    def hands_over(self, number: int, to: int, followers: set[int], syncs: str) -> None:
        """One of those who lead wants another to lead, which then talks with some."""
        node, other = self.leader(number), self.node(to)
        if node is not None:
            self.network.transfer(node, other)
            self.talk(node, {to}, rounds=2, syncs=syncs)
            self.talk(other, followers, rounds=1, syncs=syncs)

    @rule(number=NODES)
    def crashes(self, number: int) -> None:
        self.network.crash(self.node(number))

    @invariant()
    def logs_match(self) -> None:
        if hasattr(self, "network"):
            self.network.check_logs()


def searched(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_no_short_run_breaks_raft() -> None:
    run_state_machine_as_test(RaftMachine, settings=searched(50, 40))


@pytest.mark.thorough
def test_no_run_of_many_breaks_raft() -> None:
    run_state_machine_as_test(RaftMachine, settings=searched(5_000, 100))


# Planted mistakes

ENOUGH = 8_000
"""Examples. The shyest of them takes 540 on average, and 2,088 at the most in eight searches. Which examples are made
is not the same everywhere, `derandomize` or not: Hypothesis also tries constants of the modules that are loaded."""


class VotesForAnyLog(SmallChunks):
    """A candidate without what is committed gets votes."""

    def _is_up_to_date(self, last_index: int, last_term: int) -> bool:
        return True


class VotesTwice(SmallChunks):
    """A vote that was given does not bind."""

    def _on_vote_request(self, message: VoteRequest, now_ns: int) -> None:
        self.vote = None
        super()._on_vote_request(message, now_ns)


class CommitsAtOnce(SmallChunks):
    """A leader takes for committed what it alone has written."""

    def _advance_commit(self) -> None:
        self._commit_to(self.durable_index)


class TakesOverNoState(SmallChunks):
    """The log begins behind a snapshot that comes, and the state stays what it was."""

    def _install(self, snapshot: Snapshot) -> None:
        super()._install(snapshot)
        self._effects.restored = None


@pytest.mark.parametrize(
    ("kind", "drawn_from"),
    [
        (ForgetfulNode, 6),
        (of(VotesForAnyLog), None),
        (of(VotesTwice), None),
        (of(CommitsAtOnce), None),
        (of(TakesOverNoState), None),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_a_planted_mistake_is_found(kind: type[Node], drawn_from: int | None) -> None:
    """Examples are drawn from a seed that leads to the mistake soon, where Hypothesis's own takes long."""
    machine = type(f"{kind.__name__}Machine", (RaftMachine,), {"kind": kind})
    until_found = settings(
        searched(ENOUGH, 40), derandomize=drawn_from is None, phases=[Phase.generate], report_multiple_bugs=False
    )
    if drawn_from is not None:
        machine = seed(drawn_from)(machine)
    with pytest.raises((Broken, AssertionError)):
        run_state_machine_as_test(machine, settings=until_found)
