"""One seed, two processes, two hash seeds: the same trace. And where a node breaks that, the line is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.seed import Seed
from harness.trace import Trace, first_difference, first_differing_checkpoint
from tests.simulation import gossip

SEEDS = [str(seed) for seed in range(20)]


def traces(order: str, seeds: list[str], *, hash_seed: str, recording: Path | None = None) -> list[str]:
    """What `gossip.py` prints for these seeds in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    if recording is not None:
        recording.mkdir()
        environment["RECORDING"] = str(recording)
    done = subprocess.run(
        [sys.executable, gossip.__file__, order, *seeds],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_one_seed_gives_one_trace_in_every_process():
    left = traces("sorted", SEEDS, hash_seed="1")
    right = traces("sorted", SEEDS, hash_seed="2")
    assert left == right
    assert len({line.split()[2] for line in left}) == len(SEEDS), "each seed has a trace of its own"
    assert all(int(line.split()[1]) > 500 for line in left), "a trace in which much happened"


def test_a_nondeterministic_node_is_found_out_and_its_line_is_named(tmp_path):
    left = traces("hash", ["5"], hash_seed="1", recording=tmp_path / "left")
    right = traces("hash", ["5"], hash_seed="2", recording=tmp_path / "right")
    assert left != right
    difference = first_difference(tmp_path / "left" / "5.trace", tmp_path / "right" / "5.trace")
    assert difference is not None
    assert difference.left is not None
    assert difference.left.kind == "connect"
    assert "tests/simulation/gossip.py:" in difference.left.source
    line = int(difference.left.source.rpartition(":")[2])
    assert "host.network.connect" in Path(gossip.__file__).read_text().splitlines()[line - 1]
    assert "left:" in str(difference)


def test_equal_recordings_have_no_difference_and_a_recording_changes_no_hash(tmp_path):
    paths = [tmp_path / "one.trace", tmp_path / "two.trace"]
    plain = Trace()
    gossip.run(Seed(3), plain, order="sorted", duration_s=3.0)
    for path in paths:
        trace = Trace(recording=path)
        gossip.run(Seed(3), trace, order="sorted", duration_s=3.0)
        assert trace.digest() == plain.digest()
    assert first_difference(*paths) is None
    text = paths[0].read_text().splitlines(keepends=True)
    paths[1].write_text("".join(text[:-1]))
    shorter = first_difference(*paths)
    assert shorter is not None
    assert shorter.right is None
    assert shorter.left is not None
    assert shorter.left.index == len(text) - 1


def test_checkpoints_bound_where_two_traces_part():
    left, right = Trace(), Trace()
    for index in range(5000):
        left.event(index, "n1", "kind", "detail")
        right.event(index, "n1", "kind", "other" if index == 3210 else "detail")
    assert len(left.checkpoints) == 5
    assert first_differing_checkpoint(left, right) == 3
    assert first_differing_checkpoint(left, left) is None
    assert left.digest() != right.digest()
    assert left.count == 5000


@pytest.mark.parametrize("changed", [("n2", "kind", "detail"), ("n1", "sort", "detail"), ("n1", "kind", "other")])
def test_every_part_of_an_event_counts(changed):
    one, other = Trace(), Trace()
    one.event(7, "n1", "kind", "detail")
    other.event(7, *changed)
    assert one.digest() != other.digest()
    later = Trace()
    later.event(8, "n1", "kind", "detail")
    assert one.digest() != later.digest()
