"""Writers and recoveries of one ledger in a world that delays, loses, kills and harms, from a seed.

A request may be lost, or its answer, or come so late that its sender has long given it up; a client may be paused; a
compare-and-set may take effect after its sender has read back. What is damaged for good is at most what Qa − 1 bookies
had, so nothing that was acknowledged may be missed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import pairwise

from system_under_test.bookkeeper.entry import decode_entry
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    Added,
    Append,
    Begin,
    Close,
    Closed,
    Effect,
    Failed,
    GaveUp,
    LacAnswered,
    LacDue,
    LacWritten,
    MetadataRead,
    Publish,
    Published,
    ReadAnswered,
    ReadEntry,
    ReadLac,
    ReadMetadata,
    Recovered,
    Reply,
    SendAdd,
    Writable,
    WriteLac,
)
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Placement
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.ledger.reader import ReadEnded
from system_under_test.bookkeeper.ledger.recovery import Recovery
from system_under_test.bookkeeper.ledger.tally import Presence
from system_under_test.bookkeeper.ledger.writer import Bounds, Writer
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import LEDGER, FakeBookie, FakeStore, metadata_of

PATIENCE_MS = 100
SHAPES = ("3/3/2", "3/2/2", "4/3/2", "5/3/2", "2/2/1", "3/3/3", "3/3/1", "4/2/1")
BOUNDS = Bounds(most_pending=40, most_changes=8, most_tries=6)
RECOVERIES = 12
"""So often one tries to recover the ledger before that counts as impossible."""


class Handle:
    """A client's process: a core, and the requests it has under way."""

    def __init__(self, world: World, name: str, core: Writer | Recovery) -> None:
        self.world = world
        self.name = name
        self.core = core
        self.paused_until_ms = 0.0
        self.is_over = False

    def step(self, event: object) -> None:
        world = self.world
        if world.now_ms < self.paused_until_ms:
            world.later(self.paused_until_ms - world.now_ms, lambda: self.step(event))
            return
        if isinstance(event, Append):
            world.appended.append(event.payload)
        for effect in self.core.step(event):  # type: ignore[arg-type]
            self.carry_out(effect)

    def carry_out(self, effect: Effect) -> None:
        world = self.world
        if isinstance(effect, SendAdd):
            world.check_lac(effect)
            recovers = isinstance(self.core, Recovery)
            self.ask(
                effect.bookie,
                lambda bookie: bookie.add(effect.entry, effect.data, recovers=recovers),
                lambda reply: AddAnswered(effect.bookie, effect.entry, reply or Reply.SILENT),
            )
        elif isinstance(effect, WriteLac):
            world.check_explicit_lac(effect)
            self.ask(
                effect.bookie,
                lambda bookie: bookie.write_lac(effect.lac),
                lambda reply: LacWritten(effect.bookie, effect.lac, reply or Reply.SILENT),
            )
        elif isinstance(effect, ReadLac):
            self.ask(
                effect.bookie,
                lambda bookie: bookie.read_lac(),
                lambda answer: LacAnswered(effect.bookie, *(answer or (Reply.SILENT, -1))),
            )
        elif isinstance(effect, ReadEntry):
            self.ask(
                effect.bookie,
                lambda bookie: bookie.read(effect.entry, fences=effect.fences),
                lambda answer: ReadAnswered(effect.bookie, effect.entry, *(answer or (Reply.SILENT, b""))),
            )
        elif isinstance(effect, Publish):
            self.exchange("metadata", lambda: world.store.put(effect.metadata), Published)
        elif isinstance(effect, ReadMetadata):
            self.exchange("metadata", lambda: world.store.metadata, MetadataRead)
        else:
            world.came(self, effect)

    def ask(self, name: str, act: Callable[[FakeBookie], object], event: Callable[[object], object]) -> None:
        world = self.world
        self.exchange(name, lambda: act(world.bookies[name]) if name in world.up else None, event)

    def exchange(self, name: str, act: Callable[[], object], event: Callable[[object], object]) -> None:
        """One event comes of it: with what the other side answered, or with None after a while."""
        world, is_answered = self.world, False

        def hear(answer: object) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self.step(event(answer))

        def arrive() -> None:
            if not world.loses(self.name, name):
                answer = act()
                if answer is not None or name == "metadata":
                    world.later(world.delay(), lambda: None if world.loses(name, self.name) else hear(answer))

        world.later(world.delay(), arrive)
        world.later(PATIENCE_MS, lambda: hear(None))


