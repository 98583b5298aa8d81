"""What who writes or recovers a ledger says to its bookies and to the metadata store, line by line.

Scenarios are those of BookKeeper's description; entries count from 0.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from system_under_test.bookkeeper.ledger.event import Writable
from system_under_test.bookkeeper.ledger.writer import Bounds, Phase
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import FakeBookie, metadata_of
from tests.unit.system_under_test.bookkeeper.ledger.ledger_stage import (
    Stage,
    adds,
    both,
    metadata,
    of,
    shortened,
    to,
)


def lines(stage: Stage) -> list[str]:
    return shortened(stage.transcript)


def test_entries_are_acknowledged_in_their_order_and_the_next_one_shows_it() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append(5)
    stage.deliver(both(to("b1", "b2"), adds(0, 1, 3)))
    assert (stage.writer.lap, stage.writer.lac) == (4, 1)
    stage.append()
    stage.deliver(both(to("b3"), adds(5)))
    stage.deliver(both(to("b3", "b1"), adds(2)))
    assert lines(stage) == [
        "W → b1 b2 add 0 (LAC -1): ok",
        "W acknowledges 0",
        "W → b2 b1 add 1 (LAC -1): ok",
        "W acknowledges 1",
        "W → b1 b2 add 3 (LAC -1): ok",
        "W → b3 add 5 (LAC 1): ok",
        "W → b3 b1 add 2 (LAC -1): ok",
        "W acknowledges 2",
        "W acknowledges 3",
    ]


def test_bookies_hear_of_the_lac_where_no_entry_carries_it() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.lac_due()
    stage.append(2)
    stage.deliver(adds(0))
    stage.lac_due()
    stage.deliver(adds(1))
    stage.append()
    stage.lac_due()
    stage.deliver()
    stage.lac_due()
    stage.lose(to("b3"))
    stage.deliver()
    stage.lac_due()
    stage.deliver()
    stage.lac_due()
    assert not stage.wire
    assert lines(stage) == [
        "W → b1 b2 add 0 (LAC -1): ok",
        "W acknowledges 0",
        "W → b3 add 0 (LAC -1): ok",
        "W → b2 b3 add 1 (LAC -1): ok",
        "W acknowledges 1",
        "W → b1 add 1 (LAC -1): ok",
        "W → b1 b2 b3 LAC is 0: ok",
        "W → b3 b1 add 2 (LAC 1): ok",
        "W acknowledges 2",
        "W → b2 add 2 (LAC 1): ok",
        "W → b3 LAC is 2: lost",
        "W → b1 b2 b3 LAC is 2: ok",
    ]


def test_a_writer_that_hears_of_the_fence_by_its_lac_ends() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.recovery("R")
    stage.deliver(of("R"))
    stage.lac_due()
    stage.deliver()
    assert stage.writer.phase is Phase.OVER
    assert lines(stage)[-3:] == [
        "W → b1 LAC is 0: fenced",
        "W ends: a bookie was fenced",
        "W → b2 b3 LAC is 0: fenced",
    ]


def test_a_new_ensemble_turns_the_write_sets_and_only_acknowledgements_of_theirs_count() -> None:
    stage = Stage(metadata_of("4/2/2"), "b5")
    stage.append(2)
    stage.deliver()
    stage.append(2)
    stage.deliver(both(adds(2), to("b3")))
    stage.deliver(both(adds(3), to("b1")))
    stage.lose(both(adds(2), to("b4")))
    stage.deliver()
    assert lines(stage)[4:] == [
        "W → b3 add 2 (LAC 1): ok",
        "W → b1 add 3 (LAC 1): ok",
        "W → b4 add 2 (LAC 1): lost",
        "W → b4 add 3 (LAC 1): ok",
        "W → metadata open 0:b1+b2+b3+b4 2:b1+b2+b3+b5: ok",
        "W → b1 b2 add 2 (LAC 1): ok",
        "W acknowledges 2",
        "W → b2 b3 add 3 (LAC 1): ok",
        "W acknowledges 3",
    ]


def test_acknowledgements_are_held_while_the_ensemble_changes() -> None:
    stage = Stage(metadata_of("3/3/2"), "b4")
    stage.append()
    stage.lose(to("b1"))
    stage.deliver(to("b2", "b3"))
    stage.append()
    assert stage.writer.lac == -1 and [request for _, request in stage.wire if not metadata("W", request)] == []
    stage.deliver()
    assert lines(stage) == [
        "W → b1 add 0 (LAC -1): lost",
        "W → b2 b3 add 0 (LAC -1): ok",
        "W holds 0 back",
        "W → metadata open 0:b4+b2+b3: ok",
        "W acknowledges 0",
        "W → b4 add 0 (LAC -1): ok",
        "W → b2 b3 add 1 (LAC -1): ok",
        "W acknowledges 1",
        "W → b4 add 1 (LAC -1): ok",
    ]


def test_the_one_that_takes_over_finds_what_was_pushed_and_late_adds_are_refused() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append(3)
    stage.deliver(adds(0, 1))
    stage.deliver(both(adds(2), to("b1")))
    stage.recovery("R")
    stage.deliver(of("R"))
    stage.deliver()
    assert lines(stage)[6:] == [
        "W → b1 add 2 (LAC -1): ok",
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → b1 b2 b3 LAC: -1",
        "R → b1 b2 b3 read 0: ok",
        "R → b1 b2 b3 add 0 (LAC -1): ok",
        "R → b2 b3 b1 read 1: ok",
        "R → b2 b3 b1 add 1 (LAC -1): ok",
        "R → b3 read 2: no such entry",
        "R → b1 read 2: ok",
        "R → b2 read 2: no such entry",
        "R → b3 b1 b2 add 2 (LAC -1): ok",
        "R → b1 b2 b3 read 3: no such entry",
        "R → metadata closed at 2 0:b1+b2+b3: ok",
        "R has recovered closed at 2 0:b1+b2+b3",
        "W → b3 add 2 (LAC -1): fenced",
        "W may or may not have 2: a bookie was fenced",
        "W ends: a bookie was fenced",
        "W → b2 add 2 (LAC -1): fenced",
    ]


def test_entries_before_the_lac_are_not_read_again() -> None:
    stage = Stage(metadata_of("3/3/2"))
    for _ in range(3):
        stage.append()
        stage.deliver()
    stage.recovery("R")
    stage.deliver()
    assert lines(stage)[9:] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → b1 b2 b3 LAC: 1",
        "R → b3 b1 b2 read 2: ok",
        "R → b3 b1 b2 add 2 (LAC 1): ok",
        "R → b1 b2 b3 read 3: no such entry",
        "R → metadata closed at 2 0:b1+b2+b3: ok",
        "R has recovered closed at 2 0:b1+b2+b3",
    ]
    assert stage.store.metadata.length == 3


def test_the_length_of_a_ledger_that_ends_with_its_lac_is_read_from_that_entry() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.append()
    stage.deliver(to("b1"))
    stage.recovery("R")
    stage.deliver(both(of("R"), metadata))
    stage.deliver(both(of("R"), lambda name, request: not to("b1")(name, request) or "Lac" in type(request).__name__))
    stage.deliver(of("R"))
    assert lines(stage)[4:] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → b1 LAC: 0",
        "R → b2 b3 LAC: -1",
        "R → b2 b3 read 1: no such entry",
        "R → b2 b3 read 0: ok",
        "R → metadata closed at 0 0:b1+b2+b3: ok",
        "R has recovered closed at 0 0:b1+b2+b3",
        "R → b1 read 1: ok",
        "R → b1 read 0: ok",
    ]
    assert stage.store.metadata.length == 1


def test_two_that_recover_at_once_come_to_one_end() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append(2)
    stage.deliver(adds(0))
    stage.deliver(both(adds(1), to("b3")))
    stage.recovery("R")
    stage.recovery("S")
    stage.deliver(both(of("R"), metadata))
    stage.deliver(both(of("S"), metadata))
    stage.deliver(lambda name, request: not metadata(name, request) and name != "W")
    stage.deliver(of("R", "S"))
    found = lines(stage)
    assert found[4:7] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "S → metadata in-recovery 0:b1+b2+b3: does not fit",
        "S → metadata read: in-recovery 0:b1+b2+b3",
    ]
    assert found[-5:] == [
        "R → metadata closed at 1 0:b1+b2+b3: ok",
        "R has recovered closed at 1 0:b1+b2+b3",
        "S → metadata closed at 1 0:b1+b2+b3: does not fit",
        "S → metadata read: closed at 1 0:b1+b2+b3",
        "S has recovered closed at 1 0:b1+b2+b3",
    ]


def test_who_recovers_later_takes_the_end_that_another_one_found() -> None:
    """S found entry 1, which R did not see, and must not close behind it."""
    stage = Stage(metadata_of("3/3/2"))
    stage.append(2)
    stage.deliver(adds(0))
    stage.deliver(both(adds(1), to("b3")))
    stage.recovery("R")
    stage.deliver(both(of("R"), metadata))
    stage.recovery("S")
    stage.deliver(lambda name, request: name == "S" and not metadata(name, request))
    stage.deliver(both(of("R"), to("b1", "b2")))
    stage.deliver(both(of("R"), metadata))
    stage.deliver()
    assert [line for line in lines(stage) if "metadata" in line or "recovered" in line] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → metadata closed at 1 0:b1+b2+b3: ok",
        "R has recovered closed at 1 0:b1+b2+b3",
        "S → metadata closed at 1 0:b1+b2+b3: does not fit",
        "S → metadata read: closed at 1 0:b1+b2+b3",
        "S has recovered closed at 1 0:b1+b2+b3",
    ]


def changing() -> Stage:
    """Entry 0 is acknowledged; R has read the metadata, and W is about to replace b1 from entry 1 on."""
    stage = Stage(metadata_of("3/3/2"), "b4")
    stage.append()
    stage.deliver()
    stage.append()
    stage.lose(to("b1"))
    stage.recovery("R")
    return stage


def test_an_ensemble_that_changes_while_recovery_starts_is_the_one_that_is_fenced() -> None:
    stage = changing()
    stage.deliver(both(of("W"), metadata))
    stage.deliver(both(of("R"), metadata))
    stage.deliver()
    assert lines(stage)[3:] == [
        "W → b1 add 1 (LAC 0): lost",
        "W → metadata open 0:b1+b2+b3 1:b4+b2+b3: ok",
        "R → metadata in-recovery 0:b1+b2+b3: does not fit",
        "R → metadata read: open 0:b1+b2+b3 1:b4+b2+b3",
        "R → metadata in-recovery 0:b1+b2+b3 1:b4+b2+b3: ok",
        "W → b2 b3 add 1 (LAC 0): ok",
        "W acknowledges 1",
        "W → b4 add 1 (LAC 0): ok",
        "R → b4 b2 b3 LAC: 0",
        "R → b4 b2 b3 read 1: ok",
        "R → b4 b2 b3 add 1 (LAC 0): ok",
        "R → b2 b3 b4 read 2: no such entry",
        "R → metadata closed at 1 0:b1+b2+b3 1:b4+b2+b3: ok",
        "R has recovered closed at 1 0:b1+b2+b3 1:b4+b2+b3",
    ]


def test_once_a_ledger_is_recovered_its_writer_changes_no_ensemble() -> None:
    stage = changing()
    stage.deliver(both(of("R"), metadata))
    stage.deliver(of("W"))
    stage.deliver()
    assert lines(stage)[4:11] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "W → b2 b3 add 1 (LAC 0): ok",
        "W holds 1 back",
        "W → metadata open 0:b1+b2+b3 1:b4+b2+b3: does not fit",
        "W → metadata read: in-recovery 0:b1+b2+b3",
        "W may or may not have 1: somebody else changed the ledger's metadata",
        "W ends: somebody else changed the ledger's metadata",
    ]
    assert lines(stage)[-1] == "R has recovered closed at 1 0:b1+b2+b3"


def with_empty_ensemble() -> Stage:
    """Entries 0 and 1 are acknowledged, and from entry 2 on there are bookies that have nothing yet."""
    stage = Stage(metadata_of("3/3/2"), "b4", "b5", "b6")
    stage.append(2)
    stage.deliver()
    stage.append()
    stage.lose(to("b1", "b2", "b3"))
    stage.deliver(metadata)
    stage.lose()
    stage.transcript.clear()
    return stage


def test_bookies_of_an_empty_ensemble_know_no_lac_and_it_ends_where_it_began() -> None:
    stage = with_empty_ensemble()
    stage.recovery("R")
    stage.lose(to("b1", "b2", "b3"))
    stage.deliver(of("R"))
    assert lines(stage) == [
        "R → metadata in-recovery 0:b1+b2+b3 2:b5+b6+b4: ok",
        "R → b5 b6 b4 LAC: no such ledger",
        "R → b5 b6 b4 read 2: no such ledger",
        "R → metadata closed at 1 0:b1+b2+b3 2:b5+b6+b4: ok",
        "R has recovered closed at 1 0:b1+b2+b3 2:b5+b6+b4",
    ]
    assert stage.store.metadata.length == 2


def test_a_fence_that_fewer_than_an_ack_quorum_miss_is_enough() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver(to("b2"))
    stage.recovery("R")
    stage.deliver(both(of("R"), metadata))
    stage.lose(both(of("R"), to("b3")))
    stage.deliver(both(of("R"), to("b1", "b3")))
    stage.deliver(both(of("R"), metadata))
    stage.deliver(of("W"))
    assert lines(stage) == [
        "W → b2 add 0 (LAC -1): ok",
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → b3 LAC: lost",
        "R → b1 LAC: no such ledger",
        "W → b1 add 0 (LAC -1): fenced",
        "W may or may not have 0: a bookie was fenced",
        "W ends: a bookie was fenced",
        "W → b3 add 0 (LAC -1): ok",
    ]
    stage.deliver(both(of("R"), to("b2")))
    stage.deliver()
    assert lines(stage)[8:] == [
        "R → b2 LAC: -1",
        "R → b2 read 0: ok",
        "R → b2 add 0 (LAC -1): ok",
        "R → b2 read 1: no such entry",
        "R → b1 read 0: no such ledger",
        "R → b3 read 0: ok",
        "R → b1 b3 add 0 (LAC -1): ok",
        "R → b3 b1 read 1: no such entry",
        "R → metadata closed at 0 0:b1+b2+b3: ok",
        "R has recovered closed at 0 0:b1+b2+b3",
    ]


def test_where_an_ack_quorum_is_not_fenced_nothing_is_decided() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.recovery("R")
    stage.deliver(metadata)
    stage.lose(to("b2", "b3"))
    stage.deliver()
    assert lines(stage)[3:] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → b2 b3 LAC: lost",
        "R → b1 LAC: -1",
        "R gives up: too few bookies answered",
    ]


def test_a_bookie_whose_disk_is_full_is_replaced() -> None:
    stage = Stage(metadata_of("3/3/2"), "b4")
    stage.append(2)
    stage.deliver()
    stage.bookies["b2"].is_read_only = True
    stage.append(2)
    stage.deliver()
    stage.close()
    stage.deliver()
    assert lines(stage)[6:] == [
        "W → b3 b1 add 2 (LAC 1): ok",
        "W acknowledges 2",
        "W → b2 add 2 (LAC 1): read-only",
        "W → b1 add 3 (LAC 1): ok",
        "W → b2 add 3 (LAC 1): read-only",
        "W → b3 add 3 (LAC 1): ok",
        "W holds 3 back",
        "W → metadata open 0:b1+b2+b3 3:b1+b4+b3: ok",
        "W acknowledges 3",
        "W → b4 add 3 (LAC 1): ok",
        "W → metadata closed at 3 0:b1+b2+b3 3:b1+b4+b3: ok",
        "W ends: the ledger takes no entries any more",
        "W has closed at 3",
    ]


def test_where_nobody_can_replace_a_bookie_its_ensemble_stays_until_somebody_can() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.bookies["b2"].is_read_only = True
    stage.append(2)
    stage.deliver()
    stage.bookies["b4"] = FakeBookie()
    stage.step("W", Writable(("b1", "b3", "b4")))
    stage.deliver()
    assert lines(stage)[3:] == [
        "W → b2 add 1 (LAC 0): read-only",
        "W → b3 b1 add 1 (LAC 0): ok",
        "W acknowledges 1",
        "W → b3 b1 add 2 (LAC 0): ok",
        "W acknowledges 2",
        "W → b2 add 2 (LAC 0): read-only",
        "W → metadata open 0:b1+b2+b3 3:b1+b4+b3: ok",
    ]


def test_with_fewer_than_an_ack_quorum_the_ledger_ends_with_what_was_acknowledged() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.append(2)
    stage.lose(to("b2", "b3"))
    stage.deliver(metadata)
    assert lines(stage)[3:] == [
        "W → b2 b3 add 1 (LAC 0): lost",
        "W may or may not have 1: not enough bookies",
        "W may or may not have 2: not enough bookies",
        "W → b3 b2 add 2 (LAC 0): lost",
        "W → metadata closed at 0 0:b1+b2+b3: ok",
        "W ends: not enough bookies",
    ]


def test_a_bookie_that_failed_is_chosen_again_only_in_need() -> None:
    stage = Stage(metadata_of("2/2/2"), "b3")
    stage.append()
    stage.lose(to("b2"))
    stage.deliver()
    stage.append()
    stage.lose(to("b3"))
    stage.deliver()
    assert [line for line in lines(stage) if "metadata" in line] == [
        "W → metadata open 0:b1+b3: ok",
        "W → metadata open 0:b1+b3 1:b1+b2: ok",
    ]


def test_too_many_changes_of_the_ensemble_end_the_handle() -> None:
    stage = Stage(metadata_of("2/2/2"), "b3", "b4", bounds=Bounds(most_changes=1))
    stage.append()
    stage.lose(to("b2"))
    stage.deliver(metadata)
    stage.lose(to("b3"))
    stage.deliver(metadata)
    assert lines(stage) == [
        "W → b2 add 0 (LAC -1): lost",
        "W → metadata open 0:b1+b3: ok",
        "W → b3 add 0 (LAC -1): lost",
        "W may or may not have 0: the ensemble had to change too often",
        "W → metadata closed at -1 0:b1+b3: ok",
        "W ends: the ensemble had to change too often",
    ]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_change_of_the_ensemble_whose_answer_was_lost_is_settled_by_reading_back(is_done: bool) -> None:
    stage = Stage(metadata_of("3/3/2"), "b4")
    stage.append()
    stage.lose(to("b2"))
    stage.deliver(to("b1", "b3"))
    (stage.lose_answers if is_done else stage.lose)(metadata)
    stage.deliver()
    again = ["W → metadata read: open 0:b1+b2+b3", "W → metadata open 0:b1+b4+b3: ok"]
    assert lines(stage)[2:] == [
        "W holds 0 back",
        f"W → metadata open 0:b1+b4+b3: {'answer lost' if is_done else 'lost'}",
        *(["W → metadata read: open 0:b1+b4+b3"] if is_done else again),
        "W acknowledges 0",
        "W → b4 add 0 (LAC -1): ok",
    ]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_close_whose_answer_was_lost_is_settled_by_reading_back(is_done: bool) -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.close()
    (stage.lose_answers if is_done else stage.lose)(metadata)
    stage.deliver()
    again = ["W → metadata read: open 0:b1+b2+b3", "W → metadata closed at 0 0:b1+b2+b3: ok"]
    assert lines(stage)[3:] == [
        f"W → metadata closed at 0 0:b1+b2+b3: {'answer lost' if is_done else 'lost'}",
        *(["W → metadata read: closed at 0 0:b1+b2+b3"] if is_done else again),
        "W ends: the ledger takes no entries any more",
        "W has closed at 0",
    ]


@pytest.mark.parametrize("is_done", [False, True])
def test_recovery_settles_both_of_its_changes_by_reading_back(is_done: bool) -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append()
    stage.deliver()
    stage.recovery("R")
    lose = stage.lose_answers if is_done else stage.lose
    lose(metadata)
    stage.deliver(metadata)
    stage.deliver(to("b1", "b2", "b3"))
    lose(metadata)
    stage.deliver()
    of_metadata = [line for line in lines(stage) if "metadata" in line]
    word = "answer lost" if is_done else "lost"
    states = ("open", "in-recovery", "closed at 0")
    assert of_metadata == [
        line
        for before, after in pairwise(states)
        for line in (
            f"R → metadata {after} 0:b1+b2+b3: {word}",
            f"R → metadata read: {after if is_done else before} 0:b1+b2+b3",
            *([] if is_done else [f"R → metadata {after} 0:b1+b2+b3: ok"]),
        )
    ]
    assert lines(stage)[-1] == "R has recovered closed at 0 0:b1+b2+b3"


def test_a_metadata_store_that_stays_silent_ends_the_handle() -> None:
    stage = Stage(metadata_of("3/3/2"), "b4", bounds=Bounds(most_tries=3))
    stage.append()
    stage.lose(to("b2"))
    for _ in range(4):
        stage.lose(metadata)
    assert not any(metadata("W", request) for _, request in stage.wire)
    assert lines(stage)[1:] == [
        "W → metadata open 0:b1+b4+b3: lost",
        *["W → metadata read: lost"] * 3,
        "W may or may not have 0: the metadata store did not answer",
        "W ends: the metadata store did not answer",
    ]


def test_a_worker_that_repairs_an_older_fragment_is_passed_over() -> None:
    stage = Stage(metadata_of("3/3/2"), "b4", "b5")
    stage.append()
    stage.deliver()
    stage.append()
    stage.lose(to("b1"))
    stage.deliver()
    stage.append()
    stage.lose(to("b2"))
    stage.store.repair(0, "b1", "b5")
    stage.deliver()
    assert [line for line in lines(stage) if "metadata" in line] == [
        "W → metadata open 0:b1+b2+b3 1:b4+b2+b3: ok",
        "W → metadata open 0:b1+b2+b3 1:b4+b2+b3 2:b4+b5+b3: does not fit",
        "W → metadata read: open 0:b5+b2+b3 1:b4+b2+b3",
        "W → metadata open 0:b5+b2+b3 1:b4+b2+b3 2:b4+b5+b3: ok",
    ]


def test_an_ensemble_that_changes_in_recovery_is_published_with_the_end() -> None:
    stage = Stage(metadata_of("3/3/2"), "b4")
    stage.append(2)
    stage.deliver(to("b1", "b2"))
    stage.recovery("R")
    stage.deliver(both(of("R"), metadata))
    stage.lose(both(of("R"), to("b3")))
    stage.deliver(to("b1", "b2", "b4"))
    stage.deliver(both(of("R"), metadata))
    assert lines(stage)[4:] == [
        "R → metadata in-recovery 0:b1+b2+b3: ok",
        "R → b3 LAC: lost",
        "R → b1 b2 LAC: -1",
        "R → b1 b2 read 0: ok",
        "R → b1 b2 b4 add 0 (LAC -1): ok",
        "R → b2 b1 read 1: ok",
        "R → b2 b4 b1 add 1 (LAC -1): ok",
        "R → b1 b2 read 2: no such entry",
        "R → metadata closed at 1 0:b1+b2+b4: ok",
        "R has recovered closed at 1 0:b1+b2+b4",
    ]
    assert set(stage.bookies["b4"].entries) == {0, 1}


def test_a_close_waits_for_what_is_pending_and_nothing_is_taken_meanwhile() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append(2)
    stage.close()
    stage.append()
    stage.deliver()
    assert lines(stage) == [
        "W refuses 2: the ledger takes no entries any more",
        "W → b1 b2 add 0 (LAC -1): ok",
        "W acknowledges 0",
        "W → b3 add 0 (LAC -1): ok",
        "W → b2 b3 add 1 (LAC -1): ok",
        "W acknowledges 1",
        "W → b1 add 1 (LAC -1): ok",
        "W → metadata closed at 1 0:b1+b2+b3: ok",
        "W ends: the ledger takes no entries any more",
        "W has closed at 1",
    ]


def test_who_finds_its_ledger_closed_elsewhere_has_not_closed_it() -> None:
    stage = Stage(metadata_of("3/3/2"))
    stage.append(2)
    stage.deliver(adds(0))
    stage.deliver(both(adds(1), to("b3")))
    stage.recovery("R")
    stage.deliver(of("R"))
    stage.close()
    stage.lose(of("W"))
    stage.deliver()
    assert lines(stage)[-7:] == [
        "R has recovered closed at 1 0:b1+b2+b3",
        "W → b2 b1 add 1 (LAC -1): lost",
        "W may or may not have 1: not enough bookies",
        "W → metadata closed at 0 0:b1+b2+b3: does not fit",
        "W → metadata read: closed at 1 0:b1+b2+b3",
        "W ends: not enough bookies",
        "W may or may not have the close: not enough bookies",
    ]
