"""A group of DLedger's cores under random delays, lost and late requests, kills and losses of power, from a seed.

A connection delivers in order. One that was replaced may still deliver, after the new one has; to a process that has
ended nothing is delivered. What is not answered in time counts as lost.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from system_under_test.dledger.core import CoreParts, Member
from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.event import (
    Answered,
    Append,
    Appended,
    Connected,
    Effects,
    Event,
    HardState,
    Persisted,
    Receive,
    Sent,
    Tick,
)
from system_under_test.dledger.message import AnyAnswer, Code
from system_under_test.dledger.state import GroupConfig, Role

MS = 1_000_000
FILE_BYTES = 200
"""Where a log may begin anew: at its multiples."""


class ListLog:
    """`EntryLog` over a list, which ends where a new file begins as often as entries fit."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)
        self.room: int | None = None
        """So many more entries fit on the disk; None: any number."""

    @property
    def begin(self) -> int:
        return self.entries[0].index if self.entries else NOTHING

    @property
    def end(self) -> int:
        return self.entries[-1].index if self.entries else NOTHING

    @property
    def end_term(self) -> int:
        return self.entries[-1].term if self.entries else NOTHING

    @property
    def end_position(self) -> int:
        return self.entries[-1].position + self.entries[-1].size if self.entries else 0

    def entry(self, index: int) -> Entry | None:
        return self.entries[index - self.begin] if self.entries and self.begin <= index <= self.end else None

    def term(self, index: int) -> int:
        entry = self.entry(index)
        return NOTHING if entry is None else entry.term

    def _use(self, entries: int) -> None:
        from system_under_test.runtime.host import DiskFull

        if self.room is not None:
            if self.room < entries:
                raise DiskFull("no room")
            self.room -= entries

    def next_position(self, size: int) -> int:
        room = FILE_BYTES - self.end_position % FILE_BYTES
        return self.end_position if size + 8 <= room else self.end_position + room

    def append_own(self, term: int, bodies: Sequence[bytes]) -> Sequence[Entry]:
        self._use(len(bodies))
        made = []
        for body in bodies:
            self.entries.append(Entry(self.end + 1, term, self.next_position(48 + len(body)), body))
            made.append(self.entries[-1])
        return made

    def append(self, entries: Sequence[Entry]) -> bool:
        before = list(self.entries)
        for entry in entries:
            if entry.index != self.end + 1 or entry.position != self.next_position(entry.size):
                self.entries = before
                return False
            self.entries.append(entry)
        self.entries, appended = before, self.entries
        self._use(len(entries))
        self.entries = appended
        return True

    def end_with(self, entry: Entry) -> bool:
        if self.entry(entry.index) == entry:
            del self.entries[entry.index - self.begin + 1 :]
            return True
        if entry.position % FILE_BYTES:
            return False
        self._use(1)
        self.entries = [entry]
        return True

    def expire(self, begin: int) -> None:
        """Drop whole files before the one of this entry."""
        first = self.entry(begin)
        if first is not None:
            start = first.position - first.position % FILE_BYTES
            self.entries = [entry for entry in self.entries if entry.position >= start]


@dataclass(slots=True)
class Kept:
    """What is durable on a member's disk."""

    hard_state: HardState = HardState()
    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Process:
    member: Member
    log: ListLog
    life: int
    hard_sequence: int = 0
    synced: int = 0
    is_syncing: bool = False
    held: list[tuple[int, Callable[[], None]]] = field(default_factory=list)


