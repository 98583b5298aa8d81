"""The packets of the minute before the first anomaly, cut out of what nodes captured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from checkers.api.verdict import CheckerResult
from harness.environments.remote import capture
from harness.record.run_directory import ANOMALY_PACKETS, PACKETS, RunDirectory
from results.report.measure import rows_at

BEFORE_S, AFTER_S = 60.0, 1.0


def cut_packets(run: RunDirectory, results: Mapping[str, CheckerResult]) -> str:
    """Write `anomaly.pcap` beside each `packets.pcap` of a run in which a broken promise was found; one that a former
    check has left goes. What could not be written, in words; empty where nothing failed."""
    captured = sorted(run.nodes.glob(f"*/{PACKETS}"))
    if not captured:
        return ""
    try:
        at_ns = first_anomaly_ns(run.history, results)
        for path in captured:
            cut = path.with_name(ANOMALY_PACKETS)
            if at_ns is None:
                cut.unlink(missing_ok=True)
            else:
                _cut(path, cut, round(at_ns - BEFORE_S * 1e9), round(at_ns + AFTER_S * 1e9))
    except OSError as error:
        return f"{error.filename or run.nodes}: the packets before the first anomaly: {error.strerror or error}"
    return ""


def first_anomaly_ns(history: Path, results: Mapping[str, CheckerResult]) -> int | None:
    """When the first broken promise had been seen whole, in the run's time: of all that have witnesses, the earliest
    last witness. None where there is none."""
    seen = [
        example.operations
        for result in results.values()
        for _, summary in result.found()
        if not summary.legal
        for example in summary.examples
        if example.operations
    ]
    rows = rows_at(history, {index for operations in seen for index in operations}) if seen else {}
    whole = [operations for operations in seen if all(index in rows for index in operations)]
    return min((max(int(rows[index]["time"]) for index in operations) for operations in whole), default=None)


def _cut(captured: Path, cut: Path, from_ns: int, until_ns: int) -> None:
    with captured.open("rb") as source, cut.open("wb") as target:
        target.write(capture.HEADER)
        for at_ns, length, kept in capture.records(source):
            if from_ns <= at_ns <= until_ns:
                capture.write(target, at_ns, length, kept)
