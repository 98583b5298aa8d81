"""BookKeeper comes through storms of its three kinds of nodes, and its planted bugs do not."""

from __future__ import annotations

import json
import re

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from results.report.run_files import role_spans
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry
from system_under_test.bookkeeper.bookie.store import Store
from system_under_test.bookkeeper.repair.round import RepairRound
from workloads.systems.bookkeeper import copies


def outcome_of(
    *schedule: str, mutant: str | None = None, workload: str = "log", seed: int = 1, **settings: SettingValue
) -> StormOutcome:
    scenario = Scenario(
        system="bookkeeper",
        workload=workload,
        nemesis=() if schedule else ("partition", "kill", "pause", "power"),
        schedule=schedule,
        settings=settings,
        mutant=mutant,
        rate=50,
        time_limit_s=15,
        seed=seed,
    )
    return blown_and_judged(scenario, registry.resolve(scenario))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"roll_entries": 5, "batch_share": 0.5},
        pytest.param({"readers": "bookies", "explicit_lac_s": 0.2}, marks=pytest.mark.gate),
        pytest.param({"readers": "bookies", "ensemble": 4, "roll_entries": 20}, marks=pytest.mark.gate),
        pytest.param({"ensemble": 5, "placement": "entry"}, marks=pytest.mark.gate),
        pytest.param({"ensemble": 2, "write_quorum": 2, "ack_quorum": 1, "bookies": 3}, marks=pytest.mark.gate),
        pytest.param({"partitions": 3, "queues": 3, "brokers": 3}, marks=pytest.mark.gate),
    ],
    ids=lambda settings: " ".join(f"{name}={value}" for name, value in settings.items()),
)
def test_it_keeps_its_promises(settings: dict[str, SettingValue]) -> None:
    outcome = outcome_of(**settings)
    assert outcome.verdict is Verdict.VALID, outcome.words()


def test_an_owner_that_was_paused_finds_its_ledger_fenced_and_nothing_is_lost() -> None:
    outcome = outcome_of("3 for 6 pause owner [pause 0]", session_timeout_s=2.0)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    reached = outcome.blown.reached
    assert {"recovery-marked", "ledger-closed", "ledger-lost", "lost-ownership"} <= set(reached)


def test_bookies_that_are_replaced_leave_every_entry_on_others() -> None:
    replaced = ("3 for 4 shrink one of bookies [membership 0]", "11 for 4 wipe one of bookies [membership 1]")
    outcome = outcome_of(*replaced, session_timeout_s=2.0)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert {"ledger-marked", "fragment-copied", "fragment-published", "ledger-unmarked"} <= set(outcome.blown.reached)


@pytest.mark.parametrize("mutant", [None, "lac-is-lap"])
def test_a_reader_at_the_bookies_sees_nothing_that_is_not_acknowledged(mutant: str | None) -> None:
    """The owner's entries come to one bookie alone, until it gives their ledger up."""
    cuts = (f"4 for 5 cut link p1 to {bookie} [partition {number}]" for number, bookie in enumerate(("b2", "b3")))
    outcome = outcome_of(*cuts, mutant=mutant, readers="bookies", explicit_lac_s=0.5, bookies=3, brokers=1)
    assert outcome.verdict is (Verdict.VALID if mutant is None else Verdict.INVALID), outcome.words()
    assert ("dirty-read" in outcome.anomalies) is (mutant is not None)


@pytest.mark.parametrize("mutant", [None, "digest-without-id"])
def test_an_entry_that_a_disk_put_in_the_place_of_another_is_never_taken_for_it(mutant: str | None) -> None:
    struck = ("3 for 9 misdirect writes of b1 one_in=3 [misdirected-writes 0]", "9 for 1 kill b1 [kill 0]")
    outcome = outcome_of(*struck, mutant=mutant)
    assert outcome.verdict is (Verdict.VALID if mutant is None else Verdict.INVALID), outcome.words()


