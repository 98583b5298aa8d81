"""Nodes that write no events get theirs from what they answered and from their logs, dated by their wall clocks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.abilities import reporting_of
from harness.record.event_lines import node_events
from harness.record.recorder import DirectoryRecorder
from harness.record.run_directory import ABOUT_LOGS, EVENTS, NODE_LOG, NODE_LOGS, RunDirectory
from harness.reporting import Account, Event, Report, write_events


class LinesAsEvents:
    """Every line is an event of its own, at second 5 of the node's wall clock."""

    async def observe(self, host: Any, report: Report) -> None:
        raise AssertionError("nobody is asked here")

    def events(self, node: str, account: Account) -> Iterable[Event]:
        yield from account.observed
        if account.wall_at_zero_ns is not None:
            for path, lines in account.logs.items():
                yield from ({"event": line, "in": path, "time": 5 - account.wall_at_zero_ns} for line in lines)

    def doubts(self, account: Account) -> list[str]:
        return [f"wrote {line!r}" for line in account.console]


def run_of(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory.create(tmp_path, "storm", 1)
    recorder = DirectoryRecorder(directory, pa.int64())
    recorder.observed("a", {"event": "role", "time": 1})
    recorder.observed("a", {"event": "follower", "time": 2})
    recorder.close()
    logs = directory.nodes / "a" / NODE_LOGS / "deep"
    logs.mkdir(parents=True)
    (logs / "said.log").write_text("leader\n", encoding="utf-8")
    (logs / "packed.gz").write_bytes(b"\x1f\x8b")
    (directory.nodes / "a" / ABOUT_LOGS).write_text(json.dumps({"wall_at_zero_ns": 2}), encoding="utf-8")
    return directory


def test_answers_and_logs_become_the_events_of_a_node(tmp_path: Path) -> None:
    directory = run_of(tmp_path)
    write_events(LinesAsEvents(), directory.nodes, ["a", "b"], misdated=frozenset())
    events = [event for _, event in node_events(directory.nodes / "a" / EVENTS)]
    assert [(event["event"], event["time"]) for event in events] == [("role", 1), ("follower", 2), ("leader", 3)]
    assert events[-1]["in"] == "deep/said.log"
    assert not (directory.nodes / "b").exists(), "nothing is known of it"


def test_where_a_clock_was_made_wrong_logs_are_not_dated(tmp_path: Path) -> None:
    directory = run_of(tmp_path)
    write_events(LinesAsEvents(), directory.nodes, ["a"], misdated=frozenset({"a"}))
    events = [event["event"] for _, event in node_events(directory.nodes / "a" / EVENTS)]
    assert events == ["role", "follower"]


def test_doubts_are_told_with_the_name_of_their_node(tmp_path: Path) -> None:
    directory = run_of(tmp_path)
    (directory.nodes / "a" / NODE_LOG).write_text("no memory\n", encoding="utf-8")
    doubts = write_events(LinesAsEvents(), directory.nodes, ["a", "b"], misdated=frozenset())
    assert doubts == ("a wrote 'no memory'",)


def test_a_system_need_not_bring_any() -> None:
    assert reporting_of(object(), None) is None
