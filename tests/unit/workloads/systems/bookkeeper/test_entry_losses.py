"""Which entries faults may have taken for good, by what bookies report: small stories of who had what, and lost it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record.fault_log import FaultWindow
from harness.record.node_events import TableOfReports, node_events_table
from workloads.systems.bookkeeper.legal_loss import legal_loss
from workloads.systems.bookkeeper.settings import BookkeeperSettings

SECOND_NS = 1_000_000_000
LOG = "ledger-7"


def reports(story: str) -> TableOfReports:
    """A line for each node, or more: its events, each with its time in tenths of a second.

    `10 w3`: it wrote entry 3. `40 s0-2,5`: it started and has entries 0 to 2 and 5. `40 s`: it started with nothing.
    `50 c4`: it knows that the ledger ends behind entry 4.
    """
    events: dict[str, list[dict[str, Any]]] = {}
    for line in story.strip().splitlines():
        node, _, said = line.strip().partition(": ")
        for each in said.split(" · "):
            time, what = each.split()
            at = {"time": int(time) * SECOND_NS // 10, "log": LOG}
            of = events.setdefault(node, [])
            if what[0] == "w":
                of.append({**at, "event": "written", "start": int(what[1:]), "end": int(what[1:]) + 1, "checksum": 1})
            elif what[0] == "c":
                of.append({**at, "event": "closed", "end": int(what[1:]) + 1})
            else:
                runs = [run.partition("-") for run in what[1:].split(",") if run]
                bounds = [int(end) for first, _, last in runs for end in (first, last or first)]
                if bounds:
                    of.append({**at, "event": "recovered", "end": bounds[-1] + 1, "entries": bounds})
                of.append({**at, "event": "logs", "logs": [LOG] if bounds else []})
    return TableOfReports(node_events_table(events, {}))


def fault(text: str) -> FaultWindow:
    """`lost-disk b1,b2 30-35`: in tenths of a second."""
    kind, nodes, times = text.split()
    start, stop = (int(time) * SECOND_NS // 10 for time in times.split("-"))
    return FaultWindow(kind=kind, nodes=tuple(nodes.split(",")), start_ns=start, stop_ns=stop)


ON_TWO = """
    b1: 10 w0 · 20 w1 · 21 w2 · 40 s
    b2: 10 w0 · 20 w1 · 21 w2 · 45 s
    b3: 10 w0 · 21 w2
"""
ONLY_B1_CAME_BACK = """
    b1: 10 w0 · 20 w1 · 40 s0
    b2: 10 w0 · 20 w1
    b3: 10 w0
"""
CLOSED_BEFORE = """
    b1: 10 w0 · 20 w1 · 21 w2 · 40 s0
    b2: 10 w0 · 20 w1 · 21 w2
    b3: 10 w0 · 21 w2
    p1: 50 c0