def test_each_declared_role_that_nodes_play_is_there_as_spans() -> None:
    outcome = outcome_of("3 for 6 pause owner [pause 0]", session_timeout_s=2.0, partitions=2, queues=2)
    events = {node: list(map(json.loads, lines)) for node, lines in outcome.blown.events.items()}
    spans = [span for node in events for span in role_spans(node, events[node], (), 20.0)]
    assert {"owner", "auditor", "leader"} <= {span.role for span in spans}
    assert {span.node for span in spans if span.role == "owner"} == {"p1", "p2"}
    paused = [span for span in spans if span.role == "owner" and span.stop_s < 20.0]
    assert all(span.stop_s > 9.0 for span in paused), "who is paused still takes itself for the owner"


def test_registers_in_the_metadata_store_are_linearizable() -> None:
    outcome = outcome_of(workload="register")
    assert outcome.verdict is Verdict.VALID, outcome.words()


def test_what_bookies_lost_with_their_power_and_may_lose_is_read_over_and_not_waited_for() -> None:
    outcome = outcome_of("8 for 2 power off bookies [power 0]", journal_sync=False)
    assert outcome.verdict is Verdict.VALID, outcome.words()


WIPED = "6 for 1 wipe disks of b1 [lost-disk 0]"
ROTTEN = "10 for 1 rot disks of b1 bits=20 [bit-rot 0]"


@pytest.mark.parametrize(
    ("schedule", "check_entries_s", "lacks"),
    [
        (WIPED, 0.0, r"does not live, and should have entries of ledger \d"),
        pytest.param(ROTTEN, 0.0, None, marks=pytest.mark.gate),
        pytest.param(ROTTEN, 5.0, r"lacks entry \d+ of ledger \d", marks=pytest.mark.gate),
    ],
)
@pytest.mark.parametrize("repairs", [True, False])
def test_copies_that_do_not_come_back_are_found_by_what_lacks(
    schedule: str, check_entries_s: float, lacks: str | None, repairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not repairs:
        monkeypatch.setattr(RepairRound, "steps", ())
    outcome = outcome_of(schedule, check_entries_s=check_entries_s)
    if repairs or lacks is None:
        assert outcome.verdict is Verdict.VALID and outcome.blown.facts.lack is None, outcome.words()
        return
    assert set(outcome.anomalies) == {"under-replicated"}
    lack = outcome.blown.facts.lack
    assert lack is not None and re.fullmatch(rf"bookie [0-9a-f]+ \(b1\) {lacks}", lack.because)
    assert lack.because in outcome.words()


ON_TWO_DISKS = {"bookies": 3, "ensemble": 2, "write_quorum": 2}


def test_an_entry_that_was_on_lost_disks_alone_is_excused_and_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    wiped = tuple(f"6 for 1 wipe disks of {node} [lost-disk {number}]" for number, node in enumerate(("b1", "b2")))
    outcome = outcome_of(*wiped, **ON_TWO_DISKS)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert re.search(r"lost-write: \d+ found, legal here: entr(y|ies) [\d ,to]+ of ledger \d+", outcome.words())
    assert re.search(r"no bookie was left that had it: b1 \(lost-disk at \S+ s\), b2 \(", outcome.words())

    def denied(self: Store, ledger: int, entry: int) -> bytes | None:
        return None if entry == 5 else read(self, ledger, entry)

    read = Store.read
    monkeypatch.setattr(Store, "read", denied)
    outcome = outcome_of(*wiped, **ON_TWO_DISKS)
    assert outcome.verdict is Verdict.INVALID
    assert outcome.anomalies["lost-write"] > 0, "entry 5 of the ledger that b3 has"


def test_what_a_system_lacks_by_a_name_that_it_does_not_declare_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RepairRound, "steps", ())
    monkeypatch.setattr(copies, "UNDER_REPLICATED", "unheld")
    outcome = outcome_of(WIPED)
    assert outcome.verdict is Verdict.UNKNOWN and outcome.blown.facts.lack is None
    assert "unknown lack 'unheld'; known are: under-replicated" in outcome.words()
