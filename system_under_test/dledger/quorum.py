"""What a majority has: water marks of a leader's term, what they commit, and who waits for that."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.event import Appended
from system_under_test.dledger.message import Code
from system_under_test.dledger.state import State


@dataclass(frozen=True, slots=True)
class Pending:
    """A client waits until this entry, its last one, is committed."""

    token: int
    term: int
    index: int
    position: int
    until_ns: int


class Quorum:
    def __init__(self, state: State) -> None:
        self._state = state
        self.marks: dict[str, int] = {}
        """For each member the last index of which this leader knows that it has it, and all before."""
        self._pending: deque[Pending] = deque()
        """Indices ascend, and so do terms."""

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def deadline_ns(self) -> int | None:
        return self._pending[0].until_ns if self._pending else None

    def begin(self) -> None:
        """A new term of this leader: nobody is known to have anything."""
        self.marks = dict.fromkeys(self._state.config.members, NOTHING)

    def wait(self, token: int, last: Entry) -> None:
        until_ns = self._state.now_ns + self._state.config.ack_timeout_ns
        self._pending.append(Pending(token, last.term, last.index, last.position, until_ns))

    def has(self, member: str, index: int) -> None:
        """The member has all up to this index, as the leader has it."""
        self.marks[member] = max(self.marks[member], index)
        self._commit_to(self.reached())

    def reached(self) -> int:
        """The last index that a majority has."""
        return sorted(self.marks.values(), reverse=True)[self._state.config.majority - 1]

    def _commit_to(self, index: int) -> None:
        state = self._state
        if index <= state.committed or not self.may_commit(index):
            return
        state.commit(index)
        while self._pending and self._pending[0].index <= index:
            self._end(self._pending.popleft())

    def may_commit(self, index: int) -> bool:
        """Entries of older terms are committed only together with one of the own term (figure 8 of Raft's paper)."""
        return self._state.log.term(index) == self._state.term

    def _end(self, pending: Pending) -> None:
        self._answer(pending, Code.SUCCESS if self.is_same(pending) else Code.TERM_CHANGED)

    def is_same(self, pending: Pending) -> bool:
        """Whether the entry that is committed there is the one that was appended."""
        return self._state.log.term(pending.index) == pending.term

    def _answer(self, pending: Pending, code: Code) -> None:
        answer = Appended(pending.token, code, pending.index, pending.position)
        self._state.effects.appended.append(answer)

    def tick(self) -> None:
        while self._pending and self._pending[0].until_ns <= self._state.now_ns:
            self._answer(self._pending.popleft(), Code.WAIT_QUORUM_ACK_TIMEOUT)

    def abandon(self) -> None:
        """This member does not lead any more: who leads then may commit what is pending, or cut it."""
        while self._pending:
            self._answer(self._pending.popleft(), Code.TERM_CHANGED)
        self.marks = {}
