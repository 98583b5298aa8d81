"""Whatever is lost, and wherever workers are killed: copies come back to their number as long as somebody has one."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, Placement
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.repair.event import Outcome
from system_under_test.bookkeeper.repair.holdings import EveryEntry, OwnEnds, own_entries, spans
from tests.unit.system_under_test.bookkeeper.repair.repair_stage import RepairStage, after, ledger_of

NAMES = tuple(f"b{number}" for number in range(1, 8))
QUORUMS = ("3/3/2", "3/2/2", "4/3/2", "5/3/2", "2/2/1", "3/1/1", "4/2/1")


def a_ledger(draw: random.Random) -> tuple[LedgerMetadata, int]:
    """Open, and how many entries it has."""
    quorums, count = draw.choice(QUORUMS), draw.randint(0, 20)
    begins = sorted(draw.sample(range(1, count + 1), draw.randint(0, min(2, count))))
    ensembles = [draw.sample(NAMES, int(quorums[0])) for _ in begins]
    return (
        ledger_of(quorums, count, begins=begins, ensembles=ensembles, placement=draw.choice(list(Placement))),
        count,
    )


def copies(stage: RepairStage, entry: int) -> int:
    """That those who should have the entry have, and live."""
    bookies = bookies_of(stage.store.metadata, entry)
    return sum(bookie in stage.available and entry in stage.bookies[bookie].decoded() for bookie in bookies)


def harm(stage: RepairStage, draw: random.Random) -> None:
    """Something is lost, but of each entry one copy is left with somebody who lives."""
    name = draw.choice(list(stage.available))
    kept = dict(stage.bookies[name].entries)
    is_alone = len(stage.available) <= 5
    kind = draw.choice(("entry", "harm") if is_alone else ("die", "entry", "harm"))
    if kind == "die":
        stage.die(name)
    elif kept:
        entry = draw.choice(list(kept))
        if kind == "entry":
            stage.lose(name, entry)
        else:
            stage.bookies[name].harm(entry)
    last = stage.store.metadata.last_entry
    if any(copies(stage, each) == 0 for each in range(last + 1)):
        stage.available.setdefault(name)
        stage.bookies[name].entries = kept


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_copies_come_back_to_their_number(seed: int) -> None:
    draw = random.Random(seed)
    metadata, count = a_ledger(draw)
    stage = RepairStage(metadata, count, NAMES)
    stage.close(count - 1)
    for _ in range(draw.randint(1, 6)):
        harm(stage, draw)
        stage.round(every_entry=True, until=after(draw.randint(0, 40)), most_at_once=draw.randint(1, 4))
    assert stage.repair(every_entry=True) is Outcome.DONE
    assert [copies(stage, entry) for entry in range(count)] == [metadata.quorums.write] * count


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_a_bookie_is_judged_by_the_first_and_the_last_entry_that_it_should_hold(seed: int) -> None:
    draw = random.Random(seed)
    metadata, count = a_ledger(draw)
    closed = metadata.closed(count - 1, count)
    for span in spans(closed, -1):
        for bookie in span.fragment.ensemble:
            own = [
                entry
                for entry in range(span.fragment.first_entry, span.last_entry + 1)
                if bookie in bookies_of(closed, entry)
            ]
            assert list(own_entries(closed, span, bookie)) == list(EveryEntry().entries(closed, span, bookie)) == own
            assert list(OwnEnds().entries(closed, span, bookie)) == list(dict.fromkeys(own[:1] + own[-1:]))


def test_spans_end_where_the_next_begins_or_with_what_is_confirmed() -> None:
    ledger = ledger_of("3/2/2", 9, begins=[4, 7], ensembles=[NAMES[:3], NAMES[1:4]])
    ends = {lac: [(span.last_entry, span.is_final) for span in spans(ledger, lac)] for lac in (-1, 6, 7)}
    assert ends == {lac: [(3, True), (6, True), (max(lac, 6), False)] for lac in (-1, 6, 7)}
    assert [span.is_final for span in spans(ledger.closed(8, 9), -1)] == [True, True, True]
