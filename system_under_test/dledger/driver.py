"""Runs a member of a DLedger group on a host: feeds the core with events and carries its effects out, in their order.

Term and vote are written by one task and the log is made durable by another, for an acknowledgement need not wait for a
vote. A disk that fails ends the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from system_under_test.dledger.core import CoreParts, Member
from system_under_test.dledger.entry import NOTHING, Entry, EntryLog
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
from system_under_test.dledger.message import AnyAnswer, PushRequest, Request, TakeRequest, VoteRequest
from system_under_test.dledger.reports import MemberReports
from system_under_test.dledger.state import GroupConfig, Role
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.file_cleaner import CleaningRules, FileAge, FileCleaner

_ROOM_PAUSE_S = 0.1
"""So long a member whose disk is full waits before it tries again."""


class Store(EntryLog, Protocol):
    @property
    def committed(self) -> int:
        """As the newest checkpoint says."""

    async def open(self) -> None:
        """Recover. Raises StorageCorrupt, StorageFailed."""

    def entries(self, first: int, last: int, most_bytes: int) -> Sequence[Entry]:
        """From `first` on, which the log has, to `last` at most: as `first_of` takes them, or fewer."""

    async def sync(self) -> None:
        """Make everything written before the call durable. Raises StorageFailed, DiskFull."""

    async def save_committed(self, committed: int) -> None:
        """Write a checkpoint. Raises StorageFailed, DiskFull."""

    async def full_files(self, elapsed_s: Callable[[], float]) -> list[FileAge]:
        """As a `CleanedStore` has them. Raises StorageFailed."""

    async def expire(self, before_position: int) -> None:
        """Let the log begin with the first file behind those of them that end there or before. Raises StorageFailed,
        DiskFull."""


class Votes(Protocol):
    async def read(self) -> tuple[int, str | None]:
        """(term, vote)."""

    async def write(self, term: int, vote: str | None) -> None:
        """Durable on return. Raises StorageFailed, DiskFull."""


class Peers(Protocol):
    async def ask(self, peer: str, request: Request, timeout_s: float) -> AnyAnswer | None:
        """The answer; None if none comes in time, or can come. Requests to a peer that are begun one after the other
        are sent in this order, as long as their connection lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverTimes:
    min_backoff_ns: int = 300_000_000
    """minVoteIntervalMs; how long a candidate waits is drawn from it to maxVoteIntervalMs."""
    flush_interval_s: float = 0.01
    """flushFileInterval: how long what is written waits to be made durable, where nobody waits for that."""
    checkpoint_interval_s: float = 3.0
    """checkPointInterval"""


