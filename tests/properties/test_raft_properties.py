"""Raft's promises under shuffled, lost and doubled messages, crashes, and restarts from durable state only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from system_under_test.raft.core import Role
from system_under_test.raft.membership import Change
from system_under_test.raft.replication import Progress
from tests.references.raft_network import Broken, ForgetfulNode, Network, Node, SmallChunks, of


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.gate)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_storm_breaks_raft_and_the_calm_after_it_brings_progress(size: int, half: int) -> None:
    crashes = served_reads = committed = compactions = installs = changes = files = 0
    storms = 30 if size >= 3 else 15
    for seed in range(half * storms, (half + 1) * storms):
        network = Network(seed, size)
        try:
            network.storm(2500 if size < 5 else 4000)
            network.calm(400)
            leaders = [node for node in network.nodes.values() if node.raft and node.raft.role is Role.LEADER]
            assert len(leaders) == 1, f"{len(leaders)} leaders after the storm"
            before = len(network.committed)
            network.propose(leaders[0])
            network.calm(10)
            assert len(network.committed) > before, "nothing is committed after the storm"
            assert leaders[0].raft
            members = [network.nodes[name] for name in leaders[0].raft.membership.addresses]
            ends = [(node.raft.last_index, node.raft.log.last_term) for node in members if node.raft]
            assert all(end == ends[0] for end in ends), "logs differ after the storm"
            assert all(node.state == members[0].state for node in members), "states differ after the storm"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {size} nodes: {error}") from error
        crashes += network.crashes
        served_reads += network.served_reads
        committed += len(network.committed)
        compactions += network.compactions
        installs += network.installs
        changes += network.changes
        files += network.transfers_of_files
    assert min(crashes, served_reads, committed, compactions, changes) > 10, "the storms were no storms"
    assert installs > 5, "snapshots were hardly sent"
    assert files > 2, "files were hardly sent"


class CountsLearners(SmallChunks):
    """A majority of all who have the log, whether they vote or not, is enough."""

    def _reached_by_majority(self, own: int, of: Callable[[Progress], int]) -> int:
        numbers = [own, *map(of, self._replication.followers.values())]
        return sorted(numbers, reverse=True)[self.membership.majority - 1]


class ChangesManyAtOnce(SmallChunks):
    """A change of the membership does not wait for the one before."""

    def refusal_of(self, change: Change) -> str | None:
        commit, self.commit = self.commit, max(self.commit, self.log.membership_index)
        try:
            return super().refusal_of(change)
        finally:
            self.commit = commit


@pytest.mark.parametrize(
    ("kind", "first_seed"),
    [(ForgetfulNode, 5), (of(CountsLearners), 135), (of(ChangesManyAtOnce), 144)],
    ids=lambda it: getattr(it, "__name__", "seed"),
)
def test_a_planted_mistake_is_caught_by_these_storms(kind: type[Node], first_seed: int) -> None:
    """Of storms from 0 on it is caught by that of the first seed."""
    for seed in range(first_seed, 400):
        network = Network(seed, 3, kind)
        try:
            network.storm(1500)
        except (Broken, AssertionError):
            return
    pytest.fail("no check noticed it in 400 storms")
