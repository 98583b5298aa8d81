"""A world for the Raft core alone: messages are shuffled, dropped and doubled, nodes crash and forget what
they had not synced, and after every step the promises of the Raft paper (its figure 3) are checked."""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from system_under_test.raft.bounds import Bounds
from system_under_test.raft.core import Raft, Role, Timing
from system_under_test.raft.event import (
    Apply,
    ChangeMembership,
    Compact,
    Effects,
    Event,
    Persisted,
    Propose,
    Read,
    Receive,
    Tick,
    Transfer,
)
from system_under_test.raft.log import Log
from system_under_test.raft.membership import AddLearner, Change, Membership, Promote, Remove
from system_under_test.raft.message import Entry, HardState, Message
from system_under_test.raft.snapshot import NOTHING, Snapshot, SnapshotFile

MILLISECOND = 1_000_000
TIMING = Timing(
    heartbeat_ns=100 * MILLISECOND,
    min_election_timeout_ns=1000 * MILLISECOND,
    quorum_timeout_ns=2000 * MILLISECOND,
)


LEASE = 0.8
"""With leases they are this part of the least election timeout."""


OUTSIDERS = 2
"""Nodes that run and are no members at first."""


BOUNDS = Bounds(applied_entries=2, log_memory_bytes=600)
"""A step hands out two entries at most, and three or so are in memory."""
KEPT = 2
"""So many entries stay behind a snapshot of a node's own."""


class Broken(AssertionError):
    """A promise of Raft does not hold."""


class SmallChunks(Raft):
    """A snapshot of this world is sent in four or so."""

    chunk_bytes = 40


def digest(before: bytes, entry: Entry) -> bytes:
    """The state machine: all entries that were applied, in their order, and nothing else, lead to this state."""
    return hashlib.sha256(before + entry.term.to_bytes(8, "big") + entry.data).digest()


class Node:
    """One node with its disk: what is durable, and what is written after it."""

    core: type[Raft] = SmallChunks

    def __init__(self, name: str, voters: Sequence[str]) -> None:
        self.name = name
        self.timing = TIMING
        self.rate = 1.0
        """Of its clock."""
        self.membership = Membership(voters=dict.fromkeys(voters, ""))
        self.hard_state = HardState()
        self.snapshot = NOTHING
        self.files: dict[str, bytes] = {}
        """Of the durable snapshot."""
        self.place: dict[str, bytes] = {}
        """Of all snapshots that are in use, and with what others have of them on the way."""
        self.arriving: dict[str, bytes] = {}
        self.contents: dict[str, bytes] = {}
        """All files that ever were whole, for no two have the same name."""
        self.base = (0, 0)
        self.entries: list[Entry] = []
        """Those behind the base."""
        self.unsynced: list[Effects] = []
        self.held: list[tuple[int, Message]] = []
        self.applied = 0
        self.state = b""
        self.raft: Raft | None = None

    def clock_ns(self, now_ns: int) -> int:
        return int(now_ns * self.rate)

    def boot(self, now_ns: int, election_timeout_ns: int) -> None:
        self.place, self.arriving = dict(self.files), {}
        self.applied, self.state = self.snapshot.index, state_in(self.snapshot, self.place)
        self.raft = self.core(
            node=self.name,
            membership=self.membership,
            timing=self.timing,
            hard_state=self.hard_state,
            snapshot=self.snapshot,
            entries=list(self.entries),
            now_ns=self.clock_ns(now_ns),
            election_timeout_ns=election_timeout_ns,
            bounds=BOUNDS,
            base=self.base,
            read=self.read,
            read_file=self.read_file,
        )

    def keep(self, effects: Effects) -> None:
        if effects.hard_state is not None:
            self.hard_state = effects.hard_state
        if effects.snapshot is not None:
            self.snapshot = effects.snapshot
            if any(file.name not in self.contents for file in effects.snapshot.files):
                raise Broken(f"{self.name} keeps a snapshot without its files")
            self.files = {file.name: self.contents[file.name] for file in effects.snapshot.files}
        self.base, self.entries = self._written(effects, self.base, self.entries)

    def receive(self, effects: Effects) -> None:
        """What comes of files, as storage does."""
        if effects.begins_receiving:
            self.arriving = {}
        for piece in effects.pieces:
            assert len(self.arriving.setdefault(piece.name, b"")) == piece.offset, "files come with gaps"
            self.arriving[piece.name] += piece.data
        if effects.restored is not None:
            self.place, self.arriving = self.arriving, {}
            self.contents |= self.place

    def compacted(self, in_files: bool) -> Compact:
        """All that is applied, in bytes or in two files, of which one is empty."""
        assert self.raft is not None
        base_index = max(self.raft.log.base_index, self.applied - KEPT)
        if not in_files:
            return Compact(self.applied, self.state, base_index=base_index)
        names = {f"{self.name}-{self.applied}": self.state * 2, f"{self.name}-nothing": b""}
        self.contents |= names
        in_use = self.raft.files_in_use | {file.name for file in self.raft.log.snapshot.files}
        self.place = {name: data for name, data in self.place.items() if name in in_use} | names
        files = tuple(SnapshotFile(name, len(data), zlib.crc32(data)) for name, data in sorted(names.items()))
        return Compact(self.applied, b"", files, base_index)

    def read_file(self, name: str, offset: int, length: int) -> bytes:
        return self.place[name][offset : offset + length]

    def read(self, first: int, last: int) -> list[Entry]:
        """Of what is written, durable or not: two at most."""
        base, entries = self.base, self.entries
        for effects in self.unsynced:
            base, entries = self._written(effects, base, entries)
        assert base[0] < first <= last <= base[0] + len(entries), "what was never written is read"
        return entries[first - 1 - base[0] : last - base[0]][:2]

    @staticmethod
    def _written(effects: Effects, base: tuple[int, int], entries: list[Entry]) -> tuple[tuple[int, int], list[Entry]]:
        if effects.snapshot is not None and effects.log_base is None:
            return (effects.snapshot.index, effects.snapshot.term), []
        if effects.log_base is not None:
            passed = effects.log_base - base[0]
            return (effects.log_base, entries[passed - 1].term) if passed else base, entries[passed:]
        if effects.entries:
            entries = entries[: effects.entries[0].index - 1 - base[0]] + effects.entries
        return base, entries