class Cluster:
    def __init__(
        self,
        seed: int,
        members: int = 3,
        parts: CoreParts | None = None,
        *,
        ack_durable: bool = True,
        batch_bytes: int = 0,
        preferred: tuple[str, ...] = (),
        slowest_ms: int = 40,
    ) -> None:
        self.random = random.Random(seed)
        self.names = tuple(f"n{number}" for number in range(members))
        self.parts = parts
        self.options = {"ack_durable": ack_durable, "batch_bytes": batch_bytes, "preferred": preferred}
        self.slowest_ns = slowest_ms * MS
        self.now_ns = 0
        self.kept = {name: Kept() for name in self.names}
        self.up: dict[str, Process] = {}
        self.lives = 0
        self.loss = 0.0
        self.cut: set[tuple[str, str]] = set()
        self.connections: dict[tuple[str, str], int] = {}
        self.last_delivery: dict[tuple[str, str, int], int] = {}
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.tokens = 0
        self.answers: dict[int, Callable[[AnyAnswer], None]] = {}
        self.results: dict[int, Appended] = {}
        self.bodies: dict[int, tuple[bytes, ...]] = {}
        self.leaders: dict[int, str] = {}
        self.committed: dict[int, Entry] = {}
        self.changes = 0
        for name in self.names:
            self.start(name)

    def config(self, name: str) -> GroupConfig:
        return GroupConfig(
            node=name,
            members=self.names,
            heartbeat_ns=200 * MS,
            max_backoff_ns=100 * MS,
            ack_timeout_ns=250 * MS,
            push_timeout_ns=100 * MS,
            commit_interval_ns=100 * MS,
            transfer_timeout_ns=100 * MS,
            preference_interval_ns=100 * MS,
            **self.options,
        )

    # -- time

    def later(self, delay_ns: int, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now_ns + delay_ns, self.count, what))

    def delay(self) -> int:
        return self.random.randrange(MS // 10, self.slowest_ns)

    def run(self, milliseconds: int) -> None:
        until_ns = self.now_ns + milliseconds * MS
        while self.queue and self.queue[0][0] <= until_ns:
            self.now_ns, _, what = heapq.heappop(self.queue)
            what()
        self.now_ns = until_ns

    # -- processes

    def start(self, name: str) -> None:
        kept = self.kept[name]
        log = ListLog(kept.entries)
        self.lives += 1
        member = Member(self.config(name), log, kept.hard_state, now_ns=self.now_ns, parts=self.parts)
        self.up[name] = Process(member, log, self.lives)
        self._time(name, self.lives)

    def kill(self, name: str) -> None:
        """What was written stays."""
        process = self.up.pop(name)
        self.kept[name] = Kept(process.member.state.hard_state, list(process.log.entries))

    def power_off(self, name: str) -> None:
        """What was not synced is gone."""
        del self.up[name]

    def wipe(self, name: str) -> None:
        self.up.pop(name, None)
        self.kept[name].entries = []

    def _alive(self, name: str, life: int) -> Process | None:
        process = self.up.get(name)
        return process if process is not None and process.life == life else None

    def _time(self, name: str, life: int) -> None:
        process = self._alive(name, life)
        if process is None:
            return
        if process.member.deadline_ns <= self.now_ns:
            self.step(name, Tick(self.random.randrange(30 * MS, 100 * MS)))
        wait_ns = min(max(process.member.deadline_ns - self.now_ns, MS), 20 * MS)
        self.later(wait_ns, lambda: self._time(name, life))

    def step(self, name: str, event: Event) -> None:
        process = self.up[name]
        member = process.member
        effects = member.step(event, self.now_ns)
        if member.state.role is Role.LEADER:
            assert self.leaders.setdefault(member.state.term, name) == name, "two leaders of a term"
        self._note_committed(member, process.log)
        self._carry_out(name, process, effects)

    def _note_committed(self, member: Member, log: ListLog) -> None:
        assert member.state.committed <= log.end, "committed beyond the end"
        index = member.state.committed
        while index != NOTHING and index not in self.committed:
            entry = log.entry(index)
            if entry is None:
                break
            self.committed[index] = entry
            index -= 1
        if index != NOTHING and log.entry(index) is not None:
            assert log.entry(index) == self.committed[index], f"two entries are committed at {index}"

    def _carry_out(self, name: str, process: Process, effects: Effects) -> None:
        if effects.hard_state is not None:
            process.hard_sequence = effects.sequence
        if effects.hard_state is not None or effects.wrote:
            self._sync(name, process)
        for sent in effects.requests:
            self._send(name, process, sent)
        for sent in effects.votes:
            self._hold(process, process.hard_sequence, lambda sent=sent: self._send(name, process, sent))
        for token, answer in effects.answers:
            self._answer(token, answer)
        for token, answer in effects.granted:
            self._hold(process, process.hard_sequence, lambda token=token, answer=answer: self._answer(token, answer))
        sequence = effects.sequence if self.options["ack_durable"] else 0
        wrote = sequence if effects.wrote or process.synced < process.member.state.effects.sequence else 0
        for token, answer in effects.acknowledged:
            self._hold(process, wrote, lambda token=token, answer=answer: self._answer(token, answer))
            self._sync(name, process)
        for appended in effects.appended:
            assert appended.token not in self.results, "a client is answered once"
            self.results[appended.token] = appended

    def _hold(self, process: Process, sequence: int, what: Callable[[], None]) -> None:
        if process.synced >= sequence:
            what()
        else:
            process.held.append((sequence, what))

    def _sync(self, name: str, process: Process) -> None:
        if process.is_syncing:
            return
        process.is_syncing = True
        kept = Kept(process.member.state.hard_state, list(process.log.entries))
        sequence, life = process.member.state.effects.sequence, process.life
        self.later(self.delay() // 4, lambda: self._synced(name, life, sequence, kept))

    def _synced(self, name: str, life: int, sequence: int, kept: Kept) -> None:
        process = self._alive(name, life)
        if process is None:
            return
        process.is_syncing = False
        process.synced = sequence
        self.kept[name] = kept
        ready = [what for at, what in process.held if at <= sequence]
        process.held = [(at, what) for at, what in process.held if at > sequence]
        self.step(name, Persisted(sequence))
        for what in ready:
            what()
        if process.held or process.member.state.effects.sequence > sequence + 1:
            self._sync(name, process)

    # -- the network

    def _send(self, name: str, process: Process, sent: Sent) -> None:
        if self._alive(name, process.life) is None:
            return
        peer, life = sent.peer, process.life
        done: list[bool] = []

        def settle(answer: AnyAnswer | None) -> None:
            if not done and self._alive(name, life) is not None:
                done.append(True)
                self.step(name, Answered(peer, sent.number, answer))

        self.later(100 * MS, lambda: settle(None))
        if self.random.random() < self.loss / 4:
            # A new connection: what is under way on the old one may come late.
            self.connections[name, peer] = self.connections.get((name, peer), 0) + 1
            self.later(0, lambda: self.step(name, Connected(peer)) if self._alive(name, life) else None)
        if (name, peer) in self.cut or peer not in self.up or self.random.random() < self.loss:
            return
        receiver = self.up[peer].life
        connection = name, peer, self.connections.get((name, peer), 0)
        delay = self.delay() if self.random.random() > self.loss / 4 else self.random.randrange(900 * MS)
        at_ns = max(self.now_ns + delay, self.last_delivery.get(connection, 0))
        self.last_delivery[connection] = at_ns

        def deliver() -> None:
            if self._alive(peer, receiver) is None or (name, peer) in self.cut:
                return
            self.tokens += 1
            self.answers[self.tokens] = lambda answer: back(answer)
            self.step(peer, Receive(self.tokens, sent.request))

        def back(answer: AnyAnswer) -> None:
            if (peer, name) not in self.cut and self.random.random() >= self.loss:
                self.later(self.delay(), lambda: settle(answer))

        self.later(at_ns - self.now_ns, deliver)

    def _answer(self, token: int, answer: AnyAnswer) -> None:
        self.answers.pop(token)(answer)

    # -- clients

    def leader(self) -> str | None:
        """The one of the highest term."""
        leading = [(process.member.state.term, name) for name, process in self.up.items()]
        leading = [(term, name) for term, name in leading if self.up[name].member.state.role is Role.LEADER]
        return max(leading)[1] if leading else None

    def append(self, name: str, count: int = 1) -> int:
        self.tokens += 1
        self.bodies[self.tokens] = tuple(f"{self.tokens}.{part}".encode() for part in range(count))
        self.step(name, Append(self.tokens, self.bodies[self.tokens]))
        return self.tokens

    def acknowledged(self) -> dict[int, bytes]:
        """Bodies by index."""
        found: dict[int, bytes] = {}
        for token, result in self.results.items():
            if result.code is Code.SUCCESS:
                bodies = self.bodies[token]
                for index, body in enumerate(bodies, result.index - len(bodies) + 1):
                    assert found.setdefault(index, body) == body, "two acknowledged entries have one index"
        return found

    def check(self) -> None:
        """What was acknowledged is what is committed."""
        for index, body in self.acknowledged().items():
            assert index in self.committed and self.committed[index].body == body, f"entry {index} is lost"
