"""Raft's log with little memory, against a list that holds everything."""

from __future__ import annotations

import random

from system_under_test.raft import membership as memberships
from system_under_test.raft.log import ENTRY_BYTES, Log
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import Entry, Kind
from system_under_test.raft.snapshot import NOTHING, Snapshot

CONFIGURED = Membership(voters={"configured": ""})
MEMORY_BYTES = 1000


class Dumb:
    """All entries there ever were, and from where on the log has them."""

    def __init__(self) -> None:
        self.all: list[Entry] = []
        self.base = self.snapshot = 0

    def read(self, first: int, last: int) -> list[Entry]:
        assert self.base < first <= last <= len(self.all)
        return self.all[first - 1 : min(last, first + 2)]

    def term(self, index: int) -> int:
        return self.all[index - 1].term if index else 0

    def membership(self, index: int) -> Membership:
        found = [entry for entry in self.all[:index] if entry.kind is Kind.MEMBERSHIP]
        return memberships.decode(found[-1].data) if found else CONFIGURED


def test_a_log_that_has_little_in_memory_answers_as_one_that_has_everything() -> None:
    read = cut = compacted = anew = 0
    for seed in range(80):
        draw, dumb = random.Random(seed), Dumb()
        log = Log(NOTHING, [], CONFIGURED, memory_bytes=MEMORY_BYTES, read=dumb.read)
        term = 1
        for _ in range(150):
            log.shrink()
            held = sum(ENTRY_BYTES + len(entry.data) for entry in log.entries)
            assert held <= MEMORY_BYTES
            luck = draw.random()
            if luck < 0.6:
                term += draw.random() < 0.2
                index = draw.choice((len(dumb.all), draw.randint(dumb.snapshot, len(dumb.all))))
                cut += index < len(dumb.all)
                dumb.all[index:] = fresh = [_entry(draw, index + 1 + n, term) for n in range(draw.randint(1, 5))]
                log.put(fresh)
            elif luck < 0.7 and len(dumb.all) > dumb.snapshot:
                dumb.snapshot = draw.randint(dumb.snapshot + 1, len(dumb.all))
                begin = draw.randint(dumb.base, dumb.snapshot)
                membership = dumb.membership(dumb.snapshot)
                log.compact(Snapshot(dumb.snapshot, dumb.term(dumb.snapshot), b"", membership), begin)
                dumb.base, compacted = begin, compacted + 1
            elif luck < 0.72:
                term += 1
                dumb.all += [Entry(len(dumb.all) + 1 + n, term, b"") for n in range(3)]
                dumb.base = dumb.snapshot = len(dumb.all)
                log.begin_anew(Snapshot(dumb.snapshot, term, b"", dumb.membership(dumb.snapshot)))
                anew += 1
            elif luck < 0.75:
                # A process that starts again.
                behind = (dumb.base, dumb.term(dumb.base))
                log = Log(
                    log.snapshot, dumb.all[dumb.base :], CONFIGURED, base=behind, memory_bytes=1000, read=dumb.read
                )
            read += _compare(draw, log, dumb)
    assert min(read, cut, compacted, anew) > 100


def _entry(draw: random.Random, index: int, term: int) -> Entry:
    if draw.random() < 0.1:
        membership = Membership(voters={f"n{draw.randint(1, 9)}": ""})
        return Entry(index, term, memberships.encode(membership), Kind.MEMBERSHIP)
    return Entry(index, term, draw.randbytes(draw.randint(0, 120)))


def _compare(draw: random.Random, log: Log, dumb: Dumb) -> int:
    """How many entries were not in memory."""
    last = len(dumb.all)
    assert (log.last_index, log.last_term, log.base_index) == (last, dumb.term(last), dumb.base)
    assert log.membership == dumb.membership(last)
    index = draw.randint(dumb.base, last)
    assert log.term_at(index) == dumb.term(index)
    assert log.has(index, dumb.term(index))
    assert not log.has(index, dumb.term(index) + 1)
    assert not log.has(last + 1, dumb.term(last))
    at_least = draw.randint(dumb.snapshot, last)
    assert log.membership_at(at_least) == dumb.membership(at_least)
    wanted = draw.randint(0, dumb.term(last))
    expected = index
    while expected > dumb.base and dumb.term(expected) > wanted:
        expected -= 1
    assert log.last_at_most(index, wanted) == expected
    limit = draw.randint(1, 6)
    found = log.behind(index, limit)
    assert len(found) <= limit
    assert found or index == last
    assert found == dumb.all[index : index + len(found)]
    return sum(entry.index <= last - len(log.entries) for entry in found)
