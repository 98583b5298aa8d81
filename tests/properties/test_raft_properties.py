"""Raft's promises under shuffled, lost and doubled messages, crashes, and restarts from durable state only."""

from __future__ import annotations

import pytest

from system_under_test.raft.core import Role
from tests.references.raft_network import Broken, ForgetfulNode, Network


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_storm_breaks_raft_and_the_calm_after_it_brings_progress(size: int) -> None:
    crashes = served_reads = committed = compactions = installs = 0
    for seed in range(60 if size == 3 else 30):
        network = Network(seed, size)
        try:
            network.storm(2000 if size < 5 else 3000)
            network.calm(400)
            leaders = [node for node in network.nodes.values() if node.raft and node.raft.role is Role.LEADER]
            assert len(leaders) == 1, f"{len(leaders)} leaders after the storm"
            before = len(network.committed)
            network.propose(leaders[0])
            network.calm(10)
            assert len(network.committed) > before, "nothing is committed after the storm"
            logs = [node.raft.log for node in network.nodes.values() if node.raft]
            ends = [(log.last_index, log.last_term) for log in logs]
            assert all(end == ends[0] for end in ends), "logs differ after the storm"
            states = [node.state for node in network.nodes.values()]
            assert all(state == states[0] for state in states), "states differ after the storm"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {size} nodes: {error}") from error
        crashes += network.crashes
        served_reads += network.served_reads
        committed += len(network.committed)
        compactions += network.compactions
        installs += network.installs
    assert min(crashes, served_reads, committed, compactions) > 50, "the storms were no storms"
    assert installs > 10 or size < 3, "snapshots were hardly sent"  # of two, both have all that is committed


def test_a_vote_that_is_not_durable_is_caught_by_these_storms() -> None:
    for seed in range(300):
        network = Network(seed, 3, ForgetfulNode)
        try:
            network.storm(1200)
        except (Broken, AssertionError):
            return
    pytest.fail("no check noticed a forgotten vote in 300 storms")
