"""Runs one Raft node on a host: feeds the core with events and carries its effects out, in their order.

Messages and finished fsyncs are stepped as they come. Proposals and reads gather until the event loop
turns round, and while an fsync runs further writes gather for the next one: many proposals, one append,
one fsync. A disk that fails ends the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from system_under_test.raft.bounds import USUAL, Bounds
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
from system_under_test.raft.membership import Change, Membership, UnfitChange
from system_under_test.raft.message import Append, Entry, Kind, MalformedMessage, Message
from system_under_test.raft.reports import RaftReports
from system_under_test.raft.snapshot import Snapshot, SnapshotFile
from system_under_test.raft.storage import RaftStorage
from system_under_test.raft.transport import PeerTransport
from system_under_test.runtime.host import Host

MAX_PENDING = 16384
"""Proposals that wait to be applied, and reads that wait to be confirmed; one more of them is refused."""


class NotLeader(Exception):
    """This node takes no proposals and reads now: certainly nothing was appended. `leader` is a hint."""

    def __init__(self, leader: str | None) -> None:
        super().__init__(f"not the leader; the leader may be {leader}")
        self.leader = leader


class LeadershipLost(Exception):
    """The entry was appended, and then the leadership ended: it may or may not be applied later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    node: str
    members: Mapping[str, str] = field(default_factory=dict)
    """Raft address of each voter by id, until the log says otherwise. A node that is none of them waits to be added."""
    group: int = 0
    """Its number among the groups that share a transport, the same on all members."""
    directory: str = "raft"
    log: str = ""
    """The name under which its log is reported, entry by entry; empty: it is not."""
    heartbeat_s: float = 0.1
    min_election_timeout_s: float = 1.0
    max_election_timeout_s: float = 2.0
    snapshot_threshold: int = 1_000
    """So many entries are applied until a snapshot takes their place, where snapshots are asked for."""
    reports_entries: bool = True
    """Whether a log that has a name is reported entry by entry, or only who leads it and what is decided."""
    log_memory_bytes: int = USUAL.log_memory_bytes
    """So much of the log's newest part is kept in memory."""
    log_kept_bytes: int = 0
    """So much of the log stays behind a snapshot at least: a follower that lags by less needs no snapshot."""
    segment_bytes: int = 16 * 1024 * 1024
    """A file of the log that has so many bytes is followed by the next one."""
    window_entries: int = USUAL.window_entries
    """How far a leader sends ahead of what a follower has acknowledged."""
    batch_entries: int = USUAL.batch_entries
    """The most entries of one append."""
    batch_bytes: int = USUAL.batch_bytes
    """The most data of one append, unless a single entry has more."""
    gathered_entries: int = 0
    """So many proposals at most are made durable together, and the next wait for that; 0: all that have gathered."""
    lease_s: float = 0.0
    """So long after a majority was asked for it a leader reads without asking again, shorter than the least election
    timeout by as much as clocks may differ in rate; 0: it asks for each read. The same on all members."""
    promotion_lag: int = USUAL.promotion_lag
    """A learner that is more entries behind than this does not become a voter."""

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_s < self.min_election_timeout_s <= self.max_election_timeout_s:
            raise ValueError("expected heartbeat < least election timeout <= greatest election timeout")
        if not 0 <= self.lease_s < self.min_election_timeout_s:
            raise ValueError(
                f"lease_s: expected at least 0 and less than the least election timeout, got {self.lease_s}"
            )
        if self.snapshot_threshold < 1:
            raise ValueError(f"expected at least one entry until a snapshot, got {self.snapshot_threshold}")
        for name, least in (("log_kept_bytes", 0), ("segment_bytes", 1), ("gathered_entries", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        self.bounds()

    def bounds(self) -> Bounds:
        """Raises ValueError."""
        return Bounds(
            window_entries=self.window_entries,
            batch_entries=self.batch_entries,
            batch_bytes=self.batch_bytes,
            promotion_lag=self.promotion_lag,
            log_memory_bytes=self.log_memory_bytes,
        )


@dataclass(slots=True)
class _Proposal:
    data: bytes
    future: asyncio.Future[Any]
    term: int
    """The term of the leadership under which it was proposed; it is appended under no other, for the proposer may have
    decided on the state as it was then."""


@dataclass(frozen=True, slots=True)
class _Compaction:
    index: int
    sequence: int
    """The number of the write by which its snapshot becomes durable."""
    future: asyncio.Future[bool]


class RaftNode:
    """`check(data)` raises ValueError for an entry that `apply` would not understand: what peers send is held against
    it before anything else, so that no bytes from outside are ever applied that nobody can read.

    `apply(entry)` is called once for each committed entry with data, in order; its result is what the proposer gets.
    At a start, and whenever the leader has the next entries no more, `restore(snapshot)` comes first: the state becomes
    what `snapshot()` gave when all up to `snapshot.index` was applied. Without a snapshot it begins empty.
    An application whose state is in files too makes its snapshots by itself (`compact`), and gives None for `snapshot`.
    `on_leadership(is_active)` is called when this node becomes active (leader, own no-op applied) and when it ceases
    to be. `all_applied()` is called after entries were applied, as many as there were at once, before anybody learns of
    it."""

    def __init__(
        self,
        host: Host,
        config: RaftConfig,
        *,
        transport: PeerTransport,
        check: Callable[[bytes], object],
        apply: Callable[[Entry], Any],
        snapshot: Callable[[], bytes] | None,
        restore: Callable[[Snapshot], None],
        on_leadership: Callable[[bool], None] = lambda is_active: None,
        all_applied: Callable[[], None] = lambda: None,
        storage: RaftStorage | None = None,
        core: type[Raft] = Raft,
    ) -> None:
        self._host = host
        self._config = config
        self._storage = storage or RaftStorage(host.disk, config.directory)
        self._check = check
        self._apply = apply
        self._snapshot = snapshot
        self._restore = restore
        self._on_leadership = on_leadership
        self._all_applied = all_applied
        self._core = core
        self._reports = RaftReports(host, config.log, entries=config.reports_entries)
        self._of_group = {"group": config.group} if config.group else {}
        self._raft: Raft | None = None
        self._membership = Membership(voters=config.members)
        self._transport = transport.join(config.group, self._deliver)
        self._was_active = False
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._proposals: list[_Proposal] = []
        self._pending: dict[int, _Proposal] = {}
        self._new_reads: list[asyncio.Future[None]] = []
        self._reads: dict[int, list[asyncio.Future[None]]] = {}
        self._reads_waiting = 0
        self._token = 0
        self._transfer: asyncio.Future[bool] | None = None
        self._compactions: deque[_Compaction] = deque()
        self._dirty = asyncio.Event()
        self._unapplied = asyncio.Event()
        self._applied = 0
        self._vote_is_dirty = self._log_is_dirty = self._snapshot_is_dirty = False
        self._was_leader = False
        self._written = 0
        self._synced = 0
        self._syncing = 0
        """The last index up to which the log will be durable by the fsync that is under way."""
        self._held: deque[tuple[int, list[Message]]] = deque()
        """Messages, and the sequence number of the last write before them: what they tell is durable with it."""

    # -- what others may ask

    @property
    def is_active(self) -> bool:
        """Leader with its own no-op applied: its state holds all that was ever committed before its term."""
        return self._was_active

    @property
    def believes_itself_leader(self) -> bool:
        return self._raft is not None and self._raft.role is Role.LEADER

    @property
    def leader(self) -> str | None:
        """The leader of the current term, as far as this node knows."""
        return None if self._raft is None else self._raft.leader

    @property
    def membership(self) -> Membership:
        """The newest that this node has in its log, committed or not."""
        return self._membership

    @property
    def committed_membership_index(self) -> int | None:
        """The greater, the newer the membership. None: it is not committed."""
        raft = self._raft
        return None if raft is None or raft.log.membership_index > raft.commit else raft.log.membership_index

    @property
    def term(self) -> int:
        return 0 if self._raft is None else self._raft.term

    @property
    def applied(self) -> int:
        """The index of the last entry that was applied, or that the state's snapshot stands for."""
        return self._applied

    @property
    def place(self) -> str:
        """The directory for the application's files, once this node has started; another one from the moment that
        `restore` gets a snapshot of the leader's."""
        return self._storage.place

    def files_in_use(self) -> frozenset[str]:
        """Names of files of older snapshots that are still on their way to followers, and must stay as they are."""
        return frozenset() if self._raft is None else self._raft.files_in_use

    @property
    def log_bytes(self) -> int:
        """So much the entries behind the newest snapshot take on the disk."""
        return 0 if self._raft is None else self._storage.log_bytes_behind(self._raft.log.snapshot.index)

    async def start(self) -> None:
        """Recover and take part, as soon as the transport is started."""
        config = self._config
        recovered = await self._storage.open(segment_bytes=config.segment_bytes, kept_bytes=config.log_kept_bytes)
        if recovered.snapshot.index:
            self._restore(recovered.snapshot)
            self._applied = recovered.snapshot.index
        self._raft = self._core(
            node=config.node,
            membership=Membership(voters=config.members),
            timing=Timing(
                heartbeat_ns=int(config.heartbeat_s * 1e9),
                min_election_timeout_ns=int(config.min_election_timeout_s * 1e9),
                quorum_timeout_ns=int(config.max_election_timeout_s * 1e9),
                lease_ns=int(config.lease_s * 1e9),
            ),
            hard_state=recovered.hard_state,
            snapshot=recovered.snapshot,
            entries=recovered.entries,
            now_ns=self._host.clock.monotonic_ns(),
            election_timeout_ns=self._draw_election_timeout_ns(),
            bounds=config.bounds(),
            base=recovered.base,
            read=self._storage.read,
            read_file=self._storage.read_file,
        )
        self._reports.recovered(self._raft.last_index)
        self._go_by_membership(self._raft)
        spawn = self._host.spawn
        self._tasks = [
            spawn(self._keep_time(), "raft timer"),
            spawn(self._keep_durable(), "raft fsync"),
            spawn(self._take_requests(), "raft requests"),
            spawn(self._apply_the_rest(), "raft entries"),
        ]

    async def stop(self) -> None:
        """Leave without ado; what was appended and is not applied ends as LeadershipLost."""
        self._stopped = True
        self._transport.leave()
        for task in self._tasks:
            task.cancel()
        self._lose_requests()
        self._storage.close()

    def propose(self, data: bytes) -> asyncio.Future[Any]:
        """The result of applying `data`, once it is. Raises NotLeader at once or through the future;
        LeadershipLost through the future. Cancelling it changes nothing but that nobody listens."""
        assert data, "empty data is the leader's no-op"
        if self._raft is not None and self._raft.transferee is not None:
            raise NotLeader(self._raft.transferee)
        if not self._was_active or len(self._pending) + len(self._proposals) >= MAX_PENDING:
            raise NotLeader(self.leader)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._proposals.append(_Proposal(data, future, self.term))
        self._wake.set()
        return future

    def read_barrier(self) -> asyncio.Future[None]:
        """Done when nobody newer than this leader was elected at some moment after the call, and it has applied all
        that was committed at that moment. Raises NotLeader at once or through the future; it may wait without bound."""
        if not self._was_active or self._reads_waiting >= MAX_PENDING:
            raise NotLeader(self.leader)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._new_reads.append(future)
        self._reads_waiting += 1
        self._wake.set()
        return future

    def is_level(self, node: str) -> bool:
        """Whether this node leads, and knows of another one that it has all that is committed, and answers."""
        raft = self._raft
        return raft is not None and self._was_active and raft.is_level(node, self._host.clock.monotonic_ns())

    def transfer_leadership(self, to: str) -> asyncio.Future[bool]:
        """Have another member lead. True once this node does not lead any more; False if `to` could not
        take over within an election timeout, is no member, or another transfer is under way. Proposals are refused
        meanwhile, reads are served. Raises NotLeader."""
        raft = self._raft
        if raft is None or not self._was_active:
            raise NotLeader(self.leader)
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._transfer is None:
            self._transfer = future
            self._step(Transfer(to))
        else:
            future.set_result(False)
        return future

    def change_membership(self, change: Change) -> asyncio.Future[None]:
        """Done once the change is committed; one at a time. Raises NotLeader or UnfitChange at once: nothing was
        appended; LeadershipLost through the future."""
        raft = self._raft
        if raft is None or not self._was_active:
            raise NotLeader(self.leader)
        refusal = raft.refusal_of(change) or raft.danger_of(change, self._host.clock.monotonic_ns())
        if refusal is not None:
            raise UnfitChange(refusal)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending[raft.last_index + 1] = _Proposal(b"", future, raft.term)
        self._step(ChangeMembership(change))
        return future

    def compact(self, index: int, data: bytes, files: Sequence[SnapshotFile] = ()) -> asyncio.Future[bool]:
        """Let a snapshot take the place of all entries up to `index`, which are applied: the state as it was then is
        `data` and these files, which are durable in `place` already. True once it is durable and the log may begin
        behind it; False where a newer one took its place, or this node was stopped. Raises DiskFull, DiskError."""
        raft = self._raft
        assert raft is not None and index <= self._applied, "a snapshot of what is not applied"
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._stopped or index <= raft.log.snapshot.index:
            future.set_result(False)
            return future
        self._step(self._compaction(index, data, tuple(files)))
        self._compactions.append(_Compaction(index, self._written, future))
        return future

    # -- tasks

    async def _keep_time(self) -> None:
        clock = self._host.clock
        assert self._raft is not None
        longest_ns = int(self._config.heartbeat_s * 1e9)
        while True:
            left_ns = self._raft.deadline_ns - clock.monotonic_ns()
            await clock.sleep(max(0, min(left_ns, longest_ns)) / 1e9)
            self._step(Tick(self._draw_election_timeout_ns()))
            self._transport.drop_silent(clock.monotonic_ns())

    async def _keep_durable(self) -> None:
        assert self._raft is not None
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            written, self._syncing = self._written, self._raft.last_index
            vote, log, snapshot = self._vote_is_dirty, self._log_is_dirty, self._snapshot_is_dirty
            self._vote_is_dirty = self._log_is_dirty = self._snapshot_is_dirty = False
            await self._storage.sync()
            if vote:
                self._reached("vote-persisted")
            if log:
                self._reached("appended-before-answer", durable=self._syncing)
            if snapshot:
                self._reached("snapshot-persisted", durable=self._syncing)
            self._synced = written
            self._step(Persisted(written))
            self._end_compactions(written)
            if self._proposals:
                self._wake.set()
            now_ns = self._host.clock.monotonic_ns()
            while self._held and self._held[0][0] <= written:
                for message in self._held.popleft()[1]:
                    self._transport.send(message, now_ns)

    async def _take_requests(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._proposals:
                self._take_proposals()
            if self._new_reads:
                self._take_reads()

    async def _apply_the_rest(self) -> None:
        """Of what is committed, where that is too much for one step."""
        while True:
            await self._unapplied.wait()
            self._unapplied.clear()
            await self._host.clock.sleep(0)
            self._step(Apply())

    def _take_proposals(self) -> None:
        raft = self._raft
        assert raft is not None
        gathered = self._config.gathered_entries
        if gathered and self._written > self._synced:
            return  # They are taken once all before them is durable.
        taken = gathered or len(self._proposals)
        proposals, self._proposals = self._proposals[:taken], self._proposals[taken:]
        accepted: list[bytes] = []
        for proposal in proposals:
            if raft.role is Role.LEADER and raft.term == proposal.term and raft.transferee is None:
                accepted.append(proposal.data)
                self._pending[raft.last_index + len(accepted)] = proposal
            else:
                _fail(proposal.future, NotLeader(raft.transferee or raft.leader))
        if accepted:
            self._step(Propose(tuple(accepted)))

    def _take_reads(self) -> None:
        reads, self._new_reads = self._new_reads, []
        self._token += 1
        self._reads[self._token] = reads
        self._step(Read((self._token,)))

    def _deliver(self, message: Message) -> None:
        """Raises MalformedMessage."""
        if isinstance(message, Append):
            try:
                for entry in message.entries:
                    if entry.data and entry.kind is Kind.COMMAND:
                        self._check(entry.data)
            except ValueError as error:
                raise MalformedMessage(f"an entry cannot be read: {error}") from error
        # The transport may be up before this group has recovered.
        if self._raft is not None and not self._stopped:
            self._step(Receive(message))

    def _draw_election_timeout_ns(self) -> int:
        config = self._config
        return int(self._host.random.uniform(config.min_election_timeout_s, config.max_election_timeout_s) * 1e9)

    # -- effects

    def _step(self, event: Event) -> None:
        raft = self._raft
        assert raft is not None
        now_ns = self._host.clock.monotonic_ns()
        last_index = raft.last_index
        effects = raft.step(event, now_ns)
        if (raft.role is Role.LEADER) is not self._was_leader:
            self._was_leader = not self._was_leader
            self._reports.role(raft)
            self._reached("became-leader" if self._was_leader else "lost-leadership")
        self._receive_files(effects)
        if effects.must_persist:
            self._note_write(effects, last_index)
            self._reports.persists(effects, last_index)
            self._storage.write(effects.hard_state, effects.entries)
            self._write_snapshot(effects)
            self._written = effects.sequence
            self._dirty.set()
        if raft.membership is not self._membership:
            self._go_by_membership(raft)
        self._reports.asks(effects)
        for append in effects.appends:
            self._transport.send(append, now_ns)
        if effects.messages:
            if self._written > self._synced:
                self._held.append((self._written, effects.messages))
            else:
                for message in effects.messages:
                    self._transport.send(message, now_ns)
        self._reports.committed(raft)
        self._answer(effects)
        if raft.is_active is not self._was_active or (self._pending and raft.role is not Role.LEADER):
            self._change_leadership(raft.is_active)
        if self._transfer is not None and raft.transferee is None:
            self._end_transfer(raft.role is not Role.LEADER)
        is_due = self._applied - raft.log.snapshot.index >= self._config.snapshot_threshold
        if self._snapshot is not None and is_due and not self._snapshot_is_dirty:
            self._step(self._compaction(self._applied, self._snapshot()))
        if raft.applied < raft.commit:
            self._unapplied.set()

    def _go_by_membership(self, raft: Raft) -> None:
        self._membership = raft.membership
        self._reports.membership(raft.log.membership_index, raft.membership)
        self._transport.set_peers(raft.membership.addresses)

    def _compaction(self, index: int, data: bytes, files: tuple[SnapshotFile, ...] = ()) -> Compact:
        return Compact(index, data, files, self._storage.base_behind_which(self._config.log_kept_bytes, index))

    def _receive_files(self, effects: Effects) -> None:
        if effects.begins_receiving:
            self._storage.begin_receiving()
        for piece in effects.pieces:
            self._storage.receive(piece)
        if effects.restored is not None:
            self._reached("transfer-received", index=effects.restored.index)

    def _write_snapshot(self, effects: Effects) -> None:
        snapshot = effects.snapshot
        if snapshot is None:
            return
        if effects.restored is not None:
            # One of the leader's lies where the own one does not.
            snapshot = replace(snapshot, place=self._storage.other_place)
        if effects.log_base is None:
            self._storage.begin_anew(snapshot)
        else:
            self._storage.compact(snapshot, effects.log_base)

    def _reached(self, point: str, **values: int) -> None:
        self._host.reached(point, **values, **self._of_group)

    def _note_write(self, effects: Effects, last_index: int) -> None:
        hard_state = effects.hard_state
        if hard_state is not None:
            self._vote_is_dirty = True
            self._reports.term(hard_state)
            self._reached("about-to-persist-vote")
        if effects.restored is not None:
            self._syncing = 0
        elif effects.entries and effects.snapshot is None:
            self._syncing = min(self._syncing, effects.entries[0].index - 1)
        if effects.snapshot is not None:
            self._snapshot_is_dirty = True
            self._reached("about-to-write-snapshot")
        elif effects.entries:
            self._log_is_dirty = True
            self._reached("about-to-cut-entries" if effects.entries[0].index <= last_index else "about-to-append")

    def _answer(self, effects: Effects) -> None:
        if effects.restored is not None:
            self._reached("about-to-install-snapshot", index=effects.restored.index)
            self._restore(replace(effects.restored, place=self._storage.place))
            self._applied = effects.restored.index
        results = [self._applied_entry(entry) for entry in effects.committed]
        if results:
            self._all_applied()
        for entry, result in zip(effects.committed, results, strict=True):
            proposal = self._pending.pop(entry.index, None)
            if proposal is not None and not proposal.future.done():
                if proposal.term == entry.term:
                    proposal.future.set_result(result)
                else:
                    proposal.future.set_exception(LeadershipLost())
        for token in effects.reads:
            for future in self._reads.pop(token):
                self._reads_waiting -= 1
                if not future.done():
                    future.set_result(None)
        for token in effects.lost_reads:
            for future in self._reads.pop(token):
                self._reads_waiting -= 1
                _fail(future, NotLeader(self.leader))

    def _applied_entry(self, entry: Entry) -> Any:
        """What applying it gave; None for one that is not the state machine's."""
        result = None
        if entry.data and entry.kind is Kind.COMMAND:
            self._reached("about-to-apply", index=entry.index, term=entry.term)
            result = self._apply(entry)
        self._applied = entry.index
        return result

    def _change_leadership(self, is_active: bool) -> None:
        if not is_active:
            self._lose_pending()
        if is_active is not self._was_active:
            self._was_active = is_active
            if is_active:
                self._reached("noop-committed")
            self._on_leadership(is_active)

    def _end_transfer(self, happened: bool) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None and not transfer.done():
            transfer.set_result(happened)

    def _end_compactions(self, written: int) -> None:
        """Those of which the snapshots were written until then."""
        while self._compactions and self._compactions[0].sequence <= written:
            compaction = self._compactions.popleft()
            if not compaction.future.done():
                compaction.future.set_result(compaction.index == self._storage.snapshot_index)

    def _lose_pending(self) -> None:
        pending, self._pending = self._pending, {}
        for proposal in pending.values():
            _fail(proposal.future, LeadershipLost())

    def _lose_requests(self) -> None:
        self._lose_pending()
        self._end_transfer(True)
        for compaction in self._compactions:
            if not compaction.future.done():
                compaction.future.set_result(False)
        for proposal in self._proposals:
            _fail(proposal.future, NotLeader(None))
        for reads in [self._new_reads, *self._reads.values()]:
            for future in reads:
                _fail(future, NotLeader(None))


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        # A caller that timed out and went away shall not make the event loop complain.
        future.exception()
