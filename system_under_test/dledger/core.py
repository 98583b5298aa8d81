"""A member of a DLedger group: `step(event, now_ns)` changes its state and says what is to be done.

No clock, no randomness, no sockets: time and freshly drawn backoffs come in with the events, and what touches the world
goes out in `Effects`, whose fields say in what order. The log alone is written by the step itself, for a full disk must
be answered; what is written is durable once `Persisted` says so.

It is not Raft by the book. A follower's log is repaired by requests of their own, COMPARE and TRUNCATE, and what the
public program leaves open or weaker than its promise is decided here: see docs/decisions/dledger.

Source: the description of DLedger's replication in RocketMQ's documents, and DLedger 0.3.1.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from system_under_test.dledger.dispatcher import Dispatcher
from system_under_test.dledger.election import Election
from system_under_test.dledger.entry import NOTHING, Entry, EntryLog
from system_under_test.dledger.event import (
    Answered,
    Append,
    Appended,
    Connected,
    Effects,
    Event,
    HardState,
    Receive,
    Tick,
)
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.message import (
    Answer,
    Code,
    HeartbeatRequest,
    PushAnswer,
    PushRequest,
    TakeRequest,
    TransferRequest,
    VoteRequest,
    VoteResult,
)
from system_under_test.dledger.quorum import Quorum
from system_under_test.dledger.state import GroupConfig, Role, State
from system_under_test.dledger.transfer import Transfer
from system_under_test.runtime.host import DiskFull


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreParts:
    election: type[Election] = Election
    quorum: type[Quorum] = Quorum
    dispatcher: type[Dispatcher] = Dispatcher
    handler: type[Handler] = Handler
    transfer: type[Transfer] = Transfer


class Member:
    """Reading attributes is free; only `step` changes them."""

    def __init__(
        self,
        config: GroupConfig,
        log: EntryLog,
        hard_state: HardState,
        *,
        committed: int = NOTHING,
        now_ns: int = 0,
        parts: CoreParts | None = None,
    ) -> None:
        """`hard_state`, `log` and `committed` are what the disk kept."""
        self._parts = parts = parts or CoreParts()
        self.state = State(config=config, log=log, hard_state=hard_state, committed=committed, now_ns=now_ns)
        self.election = parts.election(self.state)
        self.quorum = parts.quorum(self.state)
        self.handler = parts.handler(self.state)
        self.transfer = parts.transfer(self.state, self.election, self.quorum)
        self.dispatchers: dict[str, Dispatcher] = {}
        self._led_term = NOTHING
        """The term in which this member leads, or NOTHING."""
        self._unsynced: deque[tuple[int, int]] = deque()
        """(sequence of a step, the index up to which the log is durable with it) of steps that wrote."""

    @property
    def deadline_ns(self) -> int:
        """When the next Tick is due."""
        due = [self.election.deadline_ns, self.transfer.deadline_ns]
        for deadline_ns in (self.quorum.deadline_ns, *(each.deadline_ns for each in self.dispatchers.values())):
            if deadline_ns is not None:
                due.append(deadline_ns)
        return min(due)

    def step(self, event: Event, now_ns: int) -> Effects:
        state = self.state
        state.now_ns = now_ns
        effects = state.effects = Effects(state.effects.sequence + 1)
        if isinstance(event, Tick):
            self._tick(event.backoff_ns)
        elif isinstance(event, Receive):
            self._receive(event)
        elif isinstance(event, Answered):
            self._answered(event)
        elif isinstance(event, Connected):
            if event.peer in self.dispatchers:
                self.dispatchers[event.peer].connected()
        elif isinstance(event, Append):
            self._append(event)
        else:
            self._persisted(event.sequence)
        if self.transfer.may_take(self.handler.verified) and self.election.take():
            self._begin_to_lead()
        if self._led_term != NOTHING and (state.role is not Role.LEADER or state.term != self._led_term):
            self._cease_to_lead()
        for dispatcher in self.dispatchers.values():
            dispatcher.go_on()
        if effects.kept is not None:
            self._wrote(effects.kept)
        return effects

    def _wrote(self, kept: int) -> None:
        state, end = self.state, self.state.log.end
        if self._unsynced and self._unsynced[-1][1] > kept:
            # It was cut: what is written in that place is not durable with what was there.
            self._unsynced = deque((sequence, min(durable, kept)) for sequence, durable in self._unsynced)
        self._unsynced.append((state.effects.sequence, end))
        if not state.config.ack_durable and state.role is Role.LEADER:
            self.quorum.has(state.node, end)

    def _tick(self, backoff_ns: int) -> None:
        if self.election.tick(backoff_ns):
            self._begin_to_lead()
        self.quorum.tick()
        self.transfer.tick()

    # -- requests of others

    def _receive(self, event: Receive) -> None:
        state, request = self.state, event.request
        effects = state.effects
        if isinstance(request, VoteRequest):
            vote = self.election.vote(request)
            is_granted = vote.result is VoteResult.ACCEPT
            (effects.granted if is_granted else effects.answers).append((event.token, vote))
        elif isinstance(request, PushRequest):
            self._obey(event.token, request)
        elif isinstance(request, HeartbeatRequest):
            code = self.election.accept(request.leader, request.term)
            effects.answers.append((event.token, Answer(code, state.term, state.leader)))
        elif isinstance(request, TakeRequest):
            self.transfer.asked_to_take(event.token, request)
        else:
            assert isinstance(request, TransferRequest)
            self.transfer.begin(request.to, event.token, request.term)

    def _obey(self, token: int, request: PushRequest) -> None:
        state, log = self.state, self.state.log
        code = self.election.accept(request.leader, request.term)
        if code is Code.SUCCESS or self.handler.obeys_anyway(request):
            code = self.handler.obey(request)
        answer = PushAnswer(code, state.term, log.begin, log.end)
        waits = code is Code.SUCCESS and self.handler.vouches(request)
        (state.effects.acknowledged if waits else state.effects.answers).append((token, answer))

    # -- answers of others

    def _answered(self, event: Answered) -> None:
        if self.election.take_vote(event.number, event.answer):
            self._begin_to_lead()
        self.election.take_beat(event.number, event.answer)
        self.transfer.take(event.number, event.answer)
        dispatcher = self.dispatchers.get(event.peer)
        if dispatcher is not None and self.state.role is Role.LEADER:
            higher = dispatcher.take(event.number, event.answer)
            if higher != NOTHING:
                self.election.stand(higher)

    # -- leading

    def _begin_to_lead(self) -> None:
        state = self.state
        self._led_term = state.term
        self.quorum.begin()
        if not state.config.ack_durable or not self._unsynced:
            self.quorum.has(state.node, state.log.end)
        self.dispatchers = {peer: self._parts.dispatcher(state, self.quorum, peer) for peer in state.config.others}
        self.transfer.role_changed()
        # Entries of older terms are committed only together with one of the own term, so there has to be one, even if
        # nobody appends anything. Readers never see it.
        try:
            self._write((b"",))
        except DiskFull:
            # Another one may have room.
            self.election.stand(state.term, state.config.silence_ns)

    def _cease_to_lead(self) -> None:
        self._led_term = NOTHING
        self.quorum.abandon()
        self.dispatchers = {}
        self.transfer.role_changed()

    def _write(self, bodies: tuple[bytes, ...]) -> Entry:
        """The last one. Raises DiskFull."""
        state = self.state
        kept = state.log.end
        entries = state.log.append_own(state.term, bodies)
        state.wrote(kept, entries)
        return entries[-1]

    def _append(self, event: Append) -> None:
        code = self._refusal(event)
        if code is Code.SUCCESS:
            try:
                self.quorum.wait(event.token, self._write(event.bodies))
            except DiskFull:
                code = Code.DISK_FULL
        if code is not Code.SUCCESS:
            self.state.effects.appended.append(Appended(event.token, code, NOTHING, NOTHING))

    def _refusal(self, event: Append) -> Code:
        state = self.state
        if state.role is not Role.LEADER:
            return Code.NOT_LEADER
        if self.transfer.to is not None:
            return Code.LEADER_TRANSFERRING
        if len(self.quorum) >= state.config.max_pending:
            return Code.LEADER_PENDING_FULL
        if not event.bodies or not all(event.bodies):
            return Code.REQUEST_WITH_EMPTY_BODYS
        fits = max(map(len, event.bodies)) <= state.config.max_body_bytes
        return Code.SUCCESS if fits else Code.UNEXPECTED_ARGUMENT

    def _persisted(self, sequence: int) -> None:
        state = self.state
        while self._unsynced and self._unsynced[0][0] <= sequence:
            _, durable = self._unsynced.popleft()
            if state.config.ack_durable and state.role is Role.LEADER:
                self.quorum.has(state.node, durable)
