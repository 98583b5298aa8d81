"""Two candidates that stand at one moment: with half the votes each nobody is elected, and what ends it.

Two of four nodes run out of patience together. Each is nearer to one of the others, which votes for the one that it
hears first. Source: the description of CMQ, its part about election time-outs.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import pytest

from system_under_test.raft.core import Raft, Role, Timing
from system_under_test.raft.event import Event, Persisted, Receive, Tick
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import HardState, Message
from system_under_test.raft.snapshot import NOTHING

MS = 1_000_000
TIMING = Timing(heartbeat_ns=100 * MS, min_election_timeout_ns=300 * MS, quorum_timeout_ns=600 * MS)
CANDIDATES, VOTERS = ("a", "b"), ("c", "d")
NEAR = {("a", "c"), ("c", "a"), ("b", "d"), ("d", "b")}
PATIENT_NS = 3600 * 1000 * MS
ROUNDS = 40


class Elections:
    """Messages take 1 ms to a near node, and 2 ms to another."""

    def __init__(self, draw_timeout_ns: Callable[[], int]) -> None:
        self.draw_timeout_ns = draw_timeout_ns
        self.now_ns = 0
        self.elections = 0
        self._serial = 0
        self._wire: list[tuple[int, int, Message]] = []
        membership = Membership(voters=dict.fromkeys((*CANDIDATES, *VOTERS), ""))
        self.nodes = {
            name: Raft(
                node=name,
                membership=membership,
                timing=TIMING,
                hard_state=HardState(),
                snapshot=NOTHING,
                entries=(),
                now_ns=0,
                election_timeout_ns=self._timeout_ns(name),
            )
            for name in (*CANDIDATES, *VOTERS)
        }

    def _timeout_ns(self, name: str) -> int:
        return self.draw_timeout_ns() if name in CANDIDATES else PATIENT_NS

    def leader(self) -> str | None:
        return next((name for name, raft in self.nodes.items() if raft.role is Role.LEADER), None)

    def run(self, rounds: int) -> str | None:
        """Who is elected before anybody has stood so often."""
        while self.leader() is None and self.elections < rounds:
            due_ns, name = min((raft.deadline_ns, name) for name, raft in self.nodes.items())
            if self._wire and self._wire[0][0] <= due_ns:
                self.now_ns, _, message = heapq.heappop(self._wire)
                self._step(message.recipient, Receive(message))
            else:
                self.now_ns = due_ns
                self.elections += name == CANDIDATES[0]
                self._step(name, Tick(self._timeout_ns(name)))
        return self.leader()

    def _step(self, name: str, event: Event) -> None:
        effects = self.nodes[name].step(event, self.now_ns)
        for message in (*effects.appends, *effects.messages):
            latency_ns = MS if (message.sender, message.recipient) in NEAR else 2 * MS
            self._serial += 1
            heapq.heappush(self._wire, (self.now_ns + latency_ns, self._serial, message))
        if effects.must_persist:
            self._step(name, Persisted(effects.sequence))


def test_fixed_time_outs_split_the_votes_again_and_again():
    elections = Elections(lambda: 450 * MS)
    assert elections.run(ROUNDS) is None
    assert all(raft.vote == name for name, raft in elections.nodes.items() if name in CANDIDATES)
    assert [elections.nodes[name].vote for name in VOTERS] == ["a", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_drawn_time_outs_end_it(seed: int):
    draw = random.Random(seed)
    assert Elections(lambda: draw.randint(300, 600) * MS).run(ROUNDS) is not None
