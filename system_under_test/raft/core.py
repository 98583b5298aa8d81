"""Raft as a pure core: `step(event, now_ns)` changes the state and says what is to be done.

No I/O, no clock, no randomness: time and freshly drawn election timeouts come in with the events, and
everything that touches the world goes out in `Effects`, whose fields say in what order. It has pre-vote,
a leader's no-op, cuts on real conflicts only, commits only entries of the own term by counting, reads by
read index, and a leader that steps down when no majority answers it (check quorum). Safety never rests on
time. Membership is fixed, and there are no snapshots: the whole log stays.

Source: Ongaro, Consensus: Bridging Theory and Practice (2014), chapters 3, 6.4 and 9.6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    Entry,
    HardState,
    Message,
    PreVoteReply,
    PreVoteRequest,
    VoteReply,
    VoteRequest,
)

MAX_ENTRIES_PER_APPEND = 512
MAX_BYTES_PER_APPEND = 1024 * 1024
WINDOW_ENTRIES = 4096
"""How far the leader sends ahead of what a follower has acknowledged."""


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


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed. To be stepped at `deadline_ns`, or earlier at will."""

    election_timeout_ns: int
    """Freshly drawn; taken when the election timer starts the next time."""


@dataclass(frozen=True, slots=True)
class Receive:
    message: Message


@dataclass(frozen=True, slots=True)
class Propose:
    """Only for a leader: append these, in this order, as entries of its term."""

    data: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Only for a leader: tell when what is committed now may be read. Tokens are the driver's."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Persisted:
    """All that effects up to this sequence number asked to be kept is durable."""

    sequence: int


Event = Tick | Receive | Propose | Read | Persisted


@dataclass(slots=True)
class Effects:
    """What one step asks for. Effects of later steps never overtake those of earlier ones."""

    sequence: int
    """Counts steps; `Persisted` refers to it."""
    hard_state: HardState | None = None
    """To be made durable."""
    entries: list[Entry] = field(default_factory=list)
    """To be written to the log and made durable. The log ends before the first of them: what is there
    from its index on is cut, in the same write."""
    appends: list[Append] = field(default_factory=list)
    """To be sent at once, in parallel to the own fsync: a leader counts itself only once `Persisted` says so."""
    messages: list[Message] = field(default_factory=list)
    """To be sent only when hard state and entries of this step and all before are durable, for they tell
    others that they are: a vote, the request for one, an acknowledgement."""
    committed: list[Entry] = field(default_factory=list)
    """To be applied, in order; no need to wait for the own disk, as a majority has them."""
    reads: list[int] = field(default_factory=list)
    """Tokens whose reads may be served after `committed` of this step is applied."""
    lost_reads: list[int] = field(default_factory=list)
    """Tokens that will not be served: no leader, or none any more."""

    @property
    def must_persist(self) -> bool:
        return self.hard_state is not None or bool(self.entries)


@dataclass(slots=True)
class _Progress:
    """What a leader knows of a follower."""

    next_index: int
    heard_ns: int
    match: int = 0
    round: int = 0
    is_probing: bool = True
    """Looking for the point where the logs agree: one append at a time. Otherwise sending ahead."""
    is_waiting: bool = False
    """A probe is under way; the next goes out with its answer or with the next round."""