"""
BOTH = ("lost-disk b1 30-35", "lost-disk b2 31-36")


@pytest.mark.parametrize(
    ("story", "faults", "settings", "reason"),
    [
        pytest.param(
            ON_TWO,
            BOTH,
            {},
            "entry 1 of ledger 7: no bookie was left that had it: b1 (lost-disk at 3.0 s), b2 (lost-disk at 3.1 s)",
            id="what was on just the disks that were lost",
        ),
        pytest.param(
            ON_TWO, ("wipe b1,b2 30-36",), {}, "entry 1 of ledger 7", id="what bookies had that were replaced"
        ),
        pytest.param(ON_TWO, BOTH[:1], {}, "", id="one disk lost, and nothing explains the other"),
        pytest.param(ON_TWO, ("power b1,b2 30-35",), {}, "", id="a loss of power takes nothing that was synced"),
        pytest.param(
            ON_TWO, ("power b1,b2 30-35",), {"journal_sync": False}, "entry 1 of ledger 7", id="what was not synced"
        ),
        pytest.param(ON_TWO + "b4: 33 w1", BOTH, {}, "", id="it was copied in between"),
        pytest.param(
            ON_TWO + "b4: 33 w1 · 60 s",
            (*BOTH, "lost-disk b4 50-55"),
            {},
            "entry 1 of ledger 7",
            id="the copy was lost as well",
        ),
        pytest.param(ON_TWO, BOTH, {"ack_quorum": 3}, "", id="who acknowledged it cannot have been only these"),
        pytest.param(
            "b1: 10 w0 · 20 w1 · 40 s0 · 50 w2 · 60 s0",
            ("lost-disk b1 30-35",),
            {"ack_quorum": 1},
            "entry 1 of ledger 7",
            id="a fault explains no loss of what was written after it",
        ),
        pytest.param(
            "b1: 10 w0 · 20 w1 · 21 w2 · 22 w3 · 40 s1",
            ("old-disk b1 30-35",),
            {"ack_quorum": 1},
            "entries 0, 2 to 3 of ledger 7",
            id="runs of entries",
        ),
        pytest.param(
            ONLY_B1_CAME_BACK,
            ("old-disk b1 30-35", "lost-disk b2 31-36"),
            {},
            "entry 1 of ledger 7",
            id="a bookie that never started again has nothing",
        ),
        pytest.param(ONLY_B1_CAME_BACK, ("old-disk b1 30-35", "kill b2 31-36"), {}, "", id="killed bookies have it"),
        pytest.param(
            "b1: 10 w0 · 40 w1\nb2: 10 w0 · 40 w1",
            ("bit-rot b1,b2 20-21",),
            {},
            "entry 0 of ledger 7",
            id="what has rotted, though the bookies say that they have it",
        ),
        pytest.param(
            "b1: 10 w0 · 30 w0 · 50 s0\nb2: 10 w0 · 50 s0",
            ("bit-rot b1,b2 20-21",),
            {},
            "",
            id="what has rotted and was copied again",
        ),
        pytest.param(
            "b1: 10 w0 · 22 w1 · 40 w2\nb2: 10 w0 · 22 w1 · 40 w2",
            ("misdirected-writes b1,b2 20-30",),
            {},
            "entries 0 to 1 of ledger 7",
            id="what misdirected writes may have hit",
        ),
        pytest.param(
            CLOSED_BEFORE,
            ("old-disk b1 30-35",),
            {},
            "entries 1 to 2 of ledger 7, where the ledger ends: too few bookies were left that knew of it: "
            "b1 (old-disk at 3.0 s)",
            id="the ledger was closed before an entry that a bookie does not know it had",
        ),
        pytest.param(CLOSED_BEFORE, ("old-disk b1 60-65",), {}, "", id="it was closed before any damage"),
        pytest.param(CLOSED_BEFORE, ("lost-disk b1 30-35",), {}, "", id="a bookie that is gone denies nothing"),
        pytest.param(
            CLOSED_BEFORE.replace("c0", "c1"),
            ("old-disk b1 30-35",),
            {},
            "",
            id="two bookies knew of the entry with which it was closed, and nobody lost it",
        ),
        pytest.param(
            "b1: 10 w0 · 12 s0 · 40 w1\nb2: 10 w0 · 40 w1\nb3: 10 w0\np2: 30 c0",
            ("old-disk b1 5-11",),
            {},
            "entry 1 of ledger 7, where the ledger ends",
            id="a bookie that had forgotten the fence took it",
        ),
    ],
)
def test_what_may_be_lost_entry_by_entry(
    story: str, faults: tuple[str, ...], settings: dict[str, int], reason: str
) -> None:
    loss = legal_loss(BookkeeperSettings(**settings), [fault(each) for each in faults], reports(story))  # type: ignore[arg-type]
    reasons = {excuse.reason for excuse in loss.excuses if "lost-write" in excuse.anomalies}
    assert len(reasons) == bool(reason)
    assert not loss.anything and all(each.startswith(reason) for each in reasons)


def test_an_excuse_is_of_when_the_entries_were_written_and_of_what_was_seen_once_they_were_lost() -> None:
    loss = legal_loss(BookkeeperSettings(), [fault(each) for each in BOTH], reports(ON_TWO))
    spans = {excuse.anomalies: (excuse.from_ns, excuse.until_ns, excuse.seen_from_ns) for excuse in loss.excuses}
    second, lost_ns = 2 * SECOND_NS, 31 * SECOND_NS // 10
    assert spans["lost-write", "unseen", "dirty-read"] == (second, second, 0)
    (others,) = [bounds for anomalies, bounds in spans.items() if "poll-skip" in anomalies]
    assert others == (second, 1 << 62, lost_ns)
    assert not any("beyond-end" in anomalies for anomalies in spans)


def test_only_a_ledger_that_ends_before_a_lost_entry_may_end_before_what_was_acknowledged() -> None:
    loss = legal_loss(BookkeeperSettings(), [fault("old-disk b1 30-35")], reports(CLOSED_BEFORE))
    (excuse,) = [excuse for excuse in loss.excuses if "beyond-end" in excuse.anomalies]
    assert excuse.seen_from_ns == 3 * SECOND_NS
    (fence,) = [excuse for excuse in loss.excuses if "fenced-add" in excuse.anomalies]
    assert (fence.nodes, fence.from_ns) == (("b1",), 3 * SECOND_NS)


def test_many_runs_of_lost_entries_are_named_by_the_first_few() -> None:
    written = " · ".join(f"{entry + 1} w{entry}" for entry in range(0, 14, 2))
    loss = legal_loss(BookkeeperSettings(ack_quorum=1), [fault("lost-disk b1 30-31")], reports(f"b1: {written} · 40 s"))
    excuses = [excuse for excuse in loss.excuses if "lost-write" in excuse.anomalies]
    assert len(excuses) == 7
    assert {excuse.reason.partition(":")[0] for excuse in excuses} == {
        "entries 0, 2, 4, 6, 8 and 2 more runs of ledger 7"
    }
