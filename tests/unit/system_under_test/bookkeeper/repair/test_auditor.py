"""When ledgers are looked at, and when they are marked."""

from __future__ import annotations

from dataclasses import replace

from system_under_test.bookkeeper.repair.auditor import Auditor, BookiesSeen, Due, LedgersRead
from system_under_test.bookkeeper.repair.event import LookAtLedger, ReadLedgers, SetMark
from system_under_test.bookkeeper.repair.marks import Mark
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import LEDGER, metadata_of
from tests.unit.system_under_test.bookkeeper.repair.repair_stage import DAY_NS, TIMES, ledger_of

ALL = frozenset({"b1", "b2", "b3", "b4"})
CLOSED = metadata_of("3/3/2").closed(8, 9)


def an_auditor(ledger: object = CLOSED, marks: dict[int, Mark] | None = None) -> Auditor:
    """That has seen all bookies, and looked at everything, at time 0."""
    auditor = Auditor(TIMES, 0)
    assert auditor.step(BookiesSeen(ALL), 0) == [ReadLedgers()]
    assert auditor.step(LedgersRead((CLOSED,), {}), 0) == [LookAtLedger(LEDGER, False)]
    return auditor


def test_bookies_are_looked_at_daily_and_ledgers_weekly() -> None:
    auditor = an_auditor()
    looks = []
    for day in range(1, 15):
        assert auditor.deadline_ns == day * DAY_NS
        assert auditor.step(Due(), auditor.deadline_ns - 1) == []
        assert auditor.step(Due(), auditor.deadline_ns) == [ReadLedgers()]
        looks += [(day, effect) for effect in auditor.step(LedgersRead((CLOSED,), {}), day * DAY_NS)]
    assert looks == [(7, LookAtLedger(LEDGER, False)), (14, LookAtLedger(LEDGER, False))]


def test_every_entry_is_looked_at_where_that_is_switched_on() -> None:
    auditor = Auditor(replace(TIMES, entries_every_ns=5), 0)
    auditor.step(BookiesSeen(ALL), 0)
    looks = [LookAtLedger(LEDGER, False), LookAtLedger(LEDGER, True)]
    assert auditor.step(LedgersRead((CLOSED,), {}), 0) == looks
    assert auditor.deadline_ns == 5
    auditor.step(Due(), 5)
    assert auditor.step(LedgersRead((CLOSED,), {}), 6) == [LookAtLedger(LEDGER, True)]
    assert auditor.deadline_ns == 11


def test_a_lost_bookies_ledgers_are_marked_once_and_anew_when_it_is_lost_again() -> None:
    auditor, mark = an_auditor(), Mark(("b1",), every_entry=False)
    set_mark = [SetMark(LEDGER, mark)]
    assert auditor.step(BookiesSeen(ALL - {"b1"}), 10) == [ReadLedgers()]
    assert auditor.step(LedgersRead((CLOSED,), {}), 10) == set_mark
    auditor.step(BookiesSeen(ALL - {"b1", "b4"}), 20)
    assert auditor.step(LedgersRead((CLOSED,), {LEDGER: mark}), 20) == []
    # A worker took the mark away, though the ensemble still names the bookie: it saw it alive for a moment.
    auditor.step(BookiesSeen(ALL - {"b1", "b4"}), 30)
    assert auditor.step(LedgersRead((CLOSED,), {}), 30) == set_mark
    auditor.step(BookiesSeen(ALL), 40)
    assert auditor.step(LedgersRead((CLOSED,), {LEDGER: mark}), 40) == []
    # A worker that saw it alive is about to take the mark away.
    auditor.step(BookiesSeen(ALL - {"b1"}), 50)
    assert auditor.step(LedgersRead((CLOSED,), {LEDGER: mark}), 50) == set_mark


def test_a_new_auditor_marks_anew_what_it_cannot_know_of() -> None:
    auditor, mark = Auditor(TIMES, 0), Mark(("b1",), every_entry=False)
    auditor.step(BookiesSeen(ALL - {"b1"}), 0)
    assert SetMark(LEDGER, mark) in auditor.step(LedgersRead((CLOSED,), {LEDGER: mark}), 0)


def test_a_bookie_is_lost_when_it_has_been_away_for_the_whole_time() -> None:
    auditor = Auditor(replace(TIMES, lost_after_ns=30), 0)
    auditor.step(BookiesSeen(ALL - {"b1"}), 0)
    auditor.step(LedgersRead((CLOSED,), {}), 0)
    assert auditor.deadline_ns == 30
    auditor.step(BookiesSeen(ALL), 20)
    auditor.step(LedgersRead((CLOSED,), {}), 20)
    auditor.step(BookiesSeen(ALL - {"b1"}), 25)
    auditor.step(LedgersRead((CLOSED,), {}), 25)
    assert auditor.deadline_ns == 55
    assert auditor.step(Due(), 55) == [ReadLedgers()]
    assert auditor.step(LedgersRead((CLOSED,), {}), 55) == [SetMark(LEDGER, Mark(("b1",), every_entry=False))]


def test_what_changes_while_ledgers_are_read_is_looked_at_afterwards() -> None:
    auditor = an_auditor()
    assert auditor.step(BookiesSeen(ALL - {"b4"}), 10) == [ReadLedgers()]
    assert auditor.step(BookiesSeen(ALL - {"b1"}), 11) == []
    assert auditor.step(LedgersRead((CLOSED,), {}), 12) == [SetMark(LEDGER, Mark(("b1",), every_entry=False))]


def test_only_bookies_that_should_hold_something_or_may_get_more_are_needed() -> None:
    ledger = ledger_of("3/1/1", 2, begins=[2], ensembles=[["b4", "b2", "b1"]])
    auditor = Auditor(TIMES, 0)
    auditor.step(BookiesSeen(frozenset()), 0)
    open_ledger, closed, *_ = auditor.step(LedgersRead((ledger, ledger.closed(2, 3)), {}), 0)
    assert open_ledger == SetMark(LEDGER, Mark(("b1", "b2", "b4"), every_entry=False))
    # Entries 0 and 1 are at b1 and b2, and entry 2 is at b4.
    assert closed == SetMark(LEDGER, Mark(("b1", "b2", "b4"), every_entry=False))
    auditor = Auditor(TIMES, 0)
    auditor.step(BookiesSeen(frozenset({"b1", "b2"})), 0)
    marks = auditor.step(LedgersRead((ledger.closed(1, 2),), {}), 0)
    assert [effect for effect in marks if isinstance(effect, SetMark)] == []
