"""Each planted bug of writers and recoveries does the wrong thing where the healthy part does the right one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from system_under_test.bookkeeper import mutants
from system_under_test.bookkeeper.ledger.event import ReadAnswered, Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerState
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.node.mutant import find_mutant, mutant_names
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import LEDGER, metadata_of
from tests.unit.system_under_test.bookkeeper.ledger.ledger_stage import Stage, adds, both, metadata, of, to

OF_LEDGERS = [
    name for name in mutant_names(mutants) if find_mutant(mutants, name).parts_of(LedgerParts) != LedgerParts()
]


def end(stage: Stage) -> int | None:
    """The last entry of the ledger, if it is closed."""
    found = stage.store.metadata
    return found.last_entry if found.state is LedgerState.CLOSED else None


def ends(stage: Stage) -> list[int]:
    """All that it ever had."""
    return [each.last_entry for each in stage.store.history if each.state is LedgerState.CLOSED]


def a_read_after_which_an_add_comes(parts: LedgerParts) -> object:
    """Entry 0 is on b2 alone when R reads; b3 hears only of the read, and then of the add."""
    stage = Stage(metadata_of("3/3/2"), parts=parts)
    stage.append()
    stage.deliver(to("b2"))
    stage.recovery("R")
    stage.deliver(metadata)
    stage.lose(both(of("R"), to("b3")))
    stage.deliver(both(of("R"), lambda name, request: "ReadLac" in type(request).__name__))
    stage.deliver(both(of("R"), to("b1", "b3")))
    stage.deliver(both(of("R"), metadata))
    stage.deliver(both(of("W"), to("b3")))
    return end(stage), stage.writer.lac


def acknowledged_while_the_ensemble_changes(parts: LedgerParts) -> object:
    stage = Stage(metadata_of("3/3/2"), "b4", parts=parts)
    stage.append()
    stage.lose(to("b1"))
    stage.deliver(to("b2", "b3"))
    return stage.writer.lac


def acknowledged_by_an_ensemble_that_nobody_learns_of(parts: LedgerParts) -> object:
    stage = Stage(metadata_of("2/2/2"), "b3", parts=parts)
    stage.append()
    stage.recovery("R")
    stage.lose(both(of("W"), to("b1")))
    stage.deliver(both(of("W"), to("b2", "b3")))
    stage.deliver(of("R"))
    return stage.writer.lac, end(stage)


def end_of_a_ledger_with_a_harmed_copy(parts: LedgerParts) -> object:
    """Entry 0 is on b1 and b2, and R hears of b2 last."""
    stage = Stage(metadata_of("3/3/2"), parts=parts)
    stage.append()
    stage.deliver(to("b1", "b2"))
    stage.bookies["b1"].harm(0)
    return recovered_with_b2_last(stage)


def end_of_a_ledger_that_one_bookie_missed(parts: LedgerParts) -> object:
    stage = Stage(metadata_of("4/3/2"), parts=parts)
    stage.append()
    stage.deliver(to("b1", "b2"))
    return recovered_with_b2_last(stage)


def recovered_with_b2_last(stage: Stage) -> int | None:
    stage.lose(of("W"))
    stage.recovery("R")
    stage.deliver(lambda name, request: metadata(name, request) or "ReadLac" in type(request).__name__)
    stage.deliver(to("b3"))
    stage.deliver(to("b1"))
    stage.deliver()
    return end(stage)


def end_of_a_ledger_whose_first_bookies_are_down(parts: LedgerParts) -> object:
    """From entry 1 on others have it, and they have nothing yet."""
    stage = Stage(metadata_of("2/2/2"), "b3", "b4", parts=parts)
    stage.append()
    stage.deliver()
    stage.append()
    stage.lose(to("b1", "b2"))
    stage.deliver(metadata)
    stage.wire.clear()
    stage.recovery("R")
    while stage.wire:
        stage.lose(to("b1", "b2"))
        stage.deliver(lambda name, request: not to("b1", "b2")(name, request))
    return end(stage)


def what_the_second_entry_shows(parts: LedgerParts) -> object:
    stage = Stage(metadata_of("3/3/2"), parts=parts)
    stage.append(2)
    stage.deliver(adds(1))
    return stage.bookies["b1"].read_lac()[1]


def ends_of_a_ledger_whose_writer_slept(parts: LedgerParts) -> object:
    stage = Stage(metadata_of("3/3/2"), parts=parts)
    stage.append()
    stage.deliver(to("b3"))
    stage.recovery("R")
    stage.deliver(both(of("R"), lambda name, request: metadata(name, request) or "ReadLac" in type(request).__name__))
    stage.deliver(both(of("R"), to("b3")))
    stage.deliver(of("R"))
    stage.lose(of("W"))
    stage.deliver()
    return ends(stage)


def acknowledged_by_one_of_the_new_write_set(parts: LedgerParts) -> object:
    """Entry 1 was on b2 and b3, of which b2 had it, and is on b1 and b2 after entry 0 was acknowledged."""
    stage = Stage(metadata_of("4/2/2"), "b5", parts=parts)
    stage.append(2)
    stage.deliver(both(adds(1), to("b3")))
    stage.deliver(adds(0))
    stage.lose(both(adds(1), to("b2")))
    stage.deliver(metadata)
    stage.deliver(to("b1"))
    return stage.writer.lac


def what_a_fenced_add_comes_to(parts: LedgerParts) -> object:
    stage = Stage(metadata_of("3/3/2"), parts=parts)
    stage.append()
    stage.recovery("R")
    stage.deliver(metadata)
    stage.deliver(both(of("R"), to("b1")))
    stage.deliver(both(of("W"), to("b1")))
    return stage.transcript[-2]


def what_a_misdirected_entry_is_taken_for(parts: LedgerParts) -> object:
    verification = Verification(LEDGER, parts.digest())
    return verification.reply(ReadAnswered("b1", 0, Reply.OK, verification.seal(1, 0, 8, b"payload")))


STORIES: dict[str, tuple[Callable[[LedgerParts], object], object, object]] = {
    "recovery-read-unfenced": (a_read_after_which_an_add_comes, (-1, -1), (-1, 0)),
    "ensemble-overtaken": (acknowledged_while_the_ensemble_changes, -1, 0),
    "deferred-failure": (acknowledged_by_an_ensemble_that_nobody_learns_of, (-1, -1), (0, -1)),
    "corrupt-is-absent": (end_of_a_ledger_with_a_harmed_copy, 0, -1),
    "one-no-is-enough": (end_of_a_ledger_that_one_bookie_missed, 0, -1),
    "recover-from-zero": (end_of_a_ledger_whose_first_bookies_are_down, 0, None),
    "digest-without-id": (what_a_misdirected_entry_is_taken_for, Reply.CORRUPT, Reply.OK),
    "lac-is-lap": (what_the_second_entry_shows, -1, 1),
    "close-without-cas": (ends_of_a_ledger_whose_writer_slept, [0], [0, -1]),
    "write-set-kept": (acknowledged_by_one_of_the_new_write_set, 0, 1),
    "fenced-is-refused": (
        what_a_fenced_add_comes_to,
        "W may or may not have 0: a bookie was fenced",
        "W refuses 0: a bookie was fenced",
    ),
}
"""Name of a planted bug → what happens, what comes of it, and what comes of it with the bug."""


@pytest.mark.parametrize("name", OF_LEDGERS)
def test_planted_bug_does_the_wrong_thing_where_the_healthy_part_does_the_right_one(name: str) -> None:
    story, right, wrong = STORIES[name]
    assert story(LedgerParts()) == right
    assert story(find_mutant(mutants, name).parts_of(LedgerParts)) == wrong


@pytest.mark.parametrize("name", OF_LEDGERS)
def test_a_ledger_is_written_and_closed_also_with_a_planted_bug(name: str) -> None:
    stage = Stage(metadata_of("4/3/2"), parts=find_mutant(mutants, name).parts_of(LedgerParts))
    stage.append(9)
    stage.deliver()
    stage.close()
    stage.deliver()
    assert ends(stage) == [8]
