"""Which transactions are open, and that progress passes none of them, against a list of all that was fed."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from system_under_test.rocketmq.broker.transactions.open_transactions import OpenTransactions


@dataclass
class Topics:
    """Half messages, and ends: which half messages each is about."""

    halves: int = 0
    ends: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def open(self) -> list[int]:
        ended = {half for end in self.ends for half in end}
        return [half for half in range(self.halves) if half not in ended]


def fed(topics: Topics, half_offset: int, op_offset: int) -> OpenTransactions:
    """As a new master feeds itself: ends first."""
    transactions = OpenTransactions(half_offset, op_offset)
    for offset in range(op_offset, len(topics.ends)):
        transactions.ended(offset, topics.ends[offset])
    for offset in range(half_offset, topics.halves):
        transactions.half(offset, offset)
    return transactions


def open_in(transactions: OpenTransactions, topics: Topics) -> list[int]:
    return [half for half in range(topics.halves) if transactions.get(half) is not None]


@given(st.lists(st.one_of(st.just("half"), st.just("restart"), st.lists(st.integers(0, 30), max_size=3)), max_size=60))
def test_a_master_that_begins_at_the_progress_knows_what_is_open(steps):
    topics = Topics()
    transactions = fed(topics, 0, 0)
    for step in steps:
        if step == "half":
            transactions.half(topics.halves, topics.halves)
            topics.halves += 1
        elif step == "restart":
            transactions = fed(topics, *transactions.progress())
        else:
            ends = tuple(half % topics.halves for half in step) if topics.halves else ()
            transactions.ended(len(topics.ends), ends)
            topics.ends.append(ends)
        assert open_in(transactions, topics) == topics.open
    assert open_in(fed(topics, *transactions.progress()), topics) == topics.open


def test_progress_stays_before_the_first_that_is_open_and_passes_when_it_ends():
    transactions = OpenTransactions(0, 0)
    for half in range(3):
        transactions.half(half, 0)
    transactions.ended(0, [2])
    transactions.ended(1, [1])
    assert transactions.progress() == (0, 0)
    transactions.ended(2, [0])
    assert transactions.progress() == (3, 3)


def test_what_is_open_is_due_again_and_again_and_what_has_ended_is_not():
    transactions = OpenTransactions(0, 0)
    transactions.half(0, 100)
    transactions.half(1, 50)
    assert transactions.due(49, 0) == ()
    assert transactions.next_due_ns == 50
    assert [(one.queue_offset, one.checks) for one in transactions.due(100, 200)] == [(1, 1), (0, 1)]
    transactions.ended(0, [1])
    assert transactions.next_due_ns == 200
    assert [(one.queue_offset, one.checks) for one in transactions.due(250, 300)] == [(0, 2)]
    transactions.ended(1, [0])
    assert transactions.next_due_ns is None


def test_what_has_expired_is_open_no_more_and_holds_no_progress_up():
    transactions = OpenTransactions(0, 0)
    for half in range(3):
        transactions.half(half, 0)
    transactions.ended(0, (1,))
    assert transactions.progress() == (0, 0)
    transactions.expired(0)
    assert transactions.get(0) is None
    assert transactions.progress() == (2, 1)


def test_a_master_that_begins_behind_halves_that_have_expired_forgets_that_they_had_ended():
    transactions = OpenTransactions(0, 0)
    transactions.ended(0, (0, 4))
    transactions.skip_halves_to(3)
    transactions.half(3, 0)
    transactions.half(4, 0)
    assert [half for half in range(5) if transactions.get(half)] == [3]
    assert transactions.progress() == (3, 0)
