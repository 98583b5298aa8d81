"""A release of BookKeeper on trial: its bookies and its client, with ZooKeeper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from harness.record.event_lines import node_events
from harness.record.run_directory import EVENTS
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("storms in containers")]

RELEASE = "4.17.2"
OLDER = ("4.17.1", "4.16.6")


def outcome_of(
    runs: Path, *nemesis: str, time_limit_s: float = 10.0, rate: float = 50.0, release: str = RELEASE, **settings: Any
) -> Outcome:
    scenario = Scenario(
        system="bookkeeper",
        workload="log",
        nemesis=nemesis,
        environment="docker",
        rate=rate,
        time_limit_s=time_limit_s,
        recovery_s=2.0,
        seed=1,
        settings={"release": release, **settings},
    )
    return run_scenario(scenario, runs=runs, options=HERE)


@pytest.mark.gate
def test_a_release_of_bookkeeper_keeps_a_log_and_says_who_owned_it(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, bookies=3, roll_entries=20)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    events = [
        event["event"]
        for broker in ("p1", "p2")
        for _, event in node_events(outcome.directory / "nodes" / broker / EVENTS)
    ]
    assert "owner" in events
    assert events.count("ledger_listed") > 1


@pytest.mark.thorough
@pytest.mark.parametrize("release", OLDER)
def test_older_releases_keep_a_log_as_well(release: str, tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, release=release, bookies=3)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.thorough
@pytest.mark.parametrize("fault", ["kill", "partition", "pause"])
def test_nothing_acknowledged_is_lost_while_owners_change(fault: str, tmp_path: Path) -> None:
    outcome = outcome_of(
        tmp_path, fault, f"{fault.replace('partition', 'isolate')} owner every 20 for 8", time_limit_s=60.0
    )
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.thorough
def test_a_writer_goes_on_in_a_ledger_that_was_ended_when_its_bookies_were_replaced(tmp_path: Path) -> None:
    """BookKeeper #4812: bookies under the old addresses, with empty disks, have never heard of the fence."""
    outcome = outcome_of(
        tmp_path,
        "wipe one of bookies every 14 for 2",
        time_limit_s=150.0,
        rate=0.6,
        bookies=3,
        ensemble=2,
        write_quorum=2,
        ack_quorum=2,
        partitions=8,
        send_share=0.6,
    )
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert {"lost-write", "unseen"}.intersection(outcome.anomalies())


@pytest.mark.gate
def test_a_release_of_bookkeeper_that_maven_does_not_find_is_refused(tmp_path: Path) -> None:
    for _ in range(2):  # Maven says it in other words once it knows.
        with pytest.raises(
            UsageError, match=r"Maven finds no org.apache.bookkeeper:bookkeeper-server:jar:0\.0\.1.*leave"
        ):
            outcome_of(tmp_path, release="0.0.1")
