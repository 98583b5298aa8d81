"""Whatever is appended, cut, begun anew, expired, refused and torn: a log is what a list of entries would be.

After a loss of power it is one that it was since the last sync, or a beginning of that, with all that was durable and
not cut since.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.dledger.entry import HEAD_BYTES, NOTHING, Entry
from system_under_test.dledger.store import FileStore
from system_under_test.runtime.host import DiskFull
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.dledger.disk_machine import (
    SMALL,
    DiskMachine,
)
from tests.unit.system_under_test.dledger.test_stores import held

FILE_BYTES = SMALL.data_bytes
Log = list[Entry]


def common(one: Log, other: Log) -> Log:
    """What both begin with."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return one[:count]


def next_position(log: Log, size: int) -> int:
    end = log[-1].position + log[-1].size if log else 0
    return end if end % FILE_BYTES + size + 8 <= FILE_BYTES else (end // FILE_BYTES + 1) * FILE_BYTES


@dataclass
class Files:
    """A log since it last began anew."""

    states: list[Log]
    durable: Log = field(default_factory=list)
    """What of it may not be lost."""
    being_synced: Log = field(default_factory=list)

    def become(self, log: Log) -> None:
        self.states.append(log)
        self.durable = common(self.durable, log)
        self.being_synced = common(self.being_synced, log)


class Model:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.log: Log = []
        self.term = 0
        self.count = 0
        self.committed = NOTHING
        self.files = Files([[]])
        self.durable_files = self.files
        self.under_way: Files | None = None
        """Whose sync has begun and not ended."""
        self.states_before = 0
        """So many of its states were over when that sync began."""

    def body(self) -> bytes:
        """Never the same one twice."""
        self.count += 1
        return b"%06d" % self.count + bytes(int(self.draw.random() ** 3 * (FILE_BYTES - 8 - HEAD_BYTES - 6)))

    def become(self, log: Log) -> None:
        self.log = log
        self.files.become(log)

    def begin_anew(self, first: Entry) -> None:
        self.log = [first]
        self.files = Files([self.log])

    def sync_begins(self) -> None:
        self.under_way = self.files
        self.files.being_synced, self.files.states = self.log, [*self.files.states, self.log]
        self.states_before = len(self.files.states) - 1

    def sync_ends(self) -> None:
        files = self.under_way
        assert files is not None
        if files.being_synced or files is self.durable_files:
            self.durable_files = files
        files.durable, files.states, self.under_way = files.being_synced, files.states[self.states_before :], None

    def check(self, store: FileStore) -> None:
        assert held(store) == self.log
        assert store.begin == (self.log[0].index if self.log else NOTHING)
        assert store.end == (self.log[-1].index if self.log else NOTHING)
        assert store.end_term == (self.log[-1].term if self.log else NOTHING)
        assert [store.term(entry.index) for entry in self.log] == [entry.term for entry in self.log]
        expected = self.files.durable[-1].index if self.files.durable else NOTHING
        if self.files is self.durable_files and expected != NOTHING:
            assert store.durable_end == expected

    def found_after_power_loss(self, found: Log) -> None:
        possible = {id(files): files for files in (self.durable_files, self.under_way) if files is not None}
        was = any(common(found, log) == found for files in possible.values() for log in files.states)
        assert was, "the log never was like that"
        if self.under_way in (None, self.durable_files):
            assert common(found, self.durable_files.durable) == self.durable_files.durable, "a durable entry is gone"
        self.log = found
        self.term = max(self.term, found[-1].term if found else 0) + 1
        self.files = self.durable_files = Files([found], durable=found)
        self.under_way = None


async def acts(machine: DiskMachine, draw: random.Random, count: int) -> None:
    model, store = Model(draw), await machine.boot()
    for _ in range(count):
        await act(model, store, machine)
        model.check(store)
        if draw.random() < 0.1:
            if draw.random() < 0.3:
                model.sync_begins()
                sync = asyncio.ensure_future(store.sync())
                for _ in range(draw.randrange(6)):
                    await some_time(machine, draw)
                store = await machine.after_power_loss()
                sync.cancel()
            else:
                store = await machine.after_power_loss()
            found = held(store)
            model.found_after_power_loss(found)
            store = await machine.after_power_loss()
            assert held(store) == found, "what was found is durable"


async def some_time(machine: DiskMachine, draw: random.Random) -> None:
    await machine.store.loop.sleep_until(machine.store.loop.now_ns + draw.randrange(1, 2_000_000))


async def act(model: Model, store: FileStore, machine: DiskMachine) -> None:
    draw, log = model.draw, model.log
    kind = draw.random()
    if draw.random() < 0.15:
        machine.room(draw.randrange(300))
    try:
        if kind < 0.35:
            entries = store.append_own(model.term, [model.body() for _ in range(draw.randrange(1, 6))])
            model.become([*log, *entries])
        elif kind < 0.45:
            model.term += draw.randrange(2)
            body = model.body()
            end = log[-1].index if log else NOTHING
            entry = Entry(end + 1, model.term, next_position(log, HEAD_BYTES + len(body)), body)
            assert store.append([entry])
            model.become([*log, entry])
        elif kind < 0.6 and log:
            cuttable = [at for at, entry in enumerate(log) if entry.index > model.committed]
            if cuttable:
                cut(model, store, draw.choice(cuttable))
        elif kind < 0.64:
            model.term += 1
            index = draw.randrange(2, 10) + (log[-1].index if log else 0)
            position = FILE_BYTES * (draw.randrange(4) + (log[-1].position // FILE_BYTES if log else 0))
            first = Entry(index, model.term, position, model.body())
            assert store.end_with(first)
            model.begin_anew(first)
        elif kind < 0.85:
            model.sync_begins()
            sync = asyncio.ensure_future(store.sync())
            while draw.random() < 0.5:
                await some_time(machine, draw)
                machine.room(None)
                entries = store.append_own(model.term, [model.body()])
                model.become([*model.log, *entries])
                if len(model.log) > 2 and model.log[-2].index > model.committed and draw.random() < 0.5:
                    cut(model, store, len(model.log) - 2)
            await sync
            model.sync_ends()
        elif kind < 0.93:
            machine.room(None)
            model.sync_begins()
            model.committed = max(model.committed, log[draw.randrange(len(log))].index) if log else NOTHING
            await store.save_committed(model.committed)
            model.sync_ends()
        else:
            machine.room(None)
            await expire(model, store, draw.randrange(4000))
    except DiskFull:
        model.under_way = None
    finally:
        machine.room(None)


async def expire(model: Model, store: FileStore, before_position: int) -> None:
    model.sync_begins()
    begin = store.begin
    await store.expire(before_position)
    model.sync_ends()
    assert store.begin in range(begin, max(begin, model.committed) + 1)
    if model.log:
        log = [entry for entry in model.log if entry.index >= store.begin]
        assert log
        assert log[0].position % FILE_BYTES == 0
        model.log, model.files.states, model.files.durable = log, [log], log


def cut(model: Model, store: FileStore, at: int) -> None:
    """Keep what is up to there, or let the log begin anew with another entry in its place."""
    log = model.log
    if model.draw.random() < 0.7:
        assert store.end_with(log[at])
        model.become(log[: at + 1])
        return
    model.term += 1
    entry = Entry(log[at].index, model.term, log[at].position, model.body())
    can_begin = entry.position % FILE_BYTES == 0
    assert store.end_with(entry) == can_begin
    if can_begin:
        model.begin_anew(entry)


@pytest.mark.parametrize("seed", range(150))
def test_a_store_is_like_a_list(seed: int) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        await acts(DiskMachine(loop, seed, SMALL), random.Random(seed), 60)

    simulate(body)