class Raft:
    """One node. Reading attributes is free; only `step` changes them."""

    def __init__(
        self,
        *,
        node: str,
        members: Sequence[str],
        timing: Timing,
        hard_state: HardState,
        entries: Sequence[Entry],
        now_ns: int,
        election_timeout_ns: int,
    ) -> None:
        """`hard_state` and `entries` are what the disk kept."""
        if node not in members:
            raise ValueError(f"node {node!r} is none of the members {tuple(members)}")
        self.node = node
        self.peers = tuple(member for member in sorted(members) if member != node)
        self.term = hard_state.term
        self.vote = hard_state.vote
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.log: list[Entry] = list(entries)
        self.commit = 0
        self.durable_index = len(self.log)
        self._majority = len(members) // 2 + 1
        self._timing = timing
        self._kept = hard_state
        self._unsynced: deque[list[int]] = deque()
        self._timer_ns = now_ns
        self._timeout_ns = election_timeout_ns
        self._drawn_timeout_ns = election_timeout_ns
        self._leader_heard_ns = now_ns
        self._pre_votes: set[str] = set()
        self._votes: set[str] = set()
        """For this node, in the current term; empty if it does not stand, or not any more."""
        self._progress: dict[str, _Progress] = {}
        self._next_heartbeat_ns = 0
        self._own_term_index = 0
        self._round = 0
        self._reads: deque[tuple[int, int]] = deque()
        self._early_reads: list[int] = []
        self._effects = Effects(0)

    @property
    def last_index(self) -> int:
        return len(self.log)

    @property
    def is_active(self) -> bool:
        """Leader, and its own no-op is committed: what is committed before its term is known to it."""
        return self.role is Role.LEADER and self.commit >= self._own_term_index

    @property
    def deadline_ns(self) -> int:
        """When the next Tick is due."""
        if self.role is Role.LEADER:
            return self._next_heartbeat_ns
        return self._timer_ns + self._timeout_ns

    def term_at(self, index: int) -> int:
        """Of the entry at this index of the log; 0 before the first."""
        return self.log[index - 1].term if index else 0

    def step(self, event: Event, now_ns: int) -> Effects:
        effects = self._effects = Effects(self._effects.sequence + 1)
        if isinstance(event, Receive):
            self._receive(event.message, now_ns)
        elif isinstance(event, Persisted):
            self._persisted(event.sequence)
        elif isinstance(event, Tick):
            self._tick(event.election_timeout_ns, now_ns)
        elif isinstance(event, Propose):
            self._propose(event.data)
        else:
            self._read(event.tokens)
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
            self._ask_for_pre_votes(now_ns)
        elif now_ns - self._quorum_heard_ns(now_ns) >= self._timing.quorum_timeout_ns:
            self._become_follower(self.term, now_ns)
        else:
            self._next_heartbeat_ns = now_ns + self._timing.heartbeat_ns
            self._call_round()

    def _quorum_heard_ns(self, now_ns: int) -> int:
        heard = sorted((progress.heard_ns for progress in self._progress.values()), reverse=True)
        return ([now_ns, *heard])[self._majority - 1]

    def _restart_timer(self, now_ns: int) -> None:
        self._timer_ns = now_ns
        self._timeout_ns = self._drawn_timeout_ns

    def _become_follower(self, term: int, now_ns: int) -> None:
        if self.role is Role.LEADER:
            self._effects.lost_reads += self._early_reads
            self._effects.lost_reads += (token for _, token in self._reads)
            self._early_reads.clear()
            self._reads.clear()
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
        for peer in self.peers:
            self._effects.messages.append(
                PreVoteRequest(self.node, peer, self.term + 1, self.last_index, self.term_at(self.last_index))
            )
        self._count_votes(now_ns)

    def _become_candidate(self, now_ns: int) -> None:
        self.role = Role.CANDIDATE
        self.term += 1
        self.vote = self.node
        self._restart_timer(now_ns)
        self._votes = {self.node}
        for peer in self.peers:
            self._effects.messages.append(
                VoteRequest(self.node, peer, self.term, self.last_index, self.term_at(self.last_index))
            )
        self._count_votes(now_ns)

    def _count_votes(self, now_ns: int) -> None:
        if self.role is Role.PRE_CANDIDATE and len(self._pre_votes) >= self._majority:
            self._become_candidate(now_ns)
        elif len(self._votes) >= self._majority:
            self._become_leader(now_ns)

    def _become_leader(self, now_ns: int) -> None:
        self.role = Role.LEADER
        self.leader = self.node
        self._votes.clear()
        self._progress = {peer: _Progress(self.last_index + 1, now_ns) for peer in self.peers}
        self._own_term_index = self.last_index + 1
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
        if message.term > self.term:
            self._become_follower(message.term, now_ns)
        if isinstance(message, Append):
            self._on_append(message, now_ns)
        elif isinstance(message, VoteRequest):
            self._on_vote_request(message, now_ns)
        elif message.term < self.term:
            return
        elif isinstance(message, AppendAccepted | AppendRefused):
            if self.role is Role.LEADER:
                self._on_append_reply(message, now_ns)
        elif isinstance(message, VoteReply) and message.granted and self._votes:
            # Also after the election timer has run out and asks for pre-votes again: the vote still stands,
            # and where a round trip takes longer than the timer nobody would ever win otherwise.
            self._votes.add(message.sender)
            self._count_votes(now_ns)

    def _is_up_to_date(self, last_index: int, last_term: int) -> bool:
        return (last_term, last_index) >= (self.term_at(self.last_index), self.last_index)

    def _on_pre_vote_request(self, message: PreVoteRequest, now_ns: int) -> None:
        hears_leader = self.role is Role.LEADER or (
            self.leader is not None and now_ns - self._leader_heard_ns < self._timing.min_election_timeout_ns
        )
        granted = (
            message.term > self.term and not hears_leader and self._is_up_to_date(message.last_index, message.last_term)
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
        assert self.role is not Role.LEADER, "two leaders in one term"
        self.role = Role.FOLLOWER
        self._votes.clear()
        self.leader = message.sender
        self._leader_heard_ns = now_ns
        self._restart_timer(now_ns)
        previous = message.previous_index
        if previous > self.last_index or self.term_at(previous) != message.previous_term:
            self._refuse(message, self._last_at_most(min(previous - 1, self.last_index), message.previous_term))
            return
        for position, entry in enumerate(message.entries):
            if entry.index > self.last_index or self.term_at(entry.index) != entry.term:
                self._write(message.entries[position:])
                break
        # Only what this message has verified: the own log may go on behind it with entries that conflict.
        match = previous + len(message.entries)
        self._commit_to(min(message.commit, match))
        self._effects.messages.append(AppendAccepted(self.node, message.sender, self.term, message.round, match))

    def _refuse(self, message: Append, hint: int) -> None:
        hint = min(hint, self.last_index)
        self._effects.messages.append(
            AppendRefused(
                self.node, message.sender, self.term, message.round, message.previous_index, hint, self.term_at(hint)
            )
        )

    def _last_at_most(self, index: int, term: int) -> int:
        """The last index, at most `index`, whose entry's term is at most `term`."""
        while index > 0 and self.term_at(index) > term:
            index -= 1
        return index

    # -- the leader

    def _propose(self, data: tuple[bytes, ...]) -> None:
        assert self.role is Role.LEADER, "only a leader takes proposals"
        self._append_own(data)

    def _append_own(self, data: tuple[bytes, ...]) -> None:
        first = self.last_index + 1
        self._write([Entry(first + position, self.term, item) for position, item in enumerate(data)])
        for peer, progress in self._progress.items():
            self._send_entries(peer, progress)

    def _send_entries(self, peer: str, progress: _Progress) -> None:
        """Send what the follower lacks: ahead, within the window, or one append while probing."""
        if progress.is_probing:
            if not progress.is_waiting:
                self._probe(peer, progress)
            return
        while progress.next_index <= self.last_index and progress.next_index - progress.match <= WINDOW_ENTRIES:
            entries = self._batch(progress.next_index)
            self._send(peer, progress, entries)
            progress.next_index += len(entries)

    def _probe(self, peer: str, progress: _Progress) -> None:
        progress.is_waiting = True
        self._send(peer, progress, self._batch(progress.next_index))

    def _batch(self, first: int) -> tuple[Entry, ...]:
        size = 0
        entries = self.log[first - 1 : first - 1 + MAX_ENTRIES_PER_APPEND]
        for count, entry in enumerate(entries):
            size += len(entry.data)
            if size > MAX_BYTES_PER_APPEND and count:
                return tuple(entries[:count])
        return tuple(entries)

    def _send(self, peer: str, progress: _Progress, entries: tuple[Entry, ...]) -> None:
        previous = progress.next_index - 1
        self._effects.appends.append(
            Append(self.node, peer, self.term, self._round, previous, self.term_at(previous), self.commit, entries)
        )

    def _call_round(self) -> None:
        """Ask everyone to confirm this leadership; finds lost appends on the way, as it checks the log too."""
        self._round += 1
        for peer, progress in self._progress.items():
            if progress.is_probing:
                self._probe(peer, progress)
            else:
                self._send(peer, progress, ())
        self._serve_reads()

    def _on_append_reply(self, message: AppendAccepted | AppendRefused, now_ns: int) -> None:
        progress = self._progress.get(message.sender)
        if progress is None:
            return
        progress.heard_ns = now_ns
        if isinstance(message, AppendAccepted):
            if message.match > progress.match:
                progress.match = message.match
                self._advance_commit()
            progress.next_index = max(progress.next_index, progress.match + 1)
            if progress.match == progress.next_index - 1:
                progress.is_probing = False
            self._send_entries(message.sender, progress)
        elif progress.match < message.previous_index < progress.next_index:
            fits = self._last_at_most(min(message.hint_index, message.previous_index - 1), message.hint_term)
            progress.next_index = max(progress.match, fits) + 1
            progress.is_probing = True
            self._probe(message.sender, progress)
        if message.round > progress.round:
            progress.round = message.round
            self._serve_reads()

    def _advance_commit(self) -> None:
        matches = sorted([self.durable_index, *(p.match for p in self._progress.values())], reverse=True)
        index = matches[self._majority - 1]
        if index > self.commit and self.term_at(index) == self.term:
            self._commit_to(index)

    # -- reads

    def _read(self, tokens: tuple[int, ...]) -> None:
        if self.role is not Role.LEADER:
            self._effects.lost_reads += tokens
        elif not self.is_active:
            self._early_reads += tokens
        else:
            self._register_reads(tokens)

    def _register_reads(self, tokens: Sequence[int]) -> None:
        """What is committed now may be read once a majority has confirmed a round that begins now."""
        self._reads.extend((self._round + 1, token) for token in tokens)
        self._call_round()

    def _serve_reads(self) -> None:
        if not self._reads:
            return
        rounds = sorted([self._round, *(progress.round for progress in self._progress.values())], reverse=True)
        confirmed = rounds[self._majority - 1]
        while self._reads and self._reads[0][0] <= confirmed:
            self._effects.reads.append(self._reads.popleft()[1])

    # -- the log

    def _write(self, entries: Sequence[Entry]) -> None:
        """Put entries at the end, cutting what conflicts with the first of them."""
        first = entries[0].index
        if first <= self.last_index:
            assert first > self.commit, "a committed entry would be cut"
            del self.log[first - 1 :]
            self.durable_index = min(self.durable_index, first - 1)
            for unsynced in self._unsynced:
                unsynced[1] = min(unsynced[1], first - 1)
        self.log.extend(entries)
        self._effects.entries.extend(entries)

    def _persisted(self, sequence: int) -> None:
        while self._unsynced and self._unsynced[0][0] <= sequence:
            self.durable_index = max(self.durable_index, self._unsynced.popleft()[1])
        if self.role is Role.LEADER:
            self._advance_commit()

    def _commit_to(self, index: int) -> None:
        if index <= self.commit:
            return
        was_active = self.is_active
        self._effects.committed.extend(self.log[self.commit : index])
        self.commit = index
        if not was_active and self.is_active and self._early_reads:
            tokens, self._early_reads = self._early_reads, []
            self._register_reads(tokens)
