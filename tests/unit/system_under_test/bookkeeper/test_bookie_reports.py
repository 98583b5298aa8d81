"""Bookies report their ledgers entry by entry, and the checker of nodes compares them."""

from __future__ import annotations

import json
from typing import Any

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.replication import ReplicationChecker
from harness.record.node_events import node_events_table
from system_under_test.bookkeeper.bookie.message import AddRequest, Code, ReadLacRequest, WriteLacRequest
from system_under_test.bookkeeper.entry import NOTHING, Digest, Entry, encode_entry
from tests.unit.system_under_test.bookkeeper.bookie_stage import PORT, Stage, play

NAMES = ("b1", "b2", "b3")
LEDGER, ENTRIES = 5, 12
Events = dict[str, list[dict[str, Any]]]


async def write(stage: Stage, *entries: int, is_recovery: bool = False) -> None:
    """Two of three bookies have each entry, and each confirms the one before."""
    for entry in entries:
        payload = b"%d" % entry
        data = encode_entry(Entry(LEDGER, entry, max(NOTHING, entry - 1), 9 * entry + 9, payload), Digest())
        for name in (NAMES[entry % 3], NAMES[(entry + 1) % 3]):
            address = f"{name}:{PORT}"
            request = AddRequest(bookie=await stage.identity(address), data=data, is_recovery=is_recovery)
            assert (await stage.client.ask(address, request, 5.0)).code is Code.OK


def reported() -> Events:
    """Of a ledger that a bookie which lost power and another that was wiped have a part in."""
    events: Events = {}

    async def story(stage: Stage) -> None:
        await write(stage, *range(ENTRIES))
        await stage.again("power_off")
        await write(stage, ENTRIES)
        for name in NAMES:
            address = f"{name}:{PORT}"
            request = ReadLacRequest(bookie=await stage.identity(address), ledger=LEDGER, fences=True)
            assert (await stage.client.ask(address, request, 5.0)).code is Code.OK
        await stage.environment.power_off(["b1"])
        stage.environment.disk_of("b1").put_back({})
        await stage.again("power_off")
        await write(stage, *range(ENTRIES + 1), is_recovery=True)
        events.update(
            {node: [json.loads(line) for line in lines] for node, lines in stage.environment.events().items()}
        )

    play(story, names=NAMES)
    return events


def checked(events: Events) -> CheckerResult:
    run = RunUnderCheck(node_events=node_events_table(events, {}))
    return ReplicationChecker().check(CheckRequest(history=run.node_events, run=run), InProcessEngine())


def test_what_healthy_bookies_report_contradicts_nothing() -> None:
    events = reported()
    result = checked(events)
    assert result.verdict is Verdict.VALID, result
    for name in NAMES:
        entries = {event["start"] for event in events[name] if event["event"] == "written"}
        assert entries == {entry for entry in range(ENTRIES + 1) if name in (NAMES[entry % 3], NAMES[(entry + 1) % 3])}
        assert [event["ledger"] for event in events[name] if event["event"] == "fenced"] == [LEDGER]


def test_an_entry_that_is_another_one_at_one_bookie_is_found_with_the_name_of_its_ledger() -> None:
    events = reported()
    entry = next(event for event in events["b2"] if event["event"] == "written" and event["start"] == 4)
    entry["checksum"] += 1
    (summary,) = checked(events).anomalies.values()
    (anomaly,) = summary.examples
    assert anomaly.name == "diverging-logs"
    assert anomaly.because.startswith("entries 4 to 5 of ledger-5, confirmed at both, are not the same at b2 and b3: ")


def test_a_fence_is_reported_again_by_the_process_that_finds_it_on_its_disk() -> None:
    fences: list[list[int]] = []

    async def story(stage: Stage) -> None:
        request = ReadLacRequest(bookie=await stage.identity(f"b1:{PORT}"), ledger=LEDGER, fences=True)
        assert (await stage.client.ask(f"b1:{PORT}", request, 5.0)).code is Code.OK
        await stage.again("power_off")
        events = map(json.loads, stage.environment.events()["b1"])
        fences.extend(event["fences"] for event in events if event["event"] == "remembers")

    play(story, names=NAMES)
    assert fences == [[], [LEDGER]]


def test_a_ledger_is_reported_also_where_a_bookie_heard_of_it_by_its_lac_alone() -> None:
    async def story(stage: Stage) -> None:
        request = WriteLacRequest(bookie=await stage.identity(f"b1:{PORT}"), ledger=LEDGER, lac=3)
        assert (await stage.client.ask(f"b1:{PORT}", request, 5.0)).code is Code.OK
        events = [json.loads(line) for line in stage.environment.events()["b1"]]
        assert [each["event"] for each in events if each.get("log") == f"ledger-{LEDGER}"] == ["log", "confirmed"]

    play(story, names=NAMES)
