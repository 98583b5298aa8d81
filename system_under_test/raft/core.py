"""Raft as a pure core: `step(event, now_ns)` changes the state and says what is to be done.

No I/O, no clock, no randomness: time and freshly drawn election timeouts come in with the events, and
everything that touches the world goes out in `Effects`, whose fields say in what order. It has pre-vote,
a leader's no-op, cuts on real conflicts only, commits only entries of the own term by counting, reads by
read index, and a leader that steps down when no majority answers it (check quorum). A snapshot takes the
place of the log's front; a follower that needs what is gone is sent it in chunks. A leader can hand over to
a member that it chooses. Members come and go one at a time, by entries of the log. Safety never rests on
time, but for reads by lease, where these are asked for.

With a lease a leader reads without asking anybody, for so long after the begin of a round that a majority has
confirmed. Who has confirmed it votes for nobody else for an election timeout, not even if it starts anew, unless the
leader asked one to stand; a leader that did so reads by its lease no more. Clocks may differ in rate by as much as the
lease is shorter than the election timeout.

Source: Ongaro, Consensus: Bridging Theory and Practice (2014), chapters 3, 4, 5, 6.4 and 9.6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from system_under_test.raft import membership as memberships
from system_under_test.raft.bounds import USUAL, Bounds
from system_under_test.raft.event import (
    Apply,
    ChangeMembership,
    Compact,
    Effects,
    Event,
    Persisted,
    Propose,
    Receive,
    Tick,
    Transfer,
)
from system_under_test.raft.lease import Lease
from system_under_test.raft.log import Log, ReadEntries, nothing_to_read
from system_under_test.raft.membership import Change, Membership, Promote, UnfitChange
from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    ChunkTaken,
    Entry,
    HardState,
    Kind,
    Message,
    PreVoteReply,
    PreVoteRequest,
    SnapshotChunk,
    SuccessorVoteRequest,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)
from system_under_test.raft.replication import Progress, Replication, fitting
from system_under_test.raft.snapshot import Incoming, ReadFile, Snapshot
from system_under_test.raft.snapshot import nothing_to_read as no_file_to_read


class Role(Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    heartbeat_ns: int
    min_election_timeout_ns: int
    """Who has heard its leader within this time refuses pre-votes."""
    quorum_timeout_ns: int
    """A leader that has not heard a majority for so long steps down; at least the longest election timeout."""
    lease_ns: int = 0
    """So long after the begin of a round that a majority confirmed its leader reads without asking; 0: it always asks.
    Shorter than the least election timeout."""


class Raft:
    """One node. Reading attributes is free; only `step` changes them."""

    chunk_bytes: ClassVar = 256 * 1024
    """How many bytes of a snapshot go into one message."""

    def __init__(
        self,
        *,
        node: str,
        membership: Membership,
        timing: Timing,
        hard_state: HardState,
        snapshot: Snapshot,
        entries: Iterable[Entry],
        now_ns: int,
        election_timeout_ns: int,
        bounds: Bounds = USUAL,
        base: tuple[int, int] | None = None,
        read: ReadEntries = nothing_to_read,
        read_file: ReadFile = no_file_to_read,
    ) -> None:
        """`hard_state`, `snapshot` and `entries` are what the disk kept; the state is the snapshot. The entries begin
        behind the `base`, the index and term of an entry, or None for the snapshot's last one; `read` reads those that
        effects of earlier steps asked to be written, and `read_file` the files of snapshots. Both may raise DiskError.
        `membership` holds where these say nothing else; a node that is none of its members waits to be added."""
        self.node = node
        self.term = hard_state.term
        self.vote = hard_state.vote
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.log = Log(snapshot, entries, membership, base=base, memory_bytes=bounds.log_memory_bytes, read=read)
        self.commit = snapshot.index
        self.applied = snapshot.index
        """Up to this index entries, or a snapshot in their place, were handed out to be applied."""
        self.durable_index = self.log.last_index
        self._timing = timing
        self._bounds = bounds
        self._kept = hard_state
        self._unsynced: deque[list[int]] = deque()
        self._timer_ns = self._leader_heard_ns = self._now_ns = now_ns
        self._timeout_ns = self._drawn_timeout_ns = election_timeout_ns
        self._pre_votes: set[str] = set()
        self._votes: set[str] = set()
        """For this node, in the current term; empty if it does not stand, or not any more."""
        self.elected_by: tuple[str, ...] = ()
        """Whose votes made this node the leader last."""
        self.elected_with = (0, 0)
        """Term and index of the last entry that it had then."""
        self._incoming = Incoming()
        self._installed = 0
        """The step by which a snapshot of the leader's was taken over that is not durable yet; 0: there is none."""
        self._read_file = read_file
        self._replication = Replication(node, self.term, self.log, bounds, self.chunk_bytes, read_file)
        self.transferee: str | None = None
        """To whom this leader hands over; it takes no proposals meanwhile, so that one can catch up."""
        self._transfer_until_ns = 0
        self._next_heartbeat_ns = 0
        self._own_term_index = 0
        self._reads: deque[tuple[int, int, int]] = deque()
        """Of each: the round that has to be confirmed, the index that has to be applied, its token."""
        self._early_reads: list[int] = []
        self._lease = Lease(timing.lease_ns)
        self._effects = Effects(0)

    @property
    def last_index(self) -> int:
        return self.log.last_index

    @property
    def membership(self) -> Membership:
        return self.log.membership

    @property
    def is_voter(self) -> bool:
        return self.node in self.membership.voters

    @property
    def _may_stand(self) -> bool:
        """Also while its removal is not known to be committed: it may be the only one that has the entry which removes
        it, and then nobody else could be elected."""
        return any(self.node in membership.voters for membership in self.log.memberships_from(self.commit))

    @property
    def is_active(self) -> bool:
        """Leader, and its own no-op is applied, and with it all that is committed before its term."""
        return self.role is Role.LEADER and self.applied >= self._own_term_index

    @property
    def files_in_use(self) -> frozenset[str]:
        """Names of files that belong to older snapshots than the newest, and are still sent to followers."""
        return self._replication.files_in_use() if self.role is Role.LEADER else frozenset()

    @property
    def deadline_ns(self) -> int:
        """When the next Tick is due."""
        if self.role is Role.LEADER:
            return self._next_heartbeat_ns
        return self._timer_ns + self._timeout_ns

    def step(self, event: Event, now_ns: int) -> Effects:
        effects = self._effects = Effects(self._effects.sequence + 1)
        self._replication.sent = effects.appends
        self._now_ns = now_ns
        self.log.shrink()
        if isinstance(event, Receive):
            self._receive(event.message, now_ns)
        elif isinstance(event, Persisted):
            self._persisted(event.sequence)
        elif isinstance(event, Tick):
            self._tick(event.election_timeout_ns, now_ns)
        elif isinstance(event, Propose):
            self._propose(event.data)
        elif isinstance(event, Compact):
            self._compact(event)
        elif isinstance(event, Apply):
            self._hand_out()
        elif isinstance(event, Transfer):
            self._begin_transfer(event.to, now_ns)
        elif isinstance(event, ChangeMembership):
            self._change_membership(event.change, now_ns)
        else:
            self._read(event.tokens)
        if self.role is Role.LEADER and not self.is_voter and self.log.membership_index <= self.commit:
            # It has led until its own removal was certain.
            self._become_follower(self.term, now_ns)
        if self._kept.term != self.term or self._kept.vote != self.vote:
            effects.hard_state = self._kept = HardState(self.term, self.vote)
        if effects.must_persist:
            self._unsynced.append([effects.sequence, self.last_index])
        return effects

    # -- time and roles

    def _tick(self, election_timeout_ns: int, now_ns: int) -> None:
        self._drawn_timeout_ns = election_timeout_ns
        if now_ns < self.deadline_ns:
            return
        if self.role is not Role.LEADER:
            if self._may_stand:
                self._ask_for_pre_votes(now_ns)
            else:
                self._become_follower(self.term, now_ns)
                self._restart_timer(now_ns)
        elif now_ns - self._quorum_heard_ns(now_ns) >= self._timing.quorum_timeout_ns:
            self._become_follower(self.term, now_ns)
        else:
            self._next_heartbeat_ns = now_ns + self._timing.heartbeat_ns
            if now_ns >= self._transfer_until_ns:
                self.transferee = None
            self._hand_over()
            self._call_round()
            self._replication.renew_transfers(now_ns - self._timing.quorum_timeout_ns)
            self._replication.repeat_chunks()

    def _quorum_heard_ns(self, now_ns: int) -> int:
        return self._reached_by_majority(now_ns, lambda progress: progress.heard_ns)

    def _reached_by_majority(self, own: int, of: Callable[[Progress], int]) -> int:
        """The greatest number that a majority of the voters has reached; this node has, if it votes, `own`."""
        voters, followers = self.membership.voters, self._replication.followers
        numbers = [own if voter == self.node else of(followers[voter]) for voter in voters]
        return sorted(numbers, reverse=True)[self.membership.majority - 1]

    def _restart_timer(self, now_ns: int) -> None:
        self._timer_ns = now_ns
        self._timeout_ns = self._drawn_timeout_ns

    def _become_follower(self, term: int, now_ns: int) -> None:
        if self.role is Role.LEADER:
            self._effects.lost_reads += self._early_reads
            self._effects.lost_reads += (token for _, _, token in self._reads)
            self._early_reads.clear()
            self._reads.clear()
            self.transferee = None
            self._restart_timer(now_ns)
        if term > self.term:
            self.term = term
            self.vote = None
            self._votes.clear()
        self.role = Role.FOLLOWER
        self.leader = None

    def _ask_for_pre_votes(self, now_ns: int) -> None:
        self.role = Role.PRE_CANDIDATE
        self.leader = None
        self._restart_timer(now_ns)
        self._pre_votes = {self.node}
        for peer in self._other_voters():
            self._effects.messages.append(
                PreVoteRequest(self.node, peer, self.term + 1, self.last_index, self.log.last_term)
            )
        self._count_votes(now_ns)

    def _become_candidate(self, now_ns: int, kind: type[VoteRequest] = VoteRequest) -> None:
        self.role = Role.CANDIDATE
        self.term += 1
        self.vote = self.node
        self._restart_timer(now_ns)
        self._votes = {self.node}
        for peer in self._other_voters():
            self._effects.messages.append(kind(self.node, peer, self.term, self.last_index, self.log.last_term))
        self._count_votes(now_ns)

    def _other_voters(self) -> list[str]:
        return [voter for voter in sorted(self.membership.voters) if voter != self.node]

    def _have_majority(self, votes: set[str]) -> bool:
        return sum(voter in votes for voter in self.membership.voters) >= self.membership.majority

    def _count_votes(self, now_ns: int) -> None:
        if self.role is Role.PRE_CANDIDATE and self._have_majority(self._pre_votes):
            self._become_candidate(now_ns)
        elif self._votes and self._have_majority(self._votes):
            self._become_leader(now_ns)

    def _become_leader(self, now_ns: int) -> None:
        self.role = Role.LEADER
        self.leader = self.node
        self.elected_by = tuple(voter for voter in sorted(self.membership.voters) if voter in self._votes)
        self.elected_with = (self.log.last_term, self.last_index)
        self._votes.clear()
        self._replication = Replication(self.node, self.term, self.log, self._bounds, self.chunk_bytes, self._read_file)
        self._replication.sent = self._effects.appends
        self._replication.commit = self.commit
        self._replication.follow_up(self.membership.addresses, now_ns)
        self._own_term_index = self.last_index + 1
        self._lease = Lease(self._timing.lease_ns)
        self._next_heartbeat_ns = now_ns + self._timing.heartbeat_ns
        # Entries of older terms are committed only together with one of the own term (figure 8 of the
        # paper), so there has to be one, even if nobody proposes anything.
        self._append_own((b"",))

    # -- messages

    def _receive(self, message: Message, now_ns: int) -> None:
        if isinstance(message, PreVoteRequest):
            self._on_pre_vote_request(message, now_ns)
            return
        if isinstance(message, PreVoteReply) and message.granted:
            if self.role is Role.PRE_CANDIDATE and message.term == self.term + 1:
                self._pre_votes.add(message.sender)
                self._count_votes(now_ns)
            return
        if isinstance(message, VoteRequest) and self._stays_with_its_leader(message, now_ns):
            return
        if message.term > self.term:
            self._become_follower(message.term, now_ns)
        if isinstance(message, Append | SnapshotChunk) and self.role is Role.LEADER and message.term == self.term:
            return  # No other node leads this term; one that says so lies, or was elected by votes that were forgotten.
        if isinstance(message, Append):
            self._on_append(message, now_ns)
        elif isinstance(message, SnapshotChunk):
            self._on_chunk(message, now_ns)
        elif isinstance(message, VoteRequest):
            self._on_vote_request(message, now_ns)
        elif message.term < self.term:
            return
        elif isinstance(message, AppendAccepted | AppendRefused | ChunkTaken):
            if self.role is Role.LEADER:
                self._on_reply(message, now_ns)
        elif isinstance(message, TimeoutNow):
            # No pre-vote: those who are asked hear the leader that wants to be followed by this one.
            if self.leader == message.sender and self.is_voter:
                self._become_candidate(now_ns, SuccessorVoteRequest if self._timing.lease_ns else VoteRequest)
        elif isinstance(message, VoteReply) and message.granted and self._votes:
            # Also after the election timer has run out and asks for pre-votes again: the vote still stands,
            # and where a round trip takes longer than the timer nobody would ever win otherwise.
            self._votes.add(message.sender)
            self._count_votes(now_ns)

    def _is_up_to_date(self, last_index: int, last_term: int) -> bool:
        return (last_term, last_index) >= (self.log.last_term, self.last_index)

    def _hears_leader(self, now_ns: int) -> bool:
        """With a lease also one that it may have heard before it started."""
        if self.role is Role.LEADER:
            return True
        may_have_heard = self.leader is not None or self._timing.lease_ns > 0
        return may_have_heard and now_ns - self._leader_heard_ns < self._timing.min_election_timeout_ns

    def _stays_with_its_leader(self, message: VoteRequest, now_ns: int) -> bool:
        """Whether that leader may read by its lease now, and knows nothing of this election."""
        is_successor = isinstance(message, SuccessorVoteRequest)
        return self._timing.lease_ns > 0 and not is_successor and self._hears_leader(now_ns)

    def _on_pre_vote_request(self, message: PreVoteRequest, now_ns: int) -> None:
        granted = (
            message.term > self.term
            and not self._hears_leader(now_ns)
            and self._is_up_to_date(message.last_index, message.last_term)
        )
        term = message.term if granted else self.term
        self._effects.messages.append(PreVoteReply(self.node, message.sender, term, granted))

    def _on_vote_request(self, message: VoteRequest, now_ns: int) -> None:
        granted = (
            message.term == self.term
            and self.vote in (None, message.sender)
            and self._is_up_to_date(message.last_index, message.last_term)
        )
        if granted:
            self.vote = message.sender
            self._restart_timer(now_ns)
        self._effects.messages.append(VoteReply(self.node, message.sender, self.term, granted))

    def _on_append(self, message: Append, now_ns: int) -> None:
        if message.term < self.term:
            self._refuse(message, message.previous_index)
            return
        self._follow(message.sender, now_ns)
        previous, entries = message.previous_index, message.entries
        if previous < self.log.snapshot.index:
            # All that the snapshot stands for is committed, so the leader has the same.
            entries = entries[self.log.snapshot.index - previous :]
            previous = self.log.snapshot.index
        elif not self.log.has(previous, message.previous_term):
            self._refuse(message, self.log.last_at_most(min(previous - 1, self.last_index), message.previous_term))
            return
        for position, entry in enumerate(entries):
            if not self.log.has(entry.index, entry.term):
                self._write(entries[position:])
                break
        # Only what this message has verified: the own log may go on behind it with entries that conflict.
        match = previous + len(entries)
        self._commit_to(min(message.commit, match))
        self._accept(message, match)

    def _follow(self, leader: str, now_ns: int) -> None:
        """Of the own term."""
        self.role = Role.FOLLOWER
        self._votes.clear()
        self.leader = leader
        self._leader_heard_ns = now_ns
        self._restart_timer(now_ns)

    def _accept(self, message: Append | SnapshotChunk, match: int) -> None:
        self._effects.messages.append(AppendAccepted(self.node, message.sender, self.term, message.round, match))

    def _refuse(self, message: Append, hint: int) -> None:
        hint = min(hint, self.last_index)
        # Before the snapshot's last entry there is nothing that could fail to fit.
        hint_term = self.log.term_at(max(hint, self.log.snapshot.index))
        self._effects.messages.append(
            AppendRefused(self.node, message.sender, self.term, message.round, message.previous_index, hint, hint_term)
        )

    def _on_chunk(self, message: SnapshotChunk, now_ns: int) -> None:
        if message.term == self.term:
            self._follow(message.sender, now_ns)
            if message.index <= self.commit:
                self._accept(message, message.index)
                return
            if self._take_chunk(message):
                self._accept(message, message.index)
                return
        self._effects.messages.append(
            ChunkTaken(self.node, message.sender, self.term, message.round, message.index, self._incoming.received)
        )

    def _take_chunk(self, message: SnapshotChunk) -> bool:
        """Whether the snapshot is there now, and in place."""
        if self._installed:
            return False  # Where its files would go are those of the snapshot that is still the durable one.
        taken = self._incoming.take(message)
        self._effects.begins_receiving = taken.begins
        self._effects.pieces = taken.pieces
        if taken.snapshot is None:
            return False
        self._install(taken.snapshot)
        return True

    def _install(self, snapshot: Snapshot) -> None:
        if self.log.has(snapshot.index, snapshot.term):
            self.log.compact(snapshot, snapshot.index)
            self._effects.log_base = snapshot.index
        else:
            self._forget_durable(self.commit)
            self.log.begin_anew(snapshot)
        self._effects.snapshot = self._effects.restored = snapshot
        self._installed = self._effects.sequence
        self.commit = self.applied = snapshot.index

    # -- the leader

    def _propose(self, data: tuple[bytes, ...]) -> None:
        assert self.role is Role.LEADER and self.transferee is None, "only a leader takes proposals"
        self._append_own(data)

    def _append_own(self, data: tuple[bytes, ...]) -> None:
        first = self.last_index + 1
        self._write([Entry(first + position, self.term, item) for position, item in enumerate(data)])
        self._replication.send_to_all()

    def _call_round(self) -> None:
        self._renew_lease()
        self._replication.call_round()
        self._lease.begin(self._replication.round, self._now_ns)
        self._serve_reads()

    def _on_reply(self, message: AppendAccepted | AppendRefused | ChunkTaken, now_ns: int) -> None:
        if self._replication.note(message, now_ns):
            self._advance_commit()
            self._hand_over()
        self._serve_reads()
        self._replication.go_on(message)

    def _advance_commit(self) -> None:
        index = self._reached_by_majority(self.durable_index, lambda progress: progress.match)
        if index > self.commit and self.log.term_at(index) == self.term:
            self._commit_to(index)

    # -- members

    @property
    def _is_changing(self) -> bool:
        """Whether the newest change of the membership is not committed yet."""
        return self.log.membership_index > self.commit

    def refusal_of(self, change: Change) -> str | None:
        """Why this leader cannot change the membership so now; None if it can."""
        if not self.is_active or self.transferee is not None:
            return "this node does not lead, or not yet, or is about to hand over"
        if self._is_changing:
            return "the change before is not committed yet"
        try:
            self.membership.changed(change)
        except UnfitChange as error:
            return str(error)
        learner = self._replication.followers.get(change.node)
        lag = self.commit - (0 if learner is None else learner.match)
        if isinstance(change, Promote) and (learner is None or lag > self._bounds.promotion_lag):
            return f"{change.node} has not caught up"
        return None

    def danger_of(self, change: Change, now_ns: int) -> str | None:
        """Why this fit change may end in a group that decides nothing any more: too few of those who would vote then
        have answered this leader lately. None if there is no such danger. Safety does not rest on it."""
        changed = self.membership.changed(change)
        if isinstance(change, Promote) and not self._answers(change.node, now_ns):
            return f"{change.node} does not answer"
        answering = sum(voter == self.node or self._answers(voter, now_ns) for voter in changed.voters)
        return None if answering >= changed.majority else "too few of those who would vote then answer"

    def is_level(self, peer: str, now_ns: int) -> bool:
        """Whether this leader knows of a follower that it has all that is committed, and answers."""
        return (
            peer in self._replication.followers
            and self._replication.followers[peer].match >= self.commit
            and self._answers(peer, now_ns)
        )

    def _answers(self, peer: str, now_ns: int) -> bool:
        progress = self._replication.followers[peer]
        return progress.match > 0 and now_ns - progress.heard_ns < self._timing.min_election_timeout_ns

    def _change_membership(self, change: Change, now_ns: int) -> None:
        refusal = self.refusal_of(change)
        assert refusal is None, refusal
        changed = self.membership.changed(change)
        self._write([Entry(self.last_index + 1, self.term, memberships.encode(changed), Kind.MEMBERSHIP)])
        self._replication.follow_up(self.membership.addresses, now_ns)
        self._replication.send_to_all()

    # -- handing over

    def _begin_transfer(self, to: str, now_ns: int) -> None:
        if self.role is Role.LEADER and self.transferee is None and to in self._other_voters():
            self.transferee = to
            self._transfer_until_ns = now_ns + self._timing.min_election_timeout_ns
            self._hand_over()

    def _hand_over(self) -> None:
        """Once the other one has the whole log; again with every heartbeat, as that may be lost."""
        to = self.transferee
        if to is not None and self._replication.followers[to].match == self.last_index:
            self._lease.end()
            self._replication.tell_to_stand(to)

    # -- reads

    def _read(self, tokens: tuple[int, ...]) -> None:
        if self.role is not Role.LEADER:
            self._effects.lost_reads += tokens
        elif not self.is_active:
            self._early_reads += tokens
        else:
            self._register_reads(tokens)

    def _register_reads(self, tokens: Sequence[int]) -> None:
        """What is committed now may be read once a majority has confirmed a round that begins now, or has confirmed one
        not long ago."""
        if self.has_lease():
            self._reads.extend((0, self.commit, token) for token in tokens)
            self._serve_reads()
        else:
            self._reads.extend((self._replication.round + 1, self.commit, token) for token in tokens)
            self._call_round()

    def has_lease(self) -> bool:
        """Whether this leader, at its last step, could be sure that nobody else had been elected."""
        self._renew_lease()
        return self._lease.holds(self._now_ns)

    def _renew_lease(self) -> None:
        """With each round, too: as long as nobody reads, rounds that were confirmed would else be kept for ever."""
        if self._timing.lease_ns:
            self._lease.confirm(self._confirmed_round())

    def _confirmed_round(self) -> int:
        return self._reached_by_majority(self._replication.round, lambda progress: progress.round)

    def _serve_reads(self) -> None:
        if not self._reads:
            return
        confirmed = self._confirmed_round()
        while self._reads and self._reads[0][0] <= confirmed and self._reads[0][1] <= self.applied:
            self._effects.reads.append(self._reads.popleft()[2])

    # -- the log

    def _write(self, entries: Sequence[Entry]) -> None:
        """Put entries at the end, cutting what conflicts with the first of them."""
        first = entries[0].index
        if first <= self.last_index:
            assert first > self.commit, "a committed entry would be cut"
            self._forget_durable(first - 1)
        self.log.put(entries)
        self._effects.entries += entries

    def _forget_durable(self, index: int) -> None:
        """What is behind this index is cut, whether it was durable or was about to be."""
        self.durable_index = min(self.durable_index, index)
        for unsynced in self._unsynced:
            unsynced[1] = min(unsynced[1], index)

    def _compact(self, event: Compact) -> None:
        assert event.index <= self.applied, "a snapshot of what is not applied"
        if event.index > self.log.snapshot.index:
            term, membership = self.log.term_at(event.index), self.log.membership_at(event.index)
            snapshot = Snapshot(event.index, term, event.data, membership, event.files)
            self.log.compact(snapshot, event.index if event.base_index is None else event.base_index)
            self._effects.snapshot = snapshot
            self._effects.log_base = self.log.base_index

    def _persisted(self, sequence: int) -> None:
        if self._installed <= sequence:
            self._installed = 0
        while self._unsynced and self._unsynced[0][0] <= sequence:
            self.durable_index = max(self.durable_index, self._unsynced.popleft()[1])
        if self.role is Role.LEADER:
            self._advance_commit()

    def _commit_to(self, index: int) -> None:
        if index > self.commit:
            self.commit = self._replication.commit = index
            self._hand_out()

    def _hand_out(self) -> None:
        """So much of what is committed as one step may."""
        if self.applied == self.commit:
            return
        was_active = self.is_active
        entries = self.log.behind(self.applied, min(self.commit - self.applied, self._bounds.applied_entries))
        entries = entries[: fitting(entries, self._bounds.applied_bytes)]
        self._effects.committed += entries
        self.applied += len(entries)
        self._serve_reads()
        if not was_active and self.is_active and self._early_reads:
            tokens, self._early_reads = self._early_reads, []
            self._register_reads(tokens)
