"""Who leads: votes, heartbeats, and when a member stands.

A candidate first asks in the term that it is in, and raises the term only once a majority has answered: a member that
is cut off never raises it. Who hears of a higher term becomes a candidate of that term, and votes in it only when
asked again. A member that starts again never asks in a term in which it has voted for itself, for it may have led then,
with a longer log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.message import (
    Answer,
    AnyAnswer,
    Code,
    HeartbeatRequest,
    VoteAnswer,
    VoteRequest,
    VoteResult,
)
from system_under_test.dledger.state import Role, State

NEVER_NS = 1 << 62

_OLD_TERM = (VoteResult.REJECT_EXPIRED_VOTE_TERM, VoteResult.REJECT_TERM_SMALL_THAN_LEDGER)
_LONGER_LOG = (VoteResult.REJECT_EXPIRED_LEDGER_TERM, VoteResult.REJECT_SMALL_LEDGER_END_INDEX)


@dataclass(slots=True)
class _Round:
    """Of votes, in one term."""

    term: int
    asked: dict[int, str] = field(default_factory=dict)
    """Peers that have not answered, by the numbers of requests."""
    results: dict[str, VoteResult | None] = field(default_factory=dict)
    """What each peer answered, and None where no answer will come."""

    def count(self, *results: VoteResult) -> int:
        return sum(result in results for result in self.results.values())


class Election:
    def __init__(self, state: State) -> None:
        self._state = state
        self._raises_term = state.hard_state.vote == state.node
        self._round: _Round | None = None
        self._next_round_ns = state.now_ns
        self._heard_ns = 0
        """When this follower last heard its leader."""
        self._next_beat_ns = NEVER_NS
        self._beats: dict[int, tuple[str, int]] = {}
        """(peer, when it was sent) of heartbeats that are not answered, by number."""
        self._heard_from: dict[str, int] = {}
        """When the last heartbeat that a peer has answered was sent by this leader."""
        self._backoff_ns = 0
        self.elected_by: tuple[str, ...] = ()
        """Who voted for this member when it was elected last."""
        self.elected_with = (NOTHING, NOTHING)
        """Term and index of its last entry then."""

    @property
    def deadline_ns(self) -> int:
        config, role = self._state.config, self._state.role
        if role is Role.LEADER:
            return self._next_beat_ns
        if role is Role.FOLLOWER:
            return self._heard_ns + config.silence_ns
        return self._next_round_ns

    def hears(self, peer: str) -> bool:
        """Whether a peer has answered this leader lately."""
        config = self._state.config
        return self._state.now_ns - self._heard_from.get(peer, -NEVER_NS) < config.silence_ns

    def tick(self, backoff_ns: int) -> bool:
        """Whether this member was elected."""
        self._backoff_ns = backoff_ns
        state = self._state
        if state.now_ns < self.deadline_ns:
            return False
        if state.role is Role.LEADER:
            self._lead()
        elif state.role is Role.FOLLOWER:
            self.stand(state.term)
        else:
            return self._ask()
        return False

    # -- candidates

    def stand(self, term: int, wait_ns: int = 0) -> None:
        """Become a candidate of this term, which is not lower than the own one, and wait for so long and a backoff."""
        state = self._state
        if term > state.term:
            state.keep(term, None)
            self._raises_term = False
        state.role = Role.CANDIDATE
        state.leader = None
        self._round = None
        self._wait(wait_ns)

    def _wait(self, more_ns: int = 0) -> None:
        self._next_round_ns = self._state.now_ns + self._backoff_ns + more_ns

    def take(self) -> bool:
        """Stand at once, in the next term: the leader wants it. Whether this member was elected."""
        self.stand(self._state.term)
        self._raises_term = True
        return self._ask()

    def _ask(self) -> bool:
        state = self._state
        if self._raises_term:
            state.keep(state.term + 1, None)
            self._raises_term = False
        if state.hard_state.vote is None:
            state.keep(state.term, state.node)
        self._next_round_ns = NEVER_NS
        self._round = _Round(state.term)
        is_own = state.hard_state.vote == state.node
        self._round.results[state.node] = VoteResult.ACCEPT if is_own else VoteResult.REJECT_ALREADY_VOTED
        for peer in state.config.others:
            self._ask_peer(self._round, peer)
        return self._counted(self._round)

    def _ask_peer(self, votes: _Round, peer: str) -> None:
        state = self._state
        request = VoteRequest(state.node, votes.term, self.last_term(), state.log.end)
        votes.asked[state.send(peer, request)] = peer

    def last_term(self) -> int:
        return self._state.log.end_term

    def take_vote(self, number: int, answer: AnyAnswer | None) -> bool:
        """Whether this member was elected."""
        votes, state = self._round, self._state
        peer = None if votes is None else votes.asked.pop(number, None)
        if votes is None or peer is None or state.role is not Role.CANDIDATE:
            return False
        if not isinstance(answer, VoteAnswer):
            votes.results[peer] = None
        elif answer.result in _OLD_TERM and answer.term > state.term:
            self.stand(answer.term)
            self._raises_term = True
            return False
        elif answer.result is VoteResult.REJECT_TERM_NOT_READY:
            self._ask_peer(votes, peer)
        else:
            votes.results[peer] = answer.result
        return self._counted(votes)

    def _counted(self, votes: _Round) -> bool:
        config = self._state.config
        if votes.count(VoteResult.ACCEPT) >= config.majority:
            self.elected_by = tuple(node for node, one in votes.results.items() if one is VoteResult.ACCEPT)
            self._begin_to_lead()
            return True
        if votes.asked:
            return False
        self._round = None
        answered = len(votes.results) - sum(result is None for result in votes.results.values())
        if votes.count(VoteResult.REJECT_ALREADY_HAS_LEADER):
            self._wait(config.silence_ns)
        elif answered < config.majority:
            self._wait()
        elif answered - votes.count(*_LONGER_LOG) < config.majority:
            # Some other one has to win; its requests shall not meet this one's.
            self._wait(config.max_backoff_ns)
        else:
            self._raises_term = True
            self._wait()
        return False

    # -- who votes

    def vote(self, request: VoteRequest) -> VoteAnswer:
        """The order in which it is refused is that of DLedger."""
        state, log = self._state, self._state.log
        result = VoteResult.ACCEPT
        if request.candidate not in state.config.members:
            result = VoteResult.REJECT_UNKNOWN_LEADER
        elif request.candidate == state.node:
            result = VoteResult.REJECT_UNEXPECTED_LEADER
        elif self.has_longer_log(request):
            is_older = request.end_term < log.end_term
            result = _LONGER_LOG[0] if is_older else _LONGER_LOG[1]
        elif request.term < state.term:
            result = VoteResult.REJECT_EXPIRED_VOTE_TERM
        elif request.term > state.term:
            self.stand(request.term)
            result = VoteResult.REJECT_TERM_NOT_READY
        elif state.hard_state.vote not in (None, request.candidate):
            has_leader = state.leader is not None
            result = VoteResult.REJECT_ALREADY_HAS_LEADER if has_leader else VoteResult.REJECT_ALREADY_VOTED
        else:
            state.keep(state.term, request.candidate)
        return VoteAnswer(result, state.term)

    def has_longer_log(self, request: VoteRequest) -> bool:
        log = self._state.log
        return (log.end_term, log.end) > (request.end_term, request.end)

    # -- who follows

    def accept(self, leader: str, term: int) -> Code:
        """SUCCESS: this member follows the leader in the term, and has heard it now."""
        state = self._state
        if leader not in state.config.members:
            return Code.UNKNOWN_MEMBER
        if leader == state.node:
            return Code.UNEXPECTED_MEMBER
        if term < state.term:
            return Code.EXPIRED_TERM
        if term > state.term:
            self.stand(term)
            return Code.TERM_NOT_READY
        if state.role is Role.LEADER or state.leader not in (None, leader):
            return Code.INCONSISTENT_LEADER
        state.role = Role.FOLLOWER
        state.leader = leader
        self._round = None
        self._heard_ns = state.now_ns
        return Code.SUCCESS

    # -- who leads

    def _begin_to_lead(self) -> None:
        state = self._state
        state.role = Role.LEADER
        state.leader = state.node
        self.elected_with = state.log.end_term, state.log.end
        self._round = None
        self._heard_from = dict.fromkeys(state.config.others, state.now_ns)
        self._beat(state.config.others)

    def _beat(self, peers: tuple[str, ...]) -> None:
        state = self._state
        self._next_beat_ns = state.now_ns + state.config.heartbeat_ns
        for peer in peers:
            self._beats[state.send(peer, HeartbeatRequest(state.node, state.term))] = peer, state.now_ns

    def _lead(self) -> None:
        """A leader that has not heard a majority for some beats is none."""
        state, config = self._state, self._state.config
        times = sorted((*self._heard_from.values(), state.now_ns), reverse=True)
        if state.now_ns - times[config.majority - 1] > config.silence_ns:
            self.stand(state.term)
        else:
            self._beat(config.others)

    def take_beat(self, number: int, answer: AnyAnswer | None) -> None:
        state = self._state
        peer, sent_ns = self._beats.pop(number, ("", 0))
        if not peer or state.role is not Role.LEADER or not isinstance(answer, Answer):
            return
        if answer.term > state.term:
            self.stand(answer.term)
            self._raises_term = True
        elif answer.code is Code.SUCCESS:
            self._heard_from[peer] = max(sent_ns, self._heard_from[peer])
        elif answer.code is Code.TERM_NOT_READY:
            # It is a candidate of this term now, and will follow when it is told again.
            self._beats[state.send(peer, HeartbeatRequest(state.node, state.term))] = peer, state.now_ns
        elif answer.code is Code.INCONSISTENT_LEADER:
            self.stand(state.term)
