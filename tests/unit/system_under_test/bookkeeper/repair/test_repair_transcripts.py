"""What auditors and workers do about lost copies, line by line; entries count from 0.

Scenarios are those of BookKeeper's description.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.bookkeeper import mutants
from system_under_test.bookkeeper.ledger.event import Publish
from system_under_test.bookkeeper.ledger.metadata import Placement
from system_under_test.bookkeeper.repair.event import Outcome
from system_under_test.bookkeeper.repair.parts import RepairParts
from system_under_test.node.mutant import find_mutant
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import LEDGER, metadata_of
from tests.unit.system_under_test.bookkeeper.repair.repair_stage import DAY_NS, TIMES, RepairStage, after, ledger_of

FIVE = ("b1", "b2", "b3", "b4", "b5")
ALL_AUDITS = replace(TIMES, entries_every_ns=DAY_NS)


def parts_of(mutant: str) -> RepairParts:
    return find_mutant(mutants, mutant).parts_of(RepairParts)


def test_a_lost_bookies_fragments_are_copied_one_after_the_other_and_then_published() -> None:
    stage = RepairStage(ledger_of("3/3/2", 12, begins=[9], ensembles=[["b1", "b4", "b3"]]), 12, FIVE)
    stage.close(11)
    auditor = stage.elect()
    stage.die("b1")
    stage.see(auditor)
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == [
        "a looks at the ledger: nothing is missing",
        "a marks the ledger for b1",
        "w → b4 copy 0-8: ok",
        "w → metadata closed at 11 0:b4+b2+b3 9:b1+b4+b3: ok",
        "w → b2 copy 9-11: ok",
        "w → metadata closed at 11 0:b4+b2+b3 9:b2+b4+b3: ok",
        "w ends: changed",
        "w ends: done",
    ]
    assert stage.entries == {"b1": "0-11", "b2": "0-11", "b3": "0-11", "b4": "0-11", "b5": ""}
    assert stage.marks == {}


def test_each_bookie_is_asked_for_its_own_ends_and_a_copy_comes_from_who_has_it() -> None:
    stage = RepairStage(metadata_of("4/2/2"), 4, FIVE)
    stage.close(3)
    stage.die("b2")
    assert stage.round() is Outcome.CHANGED
    assert stage.lines == [
        "w → b1 read 0: ok",
        "w → b1 read 3: ok",
        "w → b3 read 1: ok",
        "w → b3 b4 read 2: ok",
        "w → b4 read 3: ok",
        "w → b5 read 0: no such ledger",
        "w → b1 read 0: ok",
        "w → b5 copy 0: ok",
        "w → b5 read 1: no such entry",
        "w → b3 read 1: ok",
        "w → b5 copy 1: ok",
        "w → metadata closed at 3 0:b1+b5+b3+b4: ok",
        "w ends: changed",
    ]


def test_only_a_look_at_every_entry_finds_what_a_bookie_lost_in_between() -> None:
    stage = RepairStage(metadata_of("4/3/2"), 6, FIVE)
    stage.close(5)
    stage.lose("b2", 3)
    stage.elect()
    stage.elect(ALL_AUDITS)
    assert stage.marks[LEDGER].every_entry
    assert stage.round() is Outcome.DONE
    assert stage.repair(every_entry=True) is Outcome.DONE
    assert stage.deeds == [
        "a looks at the ledger: nothing is missing",
        "a looks at the ledger: nothing is missing",
        "a looks at every entry: b2",
        "a marks the ledger for b2",
        "w ends: done",
        "w → b2 copy 3: ok",
        "w ends: changed",
        "w ends: done",
    ]
    # b4 takes no part in entry 0, and is not blamed for it.
    assert stage.entries == {"b1": "0 2-4", "b2": "0-1 3-5", "b3": "0-2 4-5", "b4": "1-3 5", "b5": ""}


def test_where_the_auditors_host_dies_a_new_auditor_goes_on() -> None:
    stage = RepairStage(metadata_of("3/3/2"), 6, FIVE)
    stage.close(5)
    stage.elect()
    stage.die("b1")
    stage.elect()
    assert stage.deeds == [
        "a looks at the ledger: nothing is missing",
        "a marks the ledger for b1",
        "a looks at the ledger: b1",
        "a marks the ledger for b1",
    ]


@pytest.mark.parametrize("placement", Placement)
def test_a_bookie_that_lost_its_own_ends_gets_them_back(placement: Placement) -> None:
    stage = RepairStage(metadata_of("4/2/2", placement=placement), 4, FIVE)
    stage.close(3)
    stage.lose("b2", 1)
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == ["w → b2 copy 1: ok", "w ends: changed", "w ends: done"]


def test_a_check_of_the_fragments_ends_alone_misses_what_a_bookie_lost_of_its_own() -> None:
    stage = RepairStage(metadata_of("4/2/2"), 4, FIVE, parts_of("fragment-wide-check"))
    stage.close(3)
    stage.lose("b2", 1)
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == ["w ends: done"]
    stage.lose("b2", 0)
    assert stage.repair() is Outcome.DONE
    assert stage.deeds[1:] == ["w → b2 copy 0-1: ok", "w ends: changed", "w ends: done"]


def test_a_harmed_copy_is_written_anew_and_copied_from_nowhere() -> None:
    stage = RepairStage(metadata_of("3/3/2"), 3, FIVE)
    stage.close(2)
    stage.bookies["b1"].harm(2)
    stage.bookies["b2"].harm(2)
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == [
        "w → b1 copy 2: ok",
        "w → b2 copy 2: ok",
        "w ends: changed",
        "w ends: done",
    ]
    assert stage.entries["b1"] == stage.entries["b2"] == "0-2"


def test_a_bookie_that_takes_nothing_is_replaced_and_read() -> None:
    stage = RepairStage(metadata_of("3/2/2"), 3, FIVE)
    stage.close(2)
    stage.bookies["b1"].is_read_only = True
    stage.lose("b1", 2)
    stage.die("b2")
    assert stage.repair() is Outcome.DONE
    assert stage.store.metadata.fragments[0].ensemble == ("b4", "b5", "b3")
    assert stage.entries == {"b1": "0", "b2": "0-1", "b3": "1-2", "b4": "0 2", "b5": "0-1"}


def test_an_entry_that_nobody_has_holds_nothing_up() -> None:
    stage = RepairStage(metadata_of("3/2/2"), 6, FIVE)
    stage.close(5)
    stage.lose("b1", 2)
    stage.lose("b3", 2)
    stage.die("b2")
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == [
        "w → b4 copy 0-1 3-4: ok",
        "w → metadata closed at 5 0:b1+b4+b3: ok",
        "w ends: changed",
        "w ends: done",
    ]


def test_an_entry_that_somebody_may_still_have_holds_the_ensemble_back() -> None:
    stage = RepairStage(metadata_of("3/2/2"), 3, FIVE)
    stage.close(2)
    stage.die("b1", "b2")
    assert stage.round() is Outcome.STUCK
    assert stage.store.metadata.fragments[0].ensemble == ("b1", "b2", "b3")
    assert stage.entries["b4"] == "2"
    assert stage.entries["b5"] == "1"
    stage.available["b1"] = None
    assert stage.repair() is Outcome.DONE
    assert stage.store.metadata.fragments[0].ensemble == ("b1", "b4", "b3")
    assert stage.entries["b4"] == "0-2"


def test_what_a_bookie_had_whose_disk_is_gone_is_lost() -> None:
    stage = RepairStage(metadata_of("3/2/2"), 3, FIVE)
    stage.close(2)
    for name in ("b1", "b2"):
        stage.die(name)
        stage.bookies[name].is_gone = True
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == [
        "w misses 0 everywhere",
        "w → b5 copy 1: ok",
        "w → b4 copy 2: ok",
        "w → metadata closed at 2 0:b4+b5+b3: ok",
        "w ends: changed",
        "w misses 0 everywhere",
        "w ends: done",
    ]


def test_where_no_bookie_is_free_the_ledger_stays_marked() -> None:
    stage = RepairStage(metadata_of("3/2/2"), 3, FIVE[:3])
    stage.close(2)
    stage.die("b3")
    assert stage.round() is Outcome.STUCK
    assert stage.deeds == ["w ends: stuck"]


def test_a_look_that_missed_an_answer_finds_nothing_certain() -> None:
    stage = RepairStage(metadata_of("3/3/2"), 3, FIVE)
    stage.close(2)
    stage.silent.add("b2")
    assert stage.round() is Outcome.STUCK
    stage.silent.clear()
    assert stage.round() is Outcome.DONE


def test_older_fragments_of_an_open_ledger_are_repaired_and_the_last_one_waits_for_its_writer() -> None:
    stage = RepairStage(ledger_of("3/3/2", 6, begins=[4], ensembles=[["b1", "b4", "b3"]]), 6, FIVE)
    stage.die("b1")
    assert stage.round() is Outcome.CHANGED
    assert stage.round() is Outcome.POSTPONED
    assert stage.round(grace_is_over=True) is Outcome.CHANGED
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == [
        "w → b4 copy 0-3: ok",
        "w → metadata open 0:b4+b2+b3 4:b1+b4+b3: ok",
        "w ends: changed",
        "w ends: postponed",
        "w recovers the ledger: closed",
        "w ends: changed",
        "w → b2 copy 4-5: ok",
        "w → metadata closed at 5 0:b4+b2+b3 4:b2+b4+b3: ok",
        "w ends: changed",
        "w ends: done",
    ]


def test_beyond_the_lac_of_an_open_ledger_nothing_is_copied() -> None:
    """The last entry tells that the one before is confirmed: the bookies know of no more."""
    stage = RepairStage(metadata_of("3/3/2"), 6, FIVE)
    stage.lose("b1", 3, 4, 5)
    assert stage.round() is Outcome.POSTPONED
    assert stage.round(grace_is_over=True) is Outcome.CHANGED
    assert stage.round(grace_is_over=True) is Outcome.DONE
    assert stage.entries["b1"] == "0-4"
    assert stage.deeds[1] == "w → b1 copy 3-4: ok"
    # Without the copies nobody would know of more than entry 2 at b1, and of entry 4 at the others.
    assert [line for line in stage.lines if "LAC" in line] == [
        "w → b1 LAC: 1",
        "w → b2 b3 LAC: 4",
        "w → b1 LAC: 1",
        "w → b2 b3 LAC: 4",
        "w → b1 LAC: 3",
        "w → b2 b3 LAC: 4",
    ]


def test_a_fragment_without_entries_needs_no_bookies_once_the_ledger_is_closed() -> None:
    stage = RepairStage(ledger_of("3/3/2", 4, begins=[4], ensembles=[["b5", "b4", "b3"]]), 4, FIVE)
    stage.close(3)
    stage.die("b5")
    stage.elect()
    assert stage.marks == {}
    assert stage.round() is Outcome.DONE


def test_a_ledger_that_somebody_else_changed_is_looked_at_again() -> None:
    stage = RepairStage(ledger_of("3/3/2", 6, begins=[4], ensembles=[["b1", "b4", "b3"]]), 6, FIVE)
    stage.die("b2")

    def others_first(effect: object) -> bool:
        if isinstance(effect, Publish) and len(stage.store.history) == 1:
            stage.store.put(stage.store.metadata.in_recovery())
        return False

    assert stage.round(until=others_first) is Outcome.CHANGED
    assert stage.repair() is Outcome.DONE
    assert stage.deeds == [
        "w → b4 copy 0-3: ok",
        "w → metadata open 0:b1+b4+b3 4:b1+b4+b3: does not fit",
        "w ends: changed",
        "w → metadata in-recovery 0:b1+b4+b3 4:b1+b4+b3: ok",
        "w ends: changed",
        "w ends: done",
    ]


def test_a_bookie_in_limbo_is_given_what_it_lost_of_its_own() -> None:
    stage = RepairStage(metadata_of("3/3/2"), 6, FIVE)
    stage.close(5)
    stage.lose("b1", 2, 5)
    stage.lose("b2", 5)
    assert stage.round(only="b1", every_entry=True) is Outcome.CHANGED
    assert stage.round(only="b1", every_entry=True) is Outcome.DONE
    assert stage.deeds == ["w → b1 copy 2 5: ok", "w ends: changed", "w ends: done"]


def killed_at_each_effect(parts: RepairParts) -> list[str]:
    """What ensembles name bookies for that these do not have, after a worker was killed before its n-th effect."""
    found = []
    for number in range(200):
        stage = RepairStage(metadata_of("3/2/2"), 6, FIVE, parts)
        stage.close(5)
        stage.die("b1")
        outcome = stage.round(until=after(number))
        ensemble = stage.store.metadata.fragments[0].ensemble
        newcomer = next((bookie for bookie in ensemble if bookie not in FIVE[:3]), None)
        if newcomer is not None and stage.entries[newcomer] != "0 2-3 5":
            found.append(f"{newcomer} has {stage.entries[newcomer]}")
        if outcome is not None:
            return found
    raise AssertionError("the round does not end")


def test_an_ensemble_never_names_a_bookie_that_has_not_got_its_entries() -> None:
    assert killed_at_each_effect(RepairParts()) == []
    assert len(killed_at_each_effect(parts_of("ensemble-before-copy"))) > 8
