"""A run directory as a real run leaves it, made of whole cloth: 60 s, four faults, a lost write."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from checkers.log import LogChecker
from harness.operation import Operation
from harness.record.fault_row import FaultRow
from harness.record.history import HistoryWriter
from results.verdict_file import VerdictFile, write_verdict

LOG_VALUE = pa.struct(
    [
        ("message", pa.int64()),
        ("offset", pa.int64()),
        ("messages", pa.list_(pa.struct([("offset", pa.int64()), ("message", pa.int64())]))),
    ]
)
SECOND = 1_000_000_000
FAULTS = (
    ("partition", ("b1",), 8.0, 14.0, True, "b1 ⇸ b2, b3: 12 packets stopped"),
    ("kill", ("c2", "b2"), 18.5, 23.0, True, "pid 17 and 23 are gone"),
    ("clock", ("b3",), 26.0, 40.0, True, "wall clock is 4.2 s ahead"),
    ("pause", ("c1",), 44.0, 47.0, False, "no node fits: it is not known who plays the role, or all are down already"),
)


def write_history(directory: Path, seconds: float = 60.0, rate: float = 100.0) -> int:
    """Two kinds of operations with latencies that suffer under faults; returns the number of rows."""
    draw = random.Random(1729)
    events: list[tuple[int, Operation]] = []
    message = 0
    for number in range(int(seconds * rate)):
        start = int(number / rate * SECOND)
        slow = any(begin * SECOND <= start < end * SECOND for _, _, begin, end, happened, _ in FAULTS[:2] if happened)
        latency = int(draw.lognormvariate(1.2 if not slow else 3.5, 0.6) * 1e6)
        process = number % 10
        f = "send" if draw.random() < 0.6 else "poll"
        outcome = draw.choices(["ok", "fail", "info"], [1, 0.25, 0.12] if slow else [1, 0.002, 0.0])[0]
        value: dict[str, Any] = {"message": None, "offset": number, "messages": None}
        error = {"ok": None, "fail": "not-master", "info": "client-timeout"}[outcome]
        if f == "send":
            message += 1
            value = {"message": message, "offset": number if outcome == "ok" else None, "messages": None}
        elif outcome == "ok":
            value["messages"] = [{"offset": number + i, "message": message + i} for i in range(draw.randrange(12))]
        key = f"storm/{number % 4}"
        events.append((start, Operation(process, "invoke", f, {**value, "offset": None, "messages": None}, key, start)))
        stop = start + min(latency, int(9 / rate * SECOND))
        done = Operation(process, outcome, f, value, key, stop, error, "b2")  # type: ignore[arg-type]
        events.append((stop, done))
    events.sort(key=lambda event: event[0])
    writer = HistoryWriter(directory / "history.arrows", LOG_VALUE)
    retired: dict[int, int] = {}
    for _, operation in events:
        process = operation.process + 10 * retired.get(operation.process, 0)
        writer.append(operation._replace(process=process))
        if operation.type == "info":
            retired[operation.process] = retired.get(operation.process, 0) + 1
    writer.close()
    return len(events)


def write_faults(directory: Path) -> None:
    rows = []
    for number, (kind, targets, start, stop, happened, evidence) in enumerate(FAULTS):
        began = FaultRow(
            time_ns=int(start * SECOND),
            package=kind,
            number=number,
            starts=True,
            kind=kind,
            nodes=targets,
            happened=happened,
            evidence=evidence,
        )
        rows += [began, replace(began, time_ns=int(stop * SECOND), starts=False, evidence="healed")]
    rows.sort(key=lambda row: row.time_ns)
    (directory / "nemesis.jsonl").write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows))


def write_nodes(directory: Path) -> None:
    roles = {
        "b1": [(0.4, "master", 1), (14.6, "slave", 2)],
        "b2": [(0.4, "slave", 1), (12.2, "master", 2), (23.4, "slave", 3)],
        "b3": [(0.5, "slave", 1), (21.9, "master", 3)],
        "c1": [(0.2, "leader", 1)],
        "c2": [(0.2, "follower", 1), (23.3, "follower", 1)],
        "c3": [(0.2, "follower", 1)],
    }
    for node, changes in roles.items():
        folder = directory / "nodes" / node
        folder.mkdir(parents=True)
        (folder / "node.log").write_text("started\n")
        lines = [
            json.dumps({"time": int(at * SECOND), "wall": 0, "event": "role", "role": role, "master_epoch": epoch})
            if node.startswith("b")
            else json.dumps({"time": int(at * SECOND), "wall": 0, "event": role, "term": epoch})
            for at, role, epoch in changes
        ]
        (folder / "events.jsonl").write_text("\n".join(lines) + '\n{"time": 59, "ev')


def write_run(
    directory: Path, *, verdict: Verdict = Verdict.INVALID, seconds: float = 60.0, rate: float = 100.0
) -> Path:
    """All files of a run but the report."""
    directory.mkdir(parents=True, exist_ok=True)
    write_history(directory, seconds, rate)
    write_faults(directory)
    write_nodes(directory)
    scenario = {
        "system": "rocketmq",
        "workload": "log",
        "nemesis": ["partition", "kill", "clock", "pause"],
        "environment": "simulated",
        "settings": {"brokers": 3, "all_ack": True},
        "mutant": None,
        "concurrency": 10,
        "rate": 100.0,
        "time_limit_s": 60.0,
        "recovery_s": 20.0,
        "seed": 1729,
        "versions": {"python": "3.11.7", "stormproof": "0.1.0"},
        "regime": {"latency_ms": 0.3, "loss": 0.01},
        "trace_hash": "4f0c",
        "replay": "stormproof run rocketmq --workload log --nemesis partition,kill,clock,pause --seed 1729",
    }
    (directory / "scenario.json").write_text(json.dumps(scenario))
    write_verdict(directory, verdict_of(verdict))
    return directory


def verdict_of(verdict: Verdict) -> VerdictFile:
    lost = Anomaly(
        name="lost-write",
        key="storm/1",
        operations=(2310, 2317, 9000),
        because="send of message 712 was acknowledged by b2 at offset 178, later offsets were read, 178 never was",
        details={"message": 712},
    )
    anomalies = {
        "lost-write": AnomalySummary(count=14, examples=(lost, lost), meaning=LogChecker.meanings["lost-write"]),
        "duplicate": AnomalySummary(count=3, legal="a client's retry may store a message twice"),
    }
    log = CheckerResult(
        verdict=verdict,
        anomalies=anomalies if verdict is Verdict.INVALID else {"duplicate": anomalies["duplicate"]},
        statistics={"queues": 4, "acked": 3412, "read": 3398, "caught_up": {"b1": 4, "b2": 4, "b3": 4}},
    )
    reasons = ("fault pause had no effect",) if verdict is Verdict.UNKNOWN else ()
    statistics = CheckerResult(
        verdict=Verdict.UNKNOWN if verdict is Verdict.UNKNOWN else Verdict.VALID,
        reasons=reasons,
        statistics={"ok": {"send": 3412, "poll": 2201}},
    )
    return VerdictFile(
        verdict=verdict,
        reasons=reasons,
        checkers={"log": log, "statistics": statistics},
        operations={"send": {"ok": 3412, "fail": 20, "info": 7}},
        faults={"partition": {"applied": 1, "with_effect": 1}},
        versions={"python": "3.11.7", "stormproof": "0.1.0"},
    )
