"""How a leader hands over: it takes no appends until the other one has its last entry and stands, or a time is up.

Source: RocketMQ's preferred leader (preferredLeaderIds), and the transfers that an administrator asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.dledger.election import NEVER_NS, Election
from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.message import Answer, AnyAnswer, Code, TakeRequest
from system_under_test.dledger.quorum import Quorum
from system_under_test.dledger.state import Role, State


@dataclass(slots=True)
class _Taking:
    """This follower is to lead once it has the leader's last entry."""

    token: int
    request: TakeRequest
    until_ns: int


class Transfer:
    def __init__(self, state: State, election: Election, quorum: Quorum) -> None:
        self._state = state
        self._election = election
        self._quorum = quorum
        self.to: str | None = None
        """To whom this leader hands over."""
        self._until_ns = NEVER_NS
        self._asked_by: int | None = None
        """The token of an administrator's request."""
        self._number = 0
        self._next_look_ns = NEVER_NS
        self._taking: _Taking | None = None

    @property
    def deadline_ns(self) -> int:
        taking_ns = NEVER_NS if self._taking is None else self._taking.until_ns
        return min(self._until_ns, self._next_look_ns, taking_ns)

    # -- the leader

    def begin(self, to: str, token: int | None = None, term: int = NOTHING) -> None:
        """In this term, if one is given. Who asked gets SUCCESS once this member does not lead any more, or else why it
        still does."""
        state, config = self._state, self._state.config
        code = Code.SUCCESS
        if term not in (NOTHING, state.term):
            code = Code.INCONSISTENT_TERM
        elif state.role is not Role.LEADER:
            code = Code.NOT_LEADER
        elif to not in config.others:
            code = Code.UNKNOWN_MEMBER
        elif self.to is not None:
            code = Code.LEADER_TRANSFERRING
        elif not self.is_near(to):
            code = Code.FALL_BEHIND_TOO_MUCH
        if code is not Code.SUCCESS:
            self._answer(token, code)
            return
        self.to = to
        self._asked_by = token
        self._until_ns = state.now_ns + config.transfer_timeout_ns
        self._number = state.send(to, TakeRequest(state.node, state.term, state.log.end))

    def is_near(self, peer: str) -> bool:
        return self._state.log.end - self._quorum.marks[peer] < self._state.config.transfer_lag

    def take(self, number: int, answer: AnyAnswer | None) -> None:
        """The other one could not take over; if it could, its request for a vote has come."""
        is_success = isinstance(answer, Answer) and answer.code is Code.SUCCESS
        if number == self._number and self.to is not None and not is_success:
            self._end(Code.TAKE_LEADERSHIP_FAILED)

    def _end(self, code: Code) -> None:
        """After a failure appends are taken for a while before another one is tried."""
        self._answer(self._asked_by, code)
        self.to = self._asked_by = None
        self._until_ns = NEVER_NS
        if self._next_look_ns != NEVER_NS:
            self._next_look_ns = self._state.now_ns + self._state.config.preference_interval_ns

    def _answer(self, token: int | None, code: Code) -> None:
        if token is not None:
            self._state.effects.answers.append((token, Answer(code, self._state.term, self._state.leader)))

    def role_changed(self) -> None:
        state, config = self._state, self._state.config
        if state.role is Role.LEADER:
            is_preferred = state.node in config.preferred or not config.preferred
            self._next_look_ns = NEVER_NS if is_preferred else state.now_ns + config.preference_interval_ns
            return
        self._next_look_ns = NEVER_NS
        if self.to is not None:
            self._end(Code.SUCCESS)

    # -- who is to lead

    def asked_to_take(self, token: int, request: TakeRequest) -> None:
        state = self._state
        is_follower = state.role is Role.FOLLOWER and (state.leader, state.term) == (request.leader, request.term)
        if not is_follower or self._taking is not None:
            self._answer(token, Code.TAKE_LEADERSHIP_FAILED)
            return
        self._taking = _Taking(token, request, state.now_ns + state.config.transfer_timeout_ns)

    def may_take(self, verified: int) -> bool:
        """Whether this member is to stand now, of whose log the leader has verified so much. It is asked after each
        step."""
        taking, state = self._taking, self._state
        if taking is None:
            return False
        is_follower = state.role is Role.FOLLOWER and (state.leader, state.term) == (
            taking.request.leader,
            taking.request.term,
        )
        if not is_follower or state.now_ns >= taking.until_ns:
            self._taking = None
            self._answer(taking.token, Code.TAKE_LEADERSHIP_FAILED)
            return False
        if not self.has_caught_up(verified, taking.request.end):
            return False
        self._taking = None
        self._answer(taking.token, Code.SUCCESS)
        state.effects.took_over = taking.request.end
        return True

    def has_caught_up(self, verified: int, end: int) -> bool:
        return verified >= end

    # -- time

    def tick(self) -> None:
        state, config = self._state, self._state.config
        if state.now_ns >= self._until_ns:
            self._end(Code.TAKE_LEADERSHIP_FAILED)
        if state.now_ns < self._next_look_ns:
            return
        self._next_look_ns = state.now_ns + config.preference_interval_ns
        marks = self._quorum.marks
        near = [peer for peer in config.preferred if peer in config.others and self.is_near(peer)]
        near = [peer for peer in near if self._election.hears(peer)]
        if self.to is None and near:
            self.begin(max(near, key=lambda peer: marks[peer]))
