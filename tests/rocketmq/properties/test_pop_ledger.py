"""Whoever reads the revive log from where all before is settled knows what its writer knew, wherever it was cut."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from system_under_test.rocketmq.broker.pop.ledger import Commit, Ledger, Progress, RevivePosition
from system_under_test.rocketmq.broker.pop.records import (
    Checkpoint,
    CheckpointKey,
    Ordered,
    Record,
    Settlement,
    decode_record,
    encode_record,
)

SECOND = 10**9


@dataclass
class Master:
    """Writes records of one queue of the revive log, one byte each, and confirms a part of them."""

    draw: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    progress: Progress = field(default_factory=Progress)
    log: list[Record] = field(default_factory=list)
    committed: int = 0
    next_offset: int = 0
    ordered_end: int = 0
    now_ns: int = 0

    def step(self) -> None:
        self.now_ns += self.draw.randrange(2 * SECOND)
        open_ones = self.ledger.all_open()
        choice = self.draw.random()
        if choice < 0.15:
            self._pop_in_order()
            return
        if choice < 0.35 or not open_ones:
            count = self.draw.randrange(1, 5)
            offsets = tuple(sorted(self.draw.sample(range(self.next_offset, self.next_offset + 6), count)))
            key = CheckpointKey("g", "t", 0, self.next_offset, len(self.log))
            self.next_offset = offsets[-1] + 1
            self._write(Checkpoint(key=key, invisible_ms=self.draw.randrange(5_000), offsets=offsets, broker_name="b"))
            return
        found = self.draw.choice(open_ones)
        offset = self.draw.choice(found.left)
        if choice < 0.6:
            self._write(Settlement(key=found.checkpoint.key, offsets=(offset,), broker_name="b"))
        elif choice < 0.8 and found.checkpoint.ordered is not None:
            ordered = found.checkpoint.ordered._replace(times=(found.times(offset) - 1,))
            self._write(replace(found.checkpoint, offsets=(offset,), ordered=ordered, invisible_ms=1))
        elif choice < 0.8:
            key = found.checkpoint.key._replace(start_offset=offset, pop_time_ms=len(self.log))
            self._write(
                Checkpoint(key=key, invisible_ms=1, offsets=(offset,), broker_name="b", replaces=found.checkpoint.key)
            )
        else:
            due = self.ledger.due(self.now_ns)
            if due is not None:
                assert due.due_ns <= self.now_ns
                self._write(Settlement(key=due.checkpoint.key, offsets=tuple(due.left), broker_name="b"))

    def _pop_in_order(self) -> None:
        """Of a queue of its own: what is left of it, and what follows."""
        last = self.ledger.ordered("g", "t", 1)
        left = [] if last is None else last.left
        self.ordered_end += 2
        offsets = (*left[:8], self.ordered_end - 2, self.ordered_end - 1)
        times = tuple(0 if last is None else last.times(offset) for offset in offsets)
        key = CheckpointKey("g", "t", 1, offsets[0], len(self.log))
        ordered = Ordered(times, "", self.ordered_end)
        self._write(Checkpoint(key=key, invisible_ms=9, offsets=offsets, broker_name="b", ordered=ordered))
        assert [found for found in self.ledger.all_open() if found.checkpoint.ordered] == [
            self.ledger.ordered("g", "t", 1)
        ]

    def _write(self, record: Record) -> None:
        place, end = RevivePosition(0, len(self.log)), len(self.log) + 1
        self.log.append(record)
        if isinstance(record, Settlement):
            self.progress.settled(end, self.ledger.settle(record.key, record.offsets))
            return
        commit = Commit("g", "t", 0, record.next_offset) if moves(record) else None
        self.progress.written(end, place, commit)
        self.progress.settled(end, self.ledger.add(record, place, self.now_ns))

    def confirm(self, offset: int) -> int:
        """Where a new master would begin to read."""
        for commit in self.progress.confirmed(offset):
            self.committed = max(self.committed, commit.offset)
        return self.progress.revive_offset(0, offset)


def read(log: list[Record], first: int) -> Ledger:
    ledger = Ledger()
    for offset, record in enumerate(log[first:], first):
        if isinstance(record, Settlement):
            ledger.settle(record.key, record.offsets)
        else:
            ledger.add(record, RevivePosition(0, offset), 0)
    return ledger


def held(ledger: Ledger) -> dict[CheckpointKey, list[int]]:
    return {found.checkpoint.key: found.left for found in ledger.all_open()}


def moves(record: Record) -> bool:
    return isinstance(record, Checkpoint) and record.replaces is None and record.ordered is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 80))
def test_what_is_left_of_the_log_says_the_same_from_where_all_before_is_settled(seed: int, steps: int) -> None:
    draw = random.Random(seed)
    master = Master(draw)
    confirmed = 0
    for _ in range(steps):
        master.step()
        confirmed = draw.randrange(confirmed, len(master.log) + 1)
        first = master.confirm(confirmed)
        assert first <= confirmed
        # The log may be cut anywhere behind what is confirmed.
        kept = master.log[: draw.randrange(confirmed, len(master.log) + 1)]
        after = read(kept, first)
        assert held(after) == held(read(kept, 0))
        reached = [record.next_offset for record in kept if isinstance(record, Checkpoint) and moves(record)]
        # No offset of the group that may be copied has passed a message without a checkpoint in what is confirmed.
        in_sight = [r.next_offset for r in master.log[:confirmed] if isinstance(r, Checkpoint) and moves(r)]
        assert master.committed <= max(in_sight, default=0) <= max(reached, default=0)
    assert held(read(master.log, 0)) == held(master.ledger)
    messages = [(key.queue_id, offset) for key, left in held(master.ledger).items() for offset in left]
    assert len(messages) == len(set(messages)) == master.ledger.messages


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_record_is_read_as_it_was_written(seed: int) -> None:
    master = Master(random.Random(seed))
    for _ in range(30):
        master.step()
    for record in master.log:
        assert decode_record(*encode_record(record)) == record
