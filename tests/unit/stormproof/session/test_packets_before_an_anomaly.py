"""Of a run that broke a promise, the packets of the minute before the first witnessed anomaly lie apart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from harness.environments.remote import capture
from harness.record.run_directory import ANOMALY_PACKETS, PACKETS, RunDirectory
from stormproof.session.packets import cut_packets

SECOND_NS = 10**9


def run_of(tmp_path: Path) -> RunDirectory:
    """Its rows of second 0, 10, 20, …; its node n1 sent a packet each second from 0 to 299."""
    run = RunDirectory.create(tmp_path, "a-run", 1)
    times = [10 * number * SECOND_NS for number in range(30)]
    pq.write_table(pa.table({"index": range(30), "time": pa.array(times, pa.int64())}), run.history)
    node = run.nodes / "n1"
    node.mkdir()
    with (node / PACKETS).open("wb") as file:
        file.write(capture.HEADER)
        for second in range(300):
            capture.write(file, second * SECOND_NS, 5, b"bytes")
    return run


def found(*operations: tuple[int, ...], legal: str = "") -> dict[str, CheckerResult]:
    examples = tuple(Anomaly(name="lost", operations=each, because="of a test") for each in operations)
    summary = AnomalySummary(count=len(examples), examples=examples, legal=legal)
    verdict = Verdict.VALID if legal else Verdict.INVALID
    return {"set": CheckerResult(verdict=verdict, anomalies={"lost": summary})}


def seconds(run: RunDirectory) -> list[int]:
    with (run.nodes / "n1" / ANOMALY_PACKETS).open("rb") as file:
        return [at_ns // SECOND_NS for at_ns, _, _ in capture.records(file)]


def test_the_minute_ends_with_the_last_witness_of_the_anomaly_that_was_whole_first(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert cut_packets(run, found((0, 25), (2, 20), ())) == ""
    assert seconds(run) == list(range(140, 202))


def test_a_run_that_broke_no_promise_has_none_apart_not_even_of_a_former_check(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert cut_packets(run, found((3, 4))) == "" and seconds(run)
    assert cut_packets(run, found((3, 4), legal="documented")) == ""
    assert not (run.nodes / "n1" / ANOMALY_PACKETS).exists()


def test_what_cannot_be_written_is_said_and_a_run_without_packets_costs_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    (run.nodes / "n1" / ANOMALY_PACKETS).mkdir()
    assert cut_packets(run, found((3, 4))).endswith("the packets before the first anomaly: Is a directory")
    (run.nodes / "n1" / PACKETS).unlink()
    run.history.unlink()
    assert cut_packets(run, found((3, 4))) == ""