class World:
    def __init__(self, seed: int, parts: LedgerParts | None = None) -> None:
        self.random = random.Random(seed)
        self.parts = parts or LedgerParts()
        shape = self.random.choice(SHAPES)
        names = [f"b{number}" for number in range(1, int(shape[0]) + self.random.randint(0, 3) + 1)]
        placement = self.random.choice((Placement.FRAGMENT, Placement.FRAGMENT, Placement.ENTRY))
        metadata = metadata_of(shape, *self.random.sample(names, int(shape[0])), placement=placement)
        self.quorums = metadata.quorums
        self.bookies = {name: FakeBookie() for name in names}
        self.up = dict.fromkeys(names)
        self.damaged: dict[str, None] = {}
        self.store = FakeStore(metadata)
        self.now_ms = 0.0
        self.loss = 0.0
        self.slow_share = 0.0
        self.cut: dict[tuple[str, str], None] = {}
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.payloads: dict[int, bytes] = {}
        """By token."""
        self.appended: list[bytes] = []
        """In the order in which the writer took or refused them."""
        self.acknowledged: list[bytes] = []
        """Payloads of the entries 0, 1, …"""
        self.explicit_lacs = 0
        """So often one was written."""
        self.refused: list[bytes] = []
        """Payloads that certainly are in no ledger."""
        self.ends: list[tuple[str, int]] = []
        """Who says that the ledger is closed, and its last entry."""
        self.handles: list[Handle] = []
        self.writer = self.open("writer", self.parts.make_writer(self.store.metadata, BOUNDS))

    # -- time and links

    def later(self, delay_ms: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now_ms + delay_ms, self.count, what))

    def delay(self) -> float:
        if self.random.random() < self.slow_share:
            return self.random.uniform(20, 3 * PATIENCE_MS)
        return self.random.uniform(0.1, 20)

    def loses(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self.cut or self.random.random() < self.loss

    def run(self, milliseconds: float) -> None:
        until_ms = self.now_ms + milliseconds
        while self.queue and self.queue[0][0] <= until_ms:
            self.now_ms, _, what = heapq.heappop(self.queue)
            what()
        self.now_ms = until_ms

    # -- clients

    def open(self, name: str, core: Writer | Recovery) -> Handle:
        handle = Handle(self, name, core)
        self.handles.append(handle)
        self.hear_of_bookies(handle)
        return handle

    def hear_of_bookies(self, handle: Handle) -> None:
        writable = self.writable()
        self.random.shuffle(writable)
        handle.step(Writable(tuple(writable)))

    def writable(self) -> list[str]:
        return [name for name in self.up if not self.bookies[name].is_read_only and not self.bookies[name].is_gone]

    def append(self) -> None:
        token = len(self.payloads)
        self.payloads[token] = f"{token:03}".encode() * self.random.randint(1, 3)
        self.writer.step(Append(token, self.payloads[token]))

    def close(self) -> None:
        self.writer.step(Close(-1))

    def recover(self) -> Handle:
        handle = self.open(f"r{len(self.handles)}", self.parts.make_recovery(self.store.metadata, BOUNDS))
        handle.step(Begin())
        return handle

    def came(self, handle: Handle, effect: Effect) -> None:
        if isinstance(effect, Added):
            assert effect.entry == len(self.acknowledged), "entries are acknowledged in their order"
            self.acknowledged.append(self.payloads[effect.token])
        elif isinstance(effect, Failed) and effect.is_definite and effect.token >= 0:
            self.refused.append(self.payloads[effect.token])
        elif isinstance(effect, Closed):
            self.ends.append((handle.name, effect.last_entry))
        elif isinstance(effect, Recovered):
            handle.is_over = True
            self.ends.append((handle.name, effect.metadata.last_entry))
        elif isinstance(effect, GaveUp):
            handle.is_over = True

    # -- what is promised

    def check_lac(self, sent: SendAdd) -> None:
        entry = decode_entry(sent.data, self.parts.digest(), LEDGER, sent.entry)
        assert entry.lac < len(self.acknowledged), f"entry {sent.entry} shows {entry.lac}, which is not acknowledged"

    def check_explicit_lac(self, sent: WriteLac) -> None:
        self.explicit_lacs += 1
        assert sent.lac < len(self.acknowledged), f"{sent.lac} is said to be acknowledged, and is not"

    def check(self) -> None:
        """At any moment."""
        states = [metadata.state for metadata in self.store.history]
        order = list(LedgerState)
        assert all(order.index(one) <= order.index(other) for one, other in pairwise(states))
        closed = [metadata for metadata in self.store.history if metadata.state is LedgerState.CLOSED]
        lasts = {metadata.last_entry for metadata in closed} | {last for _, last in self.ends}
        assert len(lasts) <= 1, f"the ledger ends with {sorted(lasts)}"
        for last in lasts:
            assert len(self.acknowledged) <= last + 1, f"{len(self.acknowledged)} acknowledged, {last} is the last"

    def settle(self) -> None:
        """All is healed but what was damaged for good: the ledger can be closed, and has all that was acknowledged."""
        self.loss = self.slow_share = 0.0
        self.cut.clear()
        self.up = dict.fromkeys(self.bookies)
        for bookie in self.bookies.values():
            bookie.is_read_only = False
        self.run(20 * PATIENCE_MS)
        for _ in range(RECOVERIES):
            recovery = self.recover()
            self.run(40 * PATIENCE_MS)
            if any(name == recovery.name for name, _ in self.ends):
                break
        self.check()
        assert self.store.metadata.state is LedgerState.CLOSED, "the ledger cannot be recovered"
        self.check_entries(self.store.metadata)

    def check_entries(self, metadata: LedgerMetadata) -> None:
        read = [self.read(metadata, entry) for entry in range(metadata.last_entry + 1)]
        assert read[: len(self.acknowledged)] == self.acknowledged, "what was acknowledged is read"
        assert metadata.length == sum(map(len, read))
        places = [self.appended.index(payload) for payload in read]
        assert places == sorted(places), "entries are in the order of their appends"
        assert not set(read) & set(self.refused), "what was refused for certain is not there"
        for entry in range(metadata.last_entry + 1):
            holders = [name for name in bookies_of(metadata, entry) if self.holds(name, entry)]
            assert len(holders) >= self.quorums.ack, f"entry {entry} is on {holders} alone"

    def holds(self, name: str, entry: int) -> bool:
        """Or held it before it was damaged."""
        return name in self.damaged or entry in self.bookies[name].decoded()

    def read(self, metadata: LedgerMetadata, entry: int) -> bytes:
        reading = self.parts.make_read(metadata, entry)
        came: ReadEntry | ReadEnded = reading.begin()
        while not isinstance(came, ReadEnded):
            reply, data = self.bookies[came.bookie].read(entry, fences=came.fences)
            came = reading.step(ReadAnswered(came.bookie, entry, reply, data))
        assert came.presence is Presence.FOUND and came.entry is not None, f"entry {entry}: {came.presence.name}"
        return came.entry.payload

    # -- faults

    def may_damage(self, name: str) -> bool:
        return name in self.damaged or len(self.damaged) < self.quorums.ack - 1

    def lose_disk(self) -> None:
        """And an empty bookie comes in place of the one that had it."""
        name = self.random.choice(list(self.bookies))
        if self.may_damage(name) and not self.bookies[name].is_gone:
            self.damaged[name] = None
            self.bookies[name].is_gone = True
            fresh = f"b{len(self.bookies) + 1}"
            self.bookies[fresh] = FakeBookie()
            self.up[fresh] = None

    def harm(self) -> None:
        name = self.random.choice(list(self.bookies))
        entries = list(self.bookies[name].entries)
        if entries and self.may_damage(name):
            self.damaged[name] = None
            self.bookies[name].harm(self.random.choice((max(entries), *entries)))

    def kill(self) -> None:
        if self.up:
            del self.up[self.random.choice(list(self.up))]

    def boot(self) -> None:
        self.up[self.random.choice(list(self.bookies))] = None

    def fill(self) -> None:
        bookie = self.random.choice(list(self.bookies.values()))
        bookie.is_read_only = not bookie.is_read_only

    def cut_link(self) -> None:
        client = self.random.choice(self.handles).name
        other = self.random.choice([*self.bookies, "metadata"])
        for link in ((client, other), (other, client)):
            if self.random.random() < 0.8:
                self.cut[link] = None

    def heal(self) -> None:
        self.cut.clear()

    def pause(self) -> None:
        handle = self.random.choice(self.handles)
        handle.paused_until_ms = self.now_ms + self.random.uniform(20, 6 * PATIENCE_MS)

    def contend(self) -> None:
        """Some recover while the writer writes, and hardly anything comes in time."""
        self.slow_share = 0.5
        if self.random.random() < 0.5:
            self.harm()
        for _ in range(self.random.randint(1, 3)):
            self.append()
            self.run(self.random.choice((0, 0, 20)))
        for _ in range(self.random.choice((1, 1, 2))):
            self.recover()
        self.run(3 * PATIENCE_MS)

    def repair(self) -> None:
        """A worker copies a fragment that is not the last from one bookie to another."""
        metadata = self.store.metadata
        if len(metadata.fragments) < 2:
            return
        place = self.random.randrange(len(metadata.fragments) - 1)
        fragment, following = metadata.fragments[place : place + 2]
        old = self.random.choice(fragment.ensemble)
        others = [name for name in self.writable() if name not in fragment.ensemble]
        if others:
            new = self.random.choice(others)
            self.copy(metadata, fragment, following.first_entry, old, new)
            self.store.repair(place, old, new)

    def copy(self, metadata: LedgerMetadata, fragment: Fragment, end: int, old: str, new: str) -> None:
        for entry in range(fragment.first_entry, end):
            bookies = bookies_of(metadata, entry)
            holders = [self.bookies[name] for name in bookies if entry in self.bookies[name].decoded()]
            whole = [bookie for bookie in holders if not bookie.is_gone]
            if old in bookies and whole:
                self.bookies[new].add(entry, whole[0].entries[entry], recovers=True)


def storm(seed: int, parts: LedgerParts | None = None) -> World:
    """Raises AssertionError where a promise was broken."""
    world = World(seed, parts)
    draw = world.random
    faults = (world.kill, world.boot, world.boot, world.cut_link, world.cut_link, world.heal, world.pause)
    faults += (world.fill, world.lose_disk, world.harm, world.repair)
    for _ in range(draw.randrange(3, 25)):
        if draw.random() < 0.5:
            draw.choice(faults)()
        world.loss = draw.choice((0.0, 0.0, 0.05, 0.2))
        world.slow_share = draw.choice((0.0, 0.0, 0.05, 0.3))
        for _ in range(draw.randrange(4)):
            world.append()
        if draw.random() < 0.5:
            world.writer.step(LacDue())
        if draw.random() < 0.05 and len(world.handles) < 6:
            world.contend()
        chance = draw.random()
        if chance < 0.1 and len(world.handles) < 6:
            world.recover()
        elif chance < 0.13:
            world.close()
        elif chance < 0.4:
            world.hear_of_bookies(draw.choice(world.handles))
        world.run(draw.choice((1, 10, 40, 3 * PATIENCE_MS)))
        world.check()
    world.settle()
    return world
