"""Outages found by folding runs, against the definition, on ten thousand streams, however the history is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult
from checkers.availability import Availability
from checkers.availability.checker import LASTING, runs_of_streams
from checkers.availability.outages import Outages
from checkers.availability.runs import BY
from checkers.faults import Faults
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.facts import RunFacts
from harness.record.fault_log import FaultLog, FaultWindow
from tests.references.outage_histories import MS, Outage, Stream, blamed, defined_outages, random_operations, streams

CLIENTS = 20


def written(rng: random.Random, path: Path, *, operations: int, queues: int) -> dict[Stream, list[Outage]]:
    history = random_operations(rng, operations=operations, clients=CLIENTS, queues=queues)
    pq.write_table(history, path, row_group_size=rng.randrange(10, 5_000))
    return {
        stream: defined_outages(done, LASTING.successes, LASTING.window_ns)
        for stream, done in streams(history, CLIENTS).items()
    }


def found_outages(request: CheckRequest) -> Iterator[tuple[Stream, Outage]]:
    engine = InProcessEngine()
    runs = engine.gather(runs_of_streams(request, engine), 10_000_000)
    found = Outages.of(runs, LASTING)
    for number, (failed, recovered) in enumerate(zip(found.failed.tolist(), found.recovered.tolist(), strict=True)):
        run = {name: int(values[failed]) for name, values in found.runs.items()}
        which: int | str = run["client"] if run["key"] < 0 else found.keys[run["key"]]
        yield (
            (found.f[run["f"]], BY[run["by"]], which),
            Outage(
                int(found.began_ns[number]),
                int(found.ended_ns[number]),
                run["first_index"],
                int(found.runs["first_index"][recovered]) if recovered >= 0 else None,
            ),
        )


@pytest.mark.parametrize(
    ("batch_rows", "seed"), [(1_000_000, 1), (997, 2), pytest.param(61, 3, marks=pytest.mark.gate)]
)
def test_outages_are_those_of_the_definition(
    batch_rows: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    defined = written(random.Random(seed), tmp_path / "h.parquet", operations=40_000, queues=1_700)
    request = CheckRequest(history=tmp_path / "h.parquet", run=RunUnderCheck(concurrency=CLIENTS))
    found: dict[Stream, list[Outage]] = {stream: [] for stream in defined}
    for stream, outage in found_outages(request):
        found[stream].append(outage)
    assert found == defined
    assert len(defined) > 3_400
    assert sum(len(outages) for outages in defined.values()) > 3_000


def random_faults(rng: random.Random, until_ns: int) -> list[FaultWindow]:
    faults = []
    for number in range(rng.randrange(6)):
        start_ns = rng.randrange(until_ns)
        stop_ns = start_ns + rng.randrange(9_000 * MS)
        faults.append(FaultWindow(kind="kill", shape=f"fault {number}", start_ns=start_ns, stop_ns=stop_ns))
    return faults


def judge(path: Path, run: RunUnderCheck) -> CheckerResult:
    request = CheckRequest(history=path, run=replace(run, concurrency=CLIENTS))
    return check_history(request, {"availability": Availability()}, InProcessEngine())["availability"]


@pytest.mark.gate
def test_figures_are_those_of_the_outages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 83)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    slow = 0
    for seed in range(25):
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.parquet"
        defined = written(rng, path, operations=300, queues=4)
        history = pq.read_table(path, columns=["time"])["time"].to_pylist()
        faults = random_faults(rng, history[-1])
        result = judge(path, RunUnderCheck(faults=FaultLog(windows=tuple(faults)), recovery_limit_s=2.0))
        lengths: dict[str, list[int]] = {}
        causes: Counter[tuple[str, str, bool]] = Counter()
        for (f, by, _), outages in defined.items():
            kind = f"{f} by {by}"
            lengths.setdefault(kind, [])
            for outage in outages:
                finished = outage.recovered is not None
                causes[blamed(outage, history[outage.failed], faults), kind, finished] += 1
                lengths[kind] += [outage.ended_ns - outage.began_ns] if finished else []
        recovery = result.statistics["recovery"]
        assert recovery.keys() == lengths.keys()
        for kind, row in recovery.items():
            assert row["outages"] == len(lengths[kind])
            assert row.get("max_ns", -1) == max(lengths[kind], default=-1)
            ordered = sorted(lengths[kind])
            if ordered:
                median = ordered[(len(ordered) + 1) // 2 - 1]
                assert median * 31 / 32 <= row["p50_ns"] <= median
        reported = {
            (row["fault"], kind, finished): figures["outages" if finished else "unfinished"]
            for row in result.statistics["faults"]
            for kind, figures in row["recovery"].items()
            for finished in (True, False)
        }
        assert {what: count for what, count in reported.items() if count} == dict(causes)
        too_long = [o for outages in defined.values() for o in outages if o.ended_ns - o.began_ns > 2_000 * MS]
        assert sum(summary.count for summary in result.anomalies.values()) == len(too_long)
        slow += len(too_long)
    assert slow > 50


def test_only_what_completes_in_the_storm_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "h.parquet"
    written(random.Random(1), path, operations=300, queues=4)
    time = pq.read_table(path, columns=["time"])["time"].to_pylist()

    def judge_facts(facts: RunFacts) -> CheckerResult:
        return judge(path, RunUnderCheck(facts=facts))

    whole = judge_facts(RunFacts())
    assert judge_facts(RunFacts(storm_from_ns=0, final_from_ns=time[-1] + 1)) == whole
    assert judge_facts(RunFacts(storm_from_ns=time[-1] + 1)).statistics["recovery"] == {}
    assert judge_facts(RunFacts(final_from_ns=time[100])).statistics["recovery"] != whole.statistics["recovery"]


def test_losses_are_blamed_on_the_first_fault_that_was_not_over() -> None:
    faults = [
        FaultWindow(kind="kill", start_ns=10, stop_ns=20),
        FaultWindow(kind="kill", start_ns=12, stop_ns=15),
        FaultWindow(kind="kill", start_ns=30, stop_ns=40),
    ]
    struck = Faults.of(faults)
    rng = random.Random(1)
    acked = [rng.randrange(50) for _ in range(200)]
    expected = [next((i for i, fault in enumerate(faults) if fault.stop_ns >= time), -1) for time in acked]
    assert struck.to_blame_for_losses(np.array(acked)).tolist() == expected
    assert Faults.of([]).to_blame_for_losses(np.array(acked)).tolist() == [-1] * len(acked)
    assert Faults.of([]).to_blame_for_outages(np.array([1]), np.array([2])).tolist() == [-1]