class GroupMember:
    def __init__(
        self,
        host: Host,
        group: str,
        config: GroupConfig,
        times: DriverTimes,
        *,
        store: Store,
        votes: Votes,
        peers: Peers,
        cleaning: CleaningRules | None = None,
        parts: CoreParts | None = None,
    ) -> None:
        """`cleaning` says when files of the log are deleted; None: none ever is."""
        self._host = host
        self._config = config
        self._times = times
        self._store = store
        self._votes = votes
        self._peers = peers
        self._cleaning = cleaning
        self._parts = parts
        self._member: Member | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._token = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        """Who waits for an answer, or for what comes of an append, by token."""
        self._wakes_ns = 0
        """When the next Tick comes."""
        self._is_due_sooner = asyncio.Event()
        self._vote_is_dirty = asyncio.Event()
        self._log_is_dirty = asyncio.Event()
        self._voted = _Progress()
        self._logged = _Progress()
        self._reports = MemberReports(host, group)
        self.on_step: list[Callable[[Effects], None]] = []
        """Each is called after each step, with what it has done, all of which is under way; must not block."""

    # -- what others may ask

    @property
    def term(self) -> int:
        return 0 if self._member is None else self._member.state.term

    @property
    def leader(self) -> str | None:
        """Of the term, as far as this member knows."""
        return None if self._member is None else self._member.state.leader

    @property
    def is_leader(self) -> bool:
        return self._member is not None and self._member.state.role is Role.LEADER

    @property
    def takes_appends(self) -> bool:
        """Whether it leads, and hands over to nobody."""
        return self._member is not None and self.is_leader and self._member.transfer.to is None

    @property
    def pending(self) -> int:
        """How many appends wait for a majority."""
        return 0 if self._member is None else len(self._member.quorum)

    @property
    def in_sync(self) -> int:
        """How many members have all that is committed, this leader among them."""
        marks = {} if self._member is None else self._member.quorum.marks
        return sum(mark >= self.committed for mark in marks.values())

    @property
    def committed(self) -> int:
        return NOTHING if self._member is None else self._member.state.committed

    @property
    def shown_end(self) -> int:
        """The last index that readers may see."""
        return self.committed

    def entries(self, first: int, most_bytes: int) -> list[Entry]:
        """Committed ones from this index on that clients have appended, at least one if there is any, otherwise no more
        than so many bytes."""
        first, last = max(first, self._store.begin, 0), min(self.shown_end, self._store.end)
        while first <= last:
            entries = self._store.entries(first, last, most_bytes)
            if found := [entry for entry in entries if entry.body]:
                return found
            first = entries[-1].index + 1
        return []

    def append(self, bodies: tuple[bytes, ...]) -> asyncio.Future[Appended]:
        token, future = self._new_token()
        self._step(Append(token, bodies))
        return future

    def receive(self, request: Request) -> asyncio.Future[AnyAnswer]:
        """The answer to a request of another member, or of an administrator."""
        token, future = self._new_token()
        self._receive(Receive(token, request))
        return future

    def _receive(self, event: Receive) -> None:
        """Entries of a term are written once that term is durable: a restart would not know how it got them."""
        if isinstance(event.request, PushRequest) and not self._voted.is_durable:
            self._voted.hold(lambda: self._receive(event))
        else:
            self._step(event)

    def connected(self, peer: str) -> None:
        """Requests to this peer go by a new connection from now on."""
        if self._member is not None:
            self._step(Connected(peer))

    # -- its life

    async def start(self) -> None:
        """Recover, unless that is done, and take part. Raises StorageCorrupt, StorageFailed."""
        if self._member is None:
            await self.open()
        spawn = self._host.spawn
        self._tasks = [
            spawn(self._keep_time(), "dledger timer"),
            spawn(self._keep_vote(), "dledger vote"),
            spawn(self._keep_log(), "dledger fsync"),
            spawn(self._keep_checkpoint(), "dledger checkpoint"),
        ]
        if self._cleaning is not None:
            self._tasks.append(spawn(FileCleaner(self._host, self, self._cleaning).run(), "dledger file cleaner"))

    async def open(self) -> None:
        """Recover; requests can be received from now on. Raises StorageCorrupt, StorageFailed."""
        await self._store.open()
        self._member = Member(
            self._config,
            self._store,
            self._hard_state(*await self._votes.read()),
            committed=self._store.committed,
            now_ns=self._host.clock.monotonic_ns(),
            parts=self._parts,
        )
        self._reports.started(self._member)

    def _hard_state(self, term: int, vote: str | None) -> HardState:
        """Raises StorageCorrupt where the log has entries of a later term."""
        last = self._store.end_term
        if last <= term:
            return HardState(term, vote)
        if not self._config.others:
            return HardState(last, self._config.node)
        raise StorageCorrupt(
            f"the log ends in term {last}, and the record of term and vote is of term {term}: this member may have "
            "voted in between; bring the record back, or wipe this member and let it join empty"
        )

    async def stop(self) -> None:
        """With a checkpoint; who waits for an answer gets none."""
        for task in self._tasks:
            task.cancel()
        if self._member is not None:
            with suppress(DiskFull):
                await self._store.save_committed(self._member.state.committed)
        for future in self._answers.values():
            future.cancel()

    def _new_token(self) -> tuple[int, asyncio.Future[Any]]:
        self._token += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[self._token] = future
        return self._token, future

    # -- tasks

    async def _keep_time(self) -> None:
        clock, member = self._host.clock, self._member
        assert member is not None
        least, greatest = self._times.min_backoff_ns, self._config.max_backoff_ns
        while True:
            self._wakes_ns = member.deadline_ns
            self._is_due_sooner.clear()
            try:
                left_ns = max(0, self._wakes_ns - clock.monotonic_ns())
                await clock.within(left_ns / 1e9, self._is_due_sooner.wait())
            except TimeoutError:
                self._step(Tick(int(self._host.random.uniform(least, greatest))))

    async def _keep_vote(self) -> None:
        assert self._member is not None
        while True:
            await self._vote_is_dirty.wait()
            self._vote_is_dirty.clear()
            written, hard_state = self._voted.written, self._member.state.hard_state
            self._host.reached("about-to-persist-vote")
            await self._once_there_is_room(partial(self._votes.write, hard_state.term, hard_state.vote))
            self._reports.vote_persisted(hard_state)
            self._voted.persisted(written)

    async def _keep_log(self) -> None:
        assert self._member is not None
        while True:
            await self._log_is_dirty.wait()
            if not self._config.ack_durable:
                await self._host.clock.sleep(self._times.flush_interval_s)
            self._log_is_dirty.clear()
            written = self._logged.written
            end = self._store.end
            self._host.reached("about-to-persist-log", index=end)
            await self._once_there_is_room(self._store.sync)
            self._host.reached("log-persisted", index=end)
            self._step(Persisted(written))
            self._logged.persisted(written)

    async def _keep_checkpoint(self) -> None:
        assert self._member is not None
        while True:
            await self._host.clock.sleep(self._times.checkpoint_interval_s)
            await self._once_there_is_room(partial(self._store.save_committed, self._member.state.committed))

    async def _once_there_is_room(self, write: Callable[[], Awaitable[None]]) -> None:
        """On the disk. Nobody hears meanwhile that it was written."""
        while True:
            try:
                await write()
                return
            except DiskFull as error:
                self._host.log("disk_full", reason=str(error))
                await self._host.clock.sleep(_ROOM_PAUSE_S)

    async def full_files(self, elapsed_s: Callable[[], float]) -> list[FileAge]:
        """For a `FileCleaner`."""
        return await self._store.full_files(elapsed_s)

    async def delete_files_before(self, offset: int, *, is_forced: bool = False) -> None:
        """For a `FileCleaner`."""
        begin = self._store.begin
        await self._store.expire(offset)
        if self._store.begin != begin:
            self._reports.deleted(self._store.begin, is_forced=is_forced)

    async def _ask(self, sent: Sent) -> None:
        answer = await self._peers.ask(sent.peer, sent.request, self._patience_ns(sent.request) / 1e9)
        self._step(Answered(sent.peer, sent.number, answer))

    def _patience_ns(self, request: Request) -> int:
        config = self._config
        if isinstance(request, PushRequest):
            return config.push_timeout_ns
        if isinstance(request, VoteRequest):
            return 2 * config.max_backoff_ns
        return config.transfer_timeout_ns if isinstance(request, TakeRequest) else config.heartbeat_ns

    # -- effects

    def _step(self, event: Event) -> None:
        member = self._member
        assert member is not None, "a member is started first"
        self._reports.steps(event)
        effects = member.step(event, self._host.clock.monotonic_ns())
        self._reports.stepped(event, member, effects)
        if effects.hard_state is not None:
            self._voted.written = effects.sequence
            self._vote_is_dirty.set()
        if effects.wrote:
            self._logged.written = effects.sequence
            self._log_is_dirty.set()
        for sent in effects.requests:
            self._send(sent)
        for sent in effects.votes:
            self._voted.hold(lambda sent=sent: self._send(sent))  # type: ignore[misc]
        self._carry_answers(member, effects)
        if member.deadline_ns < self._wakes_ns:
            self._is_due_sooner.set()
        for call in self.on_step:
            call(effects)

    def _carry_answers(self, member: Member, effects: Effects) -> None:
        for token, answer in effects.answers:
            self._answer(token, answer)
        for token, answer in effects.granted:
            self._voted.hold(lambda token=token, answer=answer: self._answer(token, answer))  # type: ignore[misc]
        if effects.acknowledged:
            term, verified = member.state.term, member.handler.verified
            self.hold_acknowledgement(lambda: self._acknowledge(effects.acknowledged, term, verified))
        for appended in effects.appended:
            self._answer(appended.token, appended)

    def hold_acknowledgement(self, answer: Callable[[], None]) -> None:
        """Until the log is as durable as it has to be."""
        if self._config.ack_durable:
            self._logged.hold(answer)
        else:
            answer()

    def _acknowledge(self, answers: list[tuple[int, AnyAnswer]], term: int, verified: int) -> None:
        """That the log is held up to the index `verified` as this term's leader has it."""
        self._host.reached("push-acknowledged", index=verified, term=term)
        for token, answer in answers:
            self._answer(token, answer)

    def _send(self, sent: Sent) -> None:
        self._host.spawn(self._ask(sent), f"dledger request to {sent.peer}")

    def _answer(self, token: int, answer: object) -> None:
        future = self._answers.pop(token)
        if not future.done():
            future.set_result(answer)


class _Progress:
    """What is written and what of it is durable, by the sequence numbers of steps, and what waits for that."""

    def __init__(self) -> None:
        self.written = 0
        self._durable = 0
        self._held: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def is_durable(self) -> bool:
        return self._durable >= self.written

    def hold(self, action: Callable[[], None]) -> None:
        """Until all that is written now is durable."""
        if self.is_durable:
            action()
        else:
            self._held.append((self.written, action))

    def persisted(self, sequence: int) -> None:
        self._durable = sequence
        while self._held and self._held[0][0] <= sequence:
            self._held.popleft()[1]()
