"""What the parts of a member share: who it is, its term and role, its log, and the effects of the step under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from system_under_test.dledger.entry import Entry, EntryLog
from system_under_test.dledger.event import Effects, HardState, Sent
from system_under_test.dledger.message import MAX_BODY_BYTES, Request, VoteRequest


class Role(Enum):
    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Times in nanoseconds. A setting of DLedger has its name in the comment."""

    node: str
    members: tuple[str, ...]
    """All of the group, this one among them."""
    heartbeat_ns: int = 2_000_000_000
    """heartBeatTimeIntervalMs"""
    missed_heartbeats: int = 3
    """maxHeartBeatLeak: so many may be missed."""
    max_backoff_ns: int = 1_000_000_000
    """maxVoteIntervalMs"""
    ack_timeout_ns: int = 2_500_000_000
    """maxWaitAckTimeMs"""
    push_timeout_ns: int = 1_000_000_000
    """maxPushTimeOutMs"""
    commit_interval_ns: int = 1_000_000_000
    """How long after the last push a peer that has everything is asked for its end."""
    max_pending: int = 10_000
    """maxPendingRequestsNum"""
    max_body_bytes: int = MAX_BODY_BYTES
    """Longer ones are refused."""
    max_in_flight: int = 1_000
    """Pushes to one peer that are not answered yet."""
    batch_bytes: int = 0
    """maxBatchPushSize where isEnableBatchPush is set, otherwise 0."""
    understands_batches: bool = True
    """Members of the first version do not, and refuse them."""
    compare_by_term: bool = False
    """A leader looks for what a peer has of its log by whole terms, then between, not one index after the other."""
    ack_durable: bool = False
    """A member, the leader included, counts once it has fsynced."""
    preferred: tuple[str, ...] = ()
    """preferredLeaderIds"""
    transfer_lag: int = 1_000
    """maxLeadershipTransferWaitIndex: who is so many entries behind is not handed over to."""
    transfer_timeout_ns: int = 1_000_000_000
    """leadershipTransferWaitTimeout"""
    preference_interval_ns: int = 1_000_000_000
    """How often a leader looks whether a preferred one could lead."""

    @property
    def majority(self) -> int:
        return len(self.members) // 2 + 1

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(member for member in self.members if member != self.node)

    @property
    def silence_ns(self) -> int:
        """How long a leader may not be heard, or not hear a majority."""
        return self.missed_heartbeats * self.heartbeat_ns


@dataclass(slots=True, kw_only=True)
class State:
    config: GroupConfig
    log: EntryLog
    hard_state: HardState
    committed: int
    """The last index of which this member knows that a majority has it, or NOTHING."""
    role: Role = Role.CANDIDATE
    leader: str | None = None
    """The leader of the term, if it is known."""
    effects: Effects = field(default_factory=lambda: Effects(0))
    now_ns: int = 0
    requests: int = 0
    """How many were sent: numbers of requests."""

    @property
    def node(self) -> str:
        return self.config.node

    @property
    def term(self) -> int:
        return self.hard_state.term

    def keep(self, term: int, vote: str | None) -> None:
        """Of the term, and of who got this member's vote in it."""
        hard_state = HardState(term, vote)
        if hard_state != self.hard_state:
            self.hard_state = self.effects.hard_state = hard_state

    def send(self, peer: str, request: Request) -> int:
        """The request's number. What asks for votes waits until the own one is durable."""
        self.requests += 1
        sent = Sent(peer, self.requests, request)
        if isinstance(request, VoteRequest):
            self.effects.votes.append(sent)
        else:
            self.effects.requests.append(sent)
        return self.requests

    def wrote(self, kept: int, entries: Sequence[Entry]) -> None:
        """To the log: behind the index `kept`, these."""
        effects = self.effects
        effects.kept = kept if effects.kept is None else min(kept, effects.kept)
        effects.entries += entries

    def commit(self, index: int) -> None:
        self.committed = max(self.committed, index)
