"""Each file under tests/histories/cluster is the smallest set of nodes' events with, or without, one anomaly.

source: where it comes from
verdict: invalid two-masters                 (or: valid)

1 b1 role role=master master_epoch=1         second, node, event, fields; an event's fields as in nodes' logs
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.replication import ReplicationChecker
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.node_events import write_node_events

FILES = sorted((Path(__file__).parent / "cluster").glob("*.events"))
ANOMALIES = {
    "two-masters",
    "two-leaders",
    "epoch-back",
    "unclean-election",
    "fenced-write",
    "confirmed-lost",
    "diverging-logs",
    "rewritten-log",
}

SAYS = {"diverging-logs": "are not the same at", "rewritten-log": "other bytes were there later at"}
"""Of what is told by one function."""


def parse(text: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """(verdict with its anomalies, (node, event) in the order written)."""
    head, _, body = text.partition("\n\n")
    verdict = dict(line.split(": ", 1) for line in head.splitlines())["verdict"]
    events = []
    for line in body.splitlines():
        second, node, event, *fields = line.split()
        values = {name: value_of(value) for name, value in (field.split("=") for field in fields)}
        events.append((node, {"time": round(float(second) * 1e9), "event": event, **values}))
    return verdict, events


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def checked(events: list[tuple[str, dict[str, Any]]], directory: Path, run: RunUnderCheck) -> CheckerResult:
    for node, event in events:
        (directory / "nodes" / node).mkdir(parents=True, exist_ok=True)
        with (directory / "nodes" / node / "events.jsonl").open("a") as log:
            log.write(json.dumps(event) + "\n")
    table = write_node_events(directory / "nodes", directory / "node-events.parquet")
    request = CheckRequest(history=directory, run=replace(run, node_events=table))
    return ReplicationChecker().check(request, InProcessEngine())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_events_get_the_verdict_they_are_written_for(file: Path, tmp_path: Path) -> None:
    verdict, events = parse(file.read_text())
    result = checked(events, tmp_path, RunUnderCheck())
    assert " ".join([result.verdict.value, *result.anomalies]) == verdict, result
    for name, summary in result.anomalies.items():
        assert summary.count == len(summary.examples) == 1
        assert SAYS.get(name, "") in summary.examples[0].because
        assert summary.examples[0].because


@pytest.mark.parametrize(("node", "verdict"), [("b2", Verdict.VALID), ("c1", Verdict.INVALID)])
def test_what_lies_on_a_damaged_disk_contradicts_nobody(node: str, verdict: Verdict, tmp_path: Path) -> None:
    (file,) = (file for file in FILES if file.stem == "diverging-logs")
    rot = FaultWindow(kind="bit-rot", package="disk", nodes=(node,), start_ns=1, stop_ns=2)
    run = RunUnderCheck(faults=FaultLog(windows=(rot,)), lasting_damage=("bit-rot",))
    assert checked(parse(file.read_text())[1], tmp_path, run).verdict is verdict


def test_there_are_events_with_and_without_each_anomaly() -> None:
    verdicts = {parse(file.read_text())[0] for file in FILES}
    assert verdicts == {"valid", *(f"invalid {name}" for name in ANOMALIES)}


def test_a_leader_that_names_no_group_is_of_the_group_in_which_its_node_votes(tmp_path: Path) -> None:
    for node in ("c1", "x1"):
        (tmp_path / "nodes" / node).mkdir(parents=True)
        log = tmp_path / "nodes" / node / "events.jsonl"
        unnamed, named = (
            {"event": "leader", "time": 1, "term": 1},
            {"event": "leader", "time": 2, "term": 2, "group": "own"},
        )
        log.write_text(f"{json.dumps(unnamed)}\n{json.dumps(named)}\n")
    table = write_node_events(tmp_path / "nodes", tmp_path / "node-events.parquet", {"c1": "controllers"})
    assert table is not None
    groups = [(row["node"], row["group"]) for row in pq.read_table(table).to_pylist()]
    assert groups == [("c1", "controllers"), ("c1", "own"), ("x1", None), ("x1", "own")]