class ForgetfulNode(Node):
    """Its term and vote never reach the disk."""

    def keep(self, effects: Effects) -> None:
        hard_state = self.hard_state
        super().keep(effects)
        self.hard_state = hard_state


def state_in(snapshot: Snapshot, place: Mapping[str, bytes]) -> bytes:
    """That the snapshot stands for, by its data or by its files."""
    if not snapshot.files:
        return snapshot.data
    data, nothing = (place[file.name][: file.size] for file in snapshot.files)
    assert not nothing
    if data[: len(data) // 2] != data[len(data) // 2 :]:
        raise Broken("a file of a snapshot is not whole")
    return data[: len(data) // 2]


def behind(log: Log, index: int, count: int) -> list[Entry]:
    """So many entries after this one, if there are so many, by as many reads as that takes."""
    found: list[Entry] = []
    while len(found) < count and index + len(found) < log.last_index:
        found += log.behind(index + len(found), count - len(found))
    return found


def of(core: type[Raft]) -> type[Node]:
    """Nodes with this core."""
    return type(core.__name__, (Node,), {"core": core})


class Network:
    """`drift`: with it leaders read by their leases, and the clock of some nodes is faster by this share."""

    def __init__(
        self, seed: int | random.Random, size: int, kind: type[Node] = Node, drift: float | None = None
    ) -> None:
        self.draw = seed if isinstance(seed, random.Random) else random.Random(seed)
        self.now_ns = 0
        names = [f"n{number}" for number in range(1, size + OUTSIDERS + 1)]
        self.nodes = {name: kind(name, names[:size]) for name in names}
        if drift is not None:
            for node in self.nodes.values():
                node.timing = replace(TIMING, lease_ns=int(LEASE * TIMING.min_election_timeout_ns))
                node.rate = self.draw.choice((1.0, 1.0 + drift))
        self.wire: list[Message] = []
        self.cut: set[tuple[str, str]] = set()
        self.leaders: dict[int, str] = {}
        self.committed: list[Entry] = []
        self.states = [b""]
        """After how many entries the state machine is in which state."""
        self.reads: dict[int, int] = {}
        self.served_reads = self.reads_at_once = 0
        self.crashes = self.compactions = self.installs = self.transfers = self.changes = 0
        self.transfers_of_files = 0
        self.proposed = 0
        for node in self.nodes.values():
            node.boot(0, self._timeout_ns())

    def _timeout_ns(self) -> int:
        return self.draw.randint(1000, 2000) * MILLISECOND

    def step(self, node: Node, event: Event) -> None:
        raft = node.raft
        assert raft is not None
        was_leader = raft.role is Role.LEADER
        effects = raft.step(event, node.clock_ns(self.now_ns))
        node.receive(effects)
        if effects.must_persist:
            node.unsynced.append(effects)
        self.wire += effects.appends
        node.held += [(effects.sequence, message) for message in effects.messages]
        self._release(node, node.unsynced[0].sequence - 1 if node.unsynced else effects.sequence)
        if raft.role is Role.LEADER and not was_leader:
            self._check_leader(raft)
        if effects.restored is not None:
            self._check_restored(node, effects.restored)
        for entry in effects.committed:
            self._check_committed(node, entry)
        for token in effects.reads:
            self.served_reads += 1
            if node.applied < self.reads[token]:
                raise Broken(f"{node.name} reads at {node.applied}, but {self.reads[token]} was committed before")

    def _release(self, node: Node, sequence: int) -> None:
        self.wire += [message for number, message in node.held if number <= sequence]
        node.held = [(number, message) for number, message in node.held if number > sequence]

    def _check_leader(self, raft: Raft) -> None:
        known = self.leaders.setdefault(raft.term, raft.node)
        if known != raft.node:
            raise Broken(f"election safety: {known} and {raft.node} lead term {raft.term}")
        for entry in self.committed:
            # What its snapshot stands for was checked when it was taken or came.
            is_there = entry.index <= raft.log.snapshot.index or entry in behind(raft.log, entry.index - 1, 1)
            if entry.term < raft.term and not is_there:
                raise Broken(f"leader completeness: {raft.node} in term {raft.term} lacks {entry}")

    def _check_restored(self, node: Node, snapshot: Snapshot) -> None:
        self.installs += 1
        if snapshot.index <= node.applied:
            raise Broken(f"{node.name} goes back from {node.applied} to a snapshot of {snapshot.index}")
        state = state_in(snapshot, node.place)
        if state != self.states[snapshot.index]:
            raise Broken(f"{node.name} takes over a state that nobody had after {snapshot.index} entries")
        self.transfers_of_files += bool(snapshot.files)
        node.applied, node.state = snapshot.index, state

    def _check_committed(self, node: Node, entry: Entry) -> None:
        if entry.index != node.applied + 1:
            raise Broken(f"{node.name} applies {entry.index} after {node.applied}")
        node.applied, node.state = entry.index, digest(node.state, entry)
        if entry.index > len(self.committed):
            self.committed.append(entry)
            self.states.append(node.state)
        elif self.committed[entry.index - 1] != entry:
            raise Broken(f"state machine safety: {node.name} applies {entry} for {self.committed[entry.index - 1]}")
        if self.states[entry.index] != node.state:
            raise Broken(f"{node.name} is in another state than others after {entry.index} entries")

    def check_logs(self) -> None:
        logs = [node.raft.log for node in self.nodes.values() if node.raft is not None]
        for left in logs:
            for right in logs:
                begin = max(left.base_index, right.base_index)
                shared = min(left.last_index, right.last_index)
                while shared > begin and left.term_at(shared) != right.term_at(shared):
                    shared -= 1
                if shared > begin and behind(left, begin, shared - begin) != behind(right, begin, shared - begin):
                    raise Broken(f"log matching: two logs differ between {begin} and {shared}")

    # -- what may happen

    def sync(self, node: Node) -> None:
        """All that is written becomes durable."""
        if node.unsynced:
            for effects in node.unsynced:
                node.keep(effects)
            sequence = node.unsynced[-1].sequence
            node.unsynced = []
            self._release(node, sequence)
            self.step(node, Persisted(sequence))
        if node.raft is not None:
            self.step(node, Apply())

    def crash(self, node: Node) -> None:
        """Of what is not durable any part of the front may survive."""
        for effects in node.unsynced[: self.draw.randint(0, len(node.unsynced))]:
            node.keep(effects)
        node.unsynced, node.held, node.raft = [], [], None
        self.crashes += 1

    def deliver(self, position: int) -> None:
        message = self.wire[position]
        self.wire[position] = self.wire[-1]
        self.wire.pop()
        node = self.nodes[message.recipient]
        if node.raft is not None and (message.sender, message.recipient) not in self.cut:
            self.step(node, Receive(message))

    def pass_time(self, milliseconds: int) -> None:
        self.now_ns += milliseconds * MILLISECOND
        for node in self.nodes.values():
            if node.raft is not None:
                self.step(node, Apply())
                self.step(node, Tick(self._timeout_ns()))

    def propose(self, node: Node) -> None:
        assert node.raft is not None
        if node.raft.role is Role.LEADER and node.raft.transferee is None:
            self.proposed += 1
            self.step(node, Propose(tuple(f"{self.proposed}.{k}".encode() for k in range(self.draw.randint(1, 3)))))

    def compact(self, node: Node) -> None:
        assert node.raft is not None
        if node.applied > node.raft.log.snapshot.index:
            self.compactions += 1
            self.step(node, node.compacted(in_files=node.applied % 2 == 0))

    def fit_changes(self, node: Node) -> list[Change]:
        """What this node would change of the membership, if it were asked to."""
        assert node.raft is not None
        changes: list[Change] = [kind(name) for name in self.nodes for kind in (Promote, Remove)]
        changes += [AddLearner(name, "") for name in self.nodes]
        return [change for change in changes if node.raft.refusal_of(change) is None]

    def change(self, node: Node, change: Change) -> None:
        self.changes += 1
        self.step(node, ChangeMembership(change))

    def transfer(self, node: Node, to: Node) -> None:
        self.transfers += 1
        self.step(node, Transfer(to.name))

    def read(self, node: Node) -> None:
        token = len(self.reads)
        self.reads[token] = len(self.committed)
        before = self.served_reads
        self.step(node, Read((token,)))
        self.reads_at_once += self.served_reads - before

    def storm(self, steps: int) -> None:
        draw = self.draw
        names = list(self.nodes)
        for count in range(steps):
            node = self.nodes[draw.choice(names)]
            luck = draw.random()
            if luck < 0.60 and self.wire:
                position = draw.randrange(len(self.wire))
                fate = draw.random()
                if fate < 0.05:
                    self.wire.append(self.wire[position])
                if fate > 0.95:
                    self.wire.pop(position)
                else:
                    self.deliver(position)
            elif luck < 0.72:
                self.pass_time(draw.choice((1, 10, 100, 400)))
            elif node.raft is None:
                if luck > 0.95:
                    node.boot(self.now_ns, self._timeout_ns())
            elif luck < 0.84:
                self.sync(node)
            elif luck < 0.86:
                self.compact(node)
            elif luck < 0.94:
                changes = self.fit_changes(node) if draw.random() < 0.5 else []
                if changes:
                    self.change(node, draw.choice(changes))
                self.propose(node)
            elif luck < 0.975:
                self.read(node)
            elif luck < 0.98:
                self.transfer(node, self.nodes[draw.choice(names)])
            elif luck < 0.988:
                self.crash(node)
            else:
                self._recut(names)
            if count % 64 == 0:
                self.check_logs()
        self.check_logs()

    def _recut(self, names: list[str]) -> None:
        self.cut = set()
        if self.draw.random() < 0.6:
            alone = set(self.draw.sample(names, len(names) // 2))
            one_way = self.draw.random() < 0.3
            for left in names:
                for right in names:
                    if left in alone and right not in alone:
                        self.cut.add((left, right))
                        if not one_way:
                            self.cut.add((right, left))

    def calm(self, rounds: int) -> None:
        """No more faults: everything that is sent arrives."""
        self.cut = set()
        for node in self.nodes.values():
            if node.raft is None:
                node.boot(self.now_ns, self._timeout_ns())
        for _ in range(rounds):
            self.pass_time(50)
            for node in self.nodes.values():
                self.sync(node)
            waiting, self.wire = self.wire, []
            for message in waiting:
                self.wire.append(message)
                self.deliver(len(self.wire) - 1)
        self.check_logs()
