"""The controllers' key-value store is linearizable in every storm, and the storms expose planted bugs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.controller_storm import Storm, storm

ALL = ("partition", "kill", "pause", "power")
SHORT_S = 1.5
"""The longest fault where a planted bug is sought. Leaders change often then, and that is when a deposed one may answer
by an old state: `local-read` shows in one storm of ten, with faults of up to 6 s in one of twenty, and not at all with
faults too short for an election. `vote-not-durable` shows in one of twenty."""
STORMS = 120
"""A bug that shows in one storm of twenty is missed by all of them with a chance of one in five hundred."""


@pytest.mark.parametrize(
    "seeds",
    [
        range(3),
        pytest.param(range(3, 7), marks=pytest.mark.gate),
        pytest.param(range(7, 12), marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_no_storm_makes_the_controllers_forget_repeat_or_go_back(tmp_path: Path, seeds: range) -> None:
    acknowledged = reads = faults = 0
    for seed in seeds:
        seen = storm(seed, tmp_path / str(seed), kinds=ALL)
        assert not seen.anomalies(), f"seed {seed}: {seen.anomalies()[:3]}"
        acknowledged += len(seen.acknowledged)
        reads += len(seen.reads)
        faults += seen.faults
    assert acknowledged > 80 * len(seeds)
    assert reads > 80 * len(seeds)
    assert faults > 4 * len(seeds)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 8), marks=pytest.mark.gate)], ids=str)
def test_no_storm_makes_controllers_forget_that_take_a_snapshot_every_few_entries(tmp_path: Path, seeds: range) -> None:
    acknowledged = 0
    for seed in seeds:
        seen = storm(seed, tmp_path / str(seed), kinds=ALL, config={"raftSnapshotThreshold": 4})
        assert not seen.anomalies(), f"seed {seed}: {seen.anomalies()[:3]}"
        acknowledged += len(seen.acknowledged)
    assert acknowledged > 75 * len(seeds)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(2), id="2 storms"),
        pytest.param(range(2, 20), id="18 more", marks=pytest.mark.gate),
        pytest.param(range(20, 40), id="20 more", marks=pytest.mark.thorough),
    ],
)
def test_no_storm_makes_controllers_forget_that_come_and_go_meanwhile(tmp_path: Path, seeds: range) -> None:
    acknowledged = changes = faults = 0
    for seed in seeds:
        threshold = {"raftSnapshotThreshold": 20} if seed % 2 else {}
        seen = storm(seed, tmp_path / str(seed), kinds=ALL, newcomers=("c4", "c5"), config=threshold)
        assert not seen.anomalies(), f"seed {seed}: {seen.anomalies()[:3]}"
        acknowledged += len(seen.acknowledged)
        changes += seen.changes
        faults += seen.faults
    assert acknowledged > 200 * len(seeds)
    assert changes > 10 * len(seeds)
    assert faults > 4 * len(seeds)


def test_a_storm_after_which_nobody_can_read_is_none_that_was_come_through() -> None:
    seen = Storm(final={"x": []})
    assert seen.anomalies() == ["y: nobody could read it at the end"]


def test_one_seed_gives_one_trace(tmp_path: Path) -> None:
    first = storm(3, tmp_path / "first", kinds=ALL, seconds=10)
    again = storm(3, tmp_path / "again", kinds=ALL, seconds=10)
    other = storm(4, tmp_path / "other", kinds=ALL, seconds=10)
    assert first.trace == again.trace != other.trace


@pytest.mark.gate
@pytest.mark.parametrize(
    ("mutant", "kinds", "promises"),
    [
        pytest.param("local-read", ("partition", "pause"), ("a read saw",), id="local-read"),
        pytest.param(
            "vote-not-durable",
            ("power", "partition"),
            ("is lost", "a committed entry would be cut"),
            id="vote-not-durable",
        ),
    ],
)
def test_a_planted_bug_is_caught_where_the_healthy_controllers_are_not_accused(
    tmp_path: Path, mutant: str, kinds: tuple[str, ...], promises: tuple[str, ...]
) -> None:
    for seed in range(STORMS):
        well = storm(seed, tmp_path / f"{seed}-well", kinds=kinds, longest_s=SHORT_S)
        assert not well.anomalies(), f"seed {seed}: {well.anomalies()[:3]}"
        ill = storm(seed, tmp_path / f"{seed}-ill", kinds=kinds, longest_s=SHORT_S, config={"mutant": mutant})
        if any(promise in anomaly for anomaly in ill.anomalies() for promise in promises):
            return
    pytest.fail(f"no check noticed {mutant} in {STORMS} storms")
