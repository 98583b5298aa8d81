"""The public DLedger library on trial: groups of its members alone, and of these and ours."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from checkers.api.verdict import Verdict
from harness.record.event_lines import node_events
from harness.record.run_directory import EVENTS
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario
from tests.docker.dledger_files import Checksums, stored

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("storms in containers")]

RELEASE = "0.3.1"
NODES = ("n1", "n2", "n3")


def outcome_of(runs: Path, *nemesis: str, time_limit_s: float = 8.0, **settings: Any) -> Outcome:
    scenario = Scenario(
        system="dledger",
        workload="log",
        nemesis=nemesis,
        environment="docker",
        rate=50.0,
        time_limit_s=time_limit_s,
        recovery_s=2.0,
        seed=1,
        settings={"release": RELEASE, **settings},
    )
    return run_scenario(scenario, runs=runs, options=HERE)


def require_same_logs(outcome: Outcome, public: tuple[str, ...]) -> None:
    """All members hold the same entries, but for what ours have dropped, and for the first entries of leaders that were
    elected while others were ended already; only ours have checksums."""
    logs = {node: stored(outcome.directory / "nodes" / node) for node in NODES}
    begin = max(min(entry.index for entry in log) for log in logs.values())
    held = {node: [entry for entry in log if entry.index >= begin] for node, log in logs.items()}
    common = min(map(len, held.values()))
    assert held["n1"][:common] == held["n2"][:common] == held["n3"][:common]
    assert common >= 50
    assert not any(entry.body for entries in held.values() for entry in entries[common:])
    for node in NODES:
        for entry, checksums in logs[node].items():
            if node in public:
                assert checksums == Checksums(0, 0)
            else:
                assert checksums.body == zlib.crc32(entry.body)
                assert checksums.chain


@pytest.mark.gate
def test_a_group_of_the_library_serves_and_says_who_led(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, time_scale=1.0)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    events = [event for node in NODES for _, event in node_events(outcome.directory / "nodes" / node / EVENTS)]
    assert any(event["event"] == "leader" for event in events)
    require_same_logs(outcome, NODES)


@pytest.mark.gate
def test_members_of_both_kinds_hold_the_same_log_after_their_leader_was_killed(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "kill leader every 5 for 2", originals=1, time_scale=0.5, time_limit_s=12.0)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert outcome.faults["kill"]["with_effect"]
    require_same_logs(outcome, ("n1",))


@pytest.mark.thorough
@pytest.mark.parametrize("originals", [1, 2])
@pytest.mark.parametrize("fault", ["isolate leader", "pause leader", "kill leader", "power off one of members"])
def test_members_of_both_kinds_repair_each_other_while_leadership_is_handed_back(
    originals: int, fault: str, tmp_path: Path
) -> None:
    outcome = outcome_of(tmp_path, f"{fault} every 8 for 4", originals=originals, preferred=1, time_limit_s=25.0)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    require_same_logs(outcome, NODES[:originals])


@pytest.mark.thorough
def test_readers_of_the_library_are_shown_what_no_majority_has(tmp_path: Path) -> None:
    """A leader that is cut off shows what it takes, and loses it when it is back."""
    outcome = outcome_of(tmp_path, "isolate leader every 8 for 5", time_limit_s=30.0)
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "dirty-read" in outcome.anomalies()
    require_same_logs(outcome, NODES)
