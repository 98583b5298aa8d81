"""Reads by lease under lost and late messages, crashes, handing over, and clocks of different rates: who has a lease is
the newest leader, and reads what was committed before, as long as no clock is faster than the lease allows for."""

from __future__ import annotations

import pytest

from system_under_test.raft.core import Raft
from system_under_test.raft.event import Receive
from system_under_test.raft.lease import Lease
from system_under_test.raft.message import Message
from tests.references.raft_network import LEASE, MILLISECOND, OUTSIDERS, Broken, Network, Node, SmallChunks, of

ALLOWED = 1 / LEASE - 1
"""The fastest clock may be faster than the slowest by this share."""

STORMS, STEPS, MOST = 8, 2_000, 60


class Brisk(Network):
    """Messages arrive within some tens of milliseconds, but for some that are late; one voter after the other is cut
    off, nodes start anew at once, and whoever believes that it leads is asked all the time."""

    def __init__(self, seed: int, size: int, kind: type[Node], drift: float) -> None:
        super().__init__(seed, size, kind, drift)
        self.late: list[tuple[int, Message]] = []
        """When each arrives, whoever is cut off by then."""

    def storm(self, steps: int) -> None:
        draw = self.draw
        voters = list(self.nodes.values())[:-OUTSIDERS]
        for _ in range(steps):
            self.pass_time(draw.choice((5, 20, 50)))
            self._carry()
            for node in voters:
                self.sync(node)
                if draw.random() < 0.01:
                    self.crash(node)
                    node.boot(self.now_ns, self._timeout_ns())
                if node.raft is not None and node.raft.is_active:
                    self.propose(node)
                    self.read(node)
                    self._check_lease(node.raft)
            self._strike(draw.choice(voters), draw.random())

    def _check_lease(self, raft: Raft) -> None:
        newest = max(self.leaders)
        if newest > raft.term and raft.has_lease():
            raise Broken(
                f"{self.leaders[newest]} leads term {newest}, and {raft.node} reads by its lease of {raft.term}"
            )

    def _carry(self) -> None:
        sent, self.wire = self.wire, []
        for message in sent:
            if (message.sender, message.recipient) in self.cut:
                continue
            delay_ms = self.draw.randrange(2_000) if self.draw.random() < 0.05 else 0
            self.late.append((self.now_ns + delay_ms * MILLISECOND, message))
        arrived = [message for at_ns, message in self.late if at_ns <= self.now_ns]
        self.late = [(at_ns, message) for at_ns, message in self.late if at_ns > self.now_ns]
        for message in arrived:
            node = self.nodes[message.recipient]
            if node.raft is not None:
                self.step(node, Receive(message))

    def _strike(self, node: Node, luck: float) -> None:
        others = [name for name in self.nodes if name != node.name]
        if luck < 0.01:
            self.cut = {(node.name, name) for name in others} | {(name, node.name) for name in others}
        elif luck < 0.014:
            self.cut = set()
        elif luck < 0.02:
            self.transfer(node, self.nodes[self.draw.choice(others)])


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.gate)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_storm_lets_a_leader_read_by_its_lease_what_is_old(size: int, half: int) -> None:
    served = by_lease = leaders = 0
    for seed in range(half * STORMS, (half + 1) * STORMS):
        network = Brisk(seed, size, of(SmallChunks), ALLOWED)
        try:
            network.storm(STEPS)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {size} nodes: {error}") from error
        served += network.served_reads
        by_lease += network.reads_at_once
        leaders += len(network.leaders)
    assert leaders > STORMS * (2 if size > 1 else 1), "leaders hardly changed"
    assert served >= by_lease > 100, f"{by_lease} of {served} reads were by lease"


class FromTheAnswers(SmallChunks):
    """The lease is counted from when a majority was heard, not from when it was asked."""

    def has_lease(self) -> bool:
        return self._now_ns < self._quorum_heard_ns(self._now_ns) + self._timing.lease_ns


class KeepsItsLease(SmallChunks):
    """The lease holds although another one was asked to stand."""

    def _hand_over(self) -> None:
        lease, self._lease = self._lease, Lease(0)
        super()._hand_over()
        self._lease = lease


@pytest.mark.parametrize(
    ("kind", "drift"),
    [
        (FromTheAnswers, ALLOWED),
        (KeepsItsLease, ALLOWED),
        (SmallChunks, 2.8 * ALLOWED),
    ],
    ids=lambda it: getattr(it, "__name__", str(it)),
)
def test_a_lease_that_promises_too_much_is_caught_by_these_storms(kind: type[SmallChunks], drift: float) -> None:
    for seed in range(MOST):
        try:
            Brisk(seed, 3, of(kind), drift).storm(STEPS)
        except Broken:
            return
    pytest.fail(f"no check noticed it in {MOST} storms")
