"""The replication checker against the definitions, on thousands of small clusters, on both engines."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult
from checkers.in_process.engine import InProcessEngine
from checkers.replication import ReplicationChecker
from checkers.replication.reports import EVENTS, confirmed_pieces
from harness.record.node_events import node_events_table, write_node_events
from tests.references.node_histories import (
    Cluster,
    by_log,
    defined_anomalies,
    defined_leaders,
    defined_pieces,
    random_cluster,
    write_cluster,
)
from tests.references.thousands import thousands

TOGETHER = 50
"""Clusters that are checked at once: their electors are then taken for one group."""


def judge(clusters: list[Cluster], folder: Path) -> CheckerResult:
    for cluster in clusters:
        write_cluster(cluster, folder / "nodes")
    table = write_node_events(folder / "nodes", folder / "node-events.parquet")
    request = CheckRequest(history=folder, run=RunUnderCheck(node_events=table))
    result = ReplicationChecker().check(request, InProcessEngine())
    kept = node_events_table({node: events for cluster in clusters for node, events in cluster.items()}, {})
    in_memory = CheckRequest(history=folder, run=RunUnderCheck(node_events=kept))
    assert ReplicationChecker().check(in_memory, InProcessEngine()) == result
    return result


def compare(seed: int, folder: Path) -> Counter[str]:
    rng = random.Random(seed)
    clusters = [random_cluster(rng, f"g{number}", others=number % 2 == 0) for number in range(TOGETHER)]
    defined = sum((defined_anomalies(log) for cluster in clusters for log in by_log(cluster)), Counter())
    defined["two-leaders"] = defined_leaders(clusters)
    result = judge(clusters, folder)
    found = Counter({name: summary.count for name, summary in result.anomalies.items()})
    assert found == +defined, seed
    return found


def test_counts_are_those_of_the_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    names: Counter[str] = Counter()
    for seed in range(4):
        names += compare(seed, tmp_path / str(seed))
    assert len(names) == 8, f"some anomalies never occurred: {sorted(names)}"


@thousands()
def test_counts_are_those_of_the_definitions_on_many_clusters(seeds: range, tmp_path: Path) -> None:
    for seed in seeds[::TOGETHER]:
        compare(seed, tmp_path / str(seed))


@thousands()
def test_pieces_are_confirmed_and_stand_as_defined(seeds: range) -> None:
    confirmed = lost = 0
    for seed in seeds:
        events = next(iter(random_cluster(random.Random(seed), "g").values()))
        ever, standing = defined_pieces(events)
        kinds = np.array([EVENTS.index(e["event"]) if e["event"] in EVENTS else -1 for e in events], dtype=np.int32)
        ends = np.array([next((e[name] for name in ("end", "to", "offset") if name in e), 0) for e in events])
        found, stands = confirmed_pieces(kinds, ends)
        assert sorted(found.tolist()) == ever
        assert sorted(found[stands].tolist()) == standing
        confirmed += len(ever)
        lost += len(ever) - len(standing)
    assert min(confirmed, lost) > len(seeds) // 40


def test_what_others_say_and_what_is_torn_is_passed_over(tmp_path: Path) -> None:
    rng = random.Random(3)
    clusters = [random_cluster(rng, f"g{number}") for number in range(TOGETHER)]
    expected = judge(clusters, tmp_path / "clean")
    for path in sorted((tmp_path / "clean" / "nodes").glob("*/events.jsonl")):
        noise = '{"event": "running"}\n[1, 2]\n{"event": "role", "master_epoch": "seven", "time": 3}\n'
        target = tmp_path / "noisy" / "nodes" / path.parent.name / "events.jsonl"
        target.parent.mkdir(parents=True)
        target.write_text(noise + path.read_text() + '{"event": "written", "sta')
    table = write_node_events(tmp_path / "noisy" / "nodes", tmp_path / "noisy.parquet")
    noisy = ReplicationChecker().check(
        CheckRequest(history=tmp_path, run=RunUnderCheck(node_events=table)), InProcessEngine()
    )
    assert {n: s.count for n, s in noisy.anomalies.items()} == {n: s.count for n, s in expected.anomalies.items()}


def test_without_events_nothing_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "nodes" / "b1").mkdir(parents=True)
    assert write_node_events(tmp_path / "nodes", tmp_path / "e.parquet") is None
    assert ReplicationChecker().check(CheckRequest(history=tmp_path), InProcessEngine()).statistics == {}


def test_the_table_does_not_depend_on_how_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = [random_cluster(random.Random(seed), f"g{seed}") for seed in range(9)]
    whole = judge(clusters, tmp_path / "whole")
    monkeypatch.setattr("harness.record.node_events.ROWS_AT_ONCE", 7)
    assert judge(clusters, tmp_path / "pieces") == whole
    tables = [pq.read_table(tmp_path / name / "node-events.parquet") for name in ("whole", "pieces")]
    assert isinstance(tables[0], pa.Table)
    assert tables[0] == tables[1]
