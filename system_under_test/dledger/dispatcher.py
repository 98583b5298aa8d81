"""How a leader brings one peer's log to its own: COMPARE, if need be TRUNCATE, then APPEND, and COMMIT once a second.

It begins with COMPARE at the leader's end, and again whenever an answer does not come, does not fit, or comes from
another process than before. Only what belongs to the attempt under way is heeded.

A peer that refuses to append again and again, behind an end that is the same, is sent a TRUNCATE there: the public
program keeps bytes behind its end that it wrote before it refused.

One COMPARE, TRUNCATE or COMMIT is under way at a time, and many APPENDs. A peer that has everything is sent a COMMIT
once a second: its answer shows a peer that has lost its disk while nobody writes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum

from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.message import (
    PUSHED_BYTES,
    AnyAnswer,
    Code,
    Push,
    PushAnswer,
    PushRequest,
    pushed_bytes,
)
from system_under_test.dledger.quorum import Quorum
from system_under_test.dledger.state import State


class Phase(Enum):
    COMPARE = "compare"
    TRUNCATE = "truncate"
    APPEND = "append"


@dataclass(frozen=True, slots=True)
class _Pushed:
    kind: Push
    last: int
    """The index of the last entry that was sent, or NOTHING."""


class Dispatcher:
    """Of a leader's term, for one peer."""

    def __init__(self, state: State, quorum: Quorum, peer: str) -> None:
        self._state = state
        self._quorum = quorum
        self.peer = peer
        self.phase = Phase.COMPARE
        self._compare_index = NOTHING
        self._same = self._differs = NOTHING
        """The last index that was found to be the same, and the first one that was found to differ."""
        self._write_index = NOTHING
        """The next one that is to be sent."""
        self._write_position = 0
        """Behind the last one that was sent."""
        self._in_flight: dict[int, _Pushed] = {}
        """By the numbers of requests."""
        self._retry_ns = 0
        """Before that nothing is sent."""
        self._last_push_ns = 0
        self._refused = 0
        """How many pushes the peer has refused since it last obeyed one."""
        self._is_single = False
        """It has refused a batch; until its connection is another one it gets one entry at a time."""

    @property
    def deadline_ns(self) -> int | None:
        """When something is to be sent that no event but time brings about."""
        if self._retry_ns > self._state.now_ns:
            return self._retry_ns
        if self.phase is Phase.APPEND and not self._in_flight:
            return self._last_push_ns + self._state.config.commit_interval_ns
        return None

    def connected(self) -> None:
        self._is_single = False
        self._compare_again()

    def _compare_again(self, wait_ns: int = 0) -> None:
        self.phase = Phase.COMPARE
        self._compare_index = self.first_compared()
        self._same = self._differs = NOTHING
        self._in_flight.clear()
        self._retry_ns = self._state.now_ns + wait_ns

    def first_compared(self) -> int:
        return self._state.log.end

    def go_on(self) -> None:
        """Send what can be sent now."""
        if self._state.now_ns < self._retry_ns or self._state.log.end == NOTHING:
            return
        if self.phase is Phase.APPEND:
            self._append()
        elif not self._in_flight:
            if self._compare_index == NOTHING:
                self._compare_index = self.first_compared()
            self._compare()

    # -- compare and truncate

    def _compare(self) -> None:
        log = self._state.log
        if not log.begin <= self._compare_index <= log.end:
            # Files have expired meanwhile.
            self._compare_index = log.end
        self._push_one(Push.COMPARE, self._compare_index)

    def _truncate(self, index: int) -> None:
        self.phase = Phase.TRUNCATE
        self._push_one(Push.TRUNCATE, index)

    def _push_one(self, kind: Push, index: int) -> None:
        entry = self._state.log.entry(index)
        if entry is None:
            self._compare_again(self._state.config.push_timeout_ns)
        else:
            self._push(kind, (entry,))

    def _compared(self, answer: PushAnswer) -> None:
        log, index = self._state.log, self._compare_index
        if answer.code is Code.SUCCESS:
            self._same = index
            self._go_on_between(answer)
        elif answer.end < log.begin or answer.begin > log.end or index < answer.begin:
            self._truncate(log.begin)
        else:
            self._differs = min(index, answer.end + 1)
            if NOTHING < self._same < self._differs:
                self._go_on_between(answer)
                return
            first = max(log.begin, answer.begin)
            self._compare_index = answer.end if index > answer.end else self.before(index, first)
            if self._compare_index < log.begin:
                self.nothing_in_common()

    def _go_on_between(self, answer: PushAnswer) -> None:
        """Logs that are the same at one index are the same before it."""
        middle = (self._same + self._differs) // 2
        if middle > self._same:
            self._compare_index = middle
        elif answer.end == self._same and self._refused < 2:
            self._append_behind(self._same)
        else:
            self._truncate(self._same)

    def before(self, index: int, first: int) -> int:
        """Which index is compared after this one, which differs. `first`: of those that both logs have."""
        log = self._state.log
        if not self._state.config.compare_by_term or index == first:
            return index - 1
        return max(first, bisect_left(range(log.begin, index), log.term(index), key=log.term) + log.begin - 1)

    def nothing_in_common(self) -> None:
        """Nothing that the leader still has is the same."""
        self._truncate(self._state.log.begin)

    def _append_behind(self, index: int) -> None:
        """The peer has all up to this index, as the leader has it, and nothing behind."""
        self.phase = Phase.APPEND
        self._write_index = index + 1
        self._quorum.has(self.peer, index)

    # -- append and commit

    def _append(self) -> None:
        state, config = self._state, self._state.config
        limit = 0 if self._is_single else config.batch_bytes
        while self._write_index <= state.log.end and len(self._in_flight) < config.max_in_flight:
            if self._in_flight and state.log.end_position - self._write_position < limit:
                # Until a push is answered, what comes meanwhile makes the next batch.
                return
            entries = self._next_entries(limit)
            if not entries:
                self._compare_again()
                return
            last = entries[-1]
            self._write_index, self._write_position = last.index + 1, last.position + last.size
            self._push(Push.APPEND, entries)
        if not self._in_flight and state.now_ns - self._last_push_ns >= config.commit_interval_ns:
            self._push(Push.COMMIT, ())

    def _next_entries(self, limit: int) -> tuple[Entry, ...]:
        """Until they have so many bytes, but no more than a frame takes; none if the first one's file has expired."""
        state = self._state
        entries: list[Entry] = []
        size, room = 0, PUSHED_BYTES
        for index in range(self._write_index, state.log.end + 1):
            entry = state.log.entry(index)
            if entry is None or room < (pushed := pushed_bytes(entry)):
                break
            room -= pushed
            entries.append(entry)
            size += entry.size
            if size >= limit:
                break
        return tuple(entries)

    def _push(self, kind: Push, entries: tuple[Entry, ...]) -> None:
        state = self._state
        is_batch = kind is Push.APPEND and state.config.batch_bytes > 0 and not self._is_single
        request = PushRequest(state.node, state.term, kind, entries, state.committed, is_batch)
        number = state.send(self.peer, request)
        self._in_flight[number] = _Pushed(kind, entries[-1].index if entries else NOTHING)
        self._last_push_ns = state.now_ns

    # -- answers

    def take(self, number: int, answer: AnyAnswer | None) -> int:
        """Answers to what was given up are passed over. Returns the peer's term if that is higher than the own one,
        or else NOTHING."""
        pushed = self._in_flight.pop(number, None)
        if pushed is None:
            return NOTHING
        state, config = self._state, self._state.config
        if not isinstance(answer, PushAnswer):
            self._compare_again(config.push_timeout_ns // 2)
        elif answer.term > state.term:
            return answer.term
        elif pushed.kind is Push.COMPARE and answer.code in (Code.SUCCESS, Code.INCONSISTENT_STATE):
            self._compared(answer)
        elif answer.code is Code.SUCCESS:
            self._succeeded(pushed, answer)
        elif answer.code is Code.UNEXPECTED_ARGUMENT and pushed.kind is Push.APPEND and not self._is_single:
            self._is_single = True
            self._compare_again()
        elif answer.code is Code.INCONSISTENT_STATE and pushed.kind is not Push.TRUNCATE:
            self._refused += 1
            self._compare_again(0 if self._refused == 1 else config.push_timeout_ns // 2)
        else:
            self._compare_again(config.push_timeout_ns // 2)
        return NOTHING

    def _succeeded(self, pushed: _Pushed, answer: PushAnswer) -> None:
        if pushed.kind is Push.TRUNCATE:
            self._append_behind(pushed.last)
        elif pushed.kind is Push.APPEND:
            self._refused = 0
            self._quorum.has(self.peer, pushed.last)
        else:
            self.committed(answer)

    def committed(self, answer: PushAnswer) -> None:
        """The peer has answered a COMMIT: it should still have what it had."""
        if answer.end < self._quorum.marks[self.peer]:
            self._compare_again()
