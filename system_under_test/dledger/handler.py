"""How a follower obeys its leader's pushes.

It goes by what this leader has verified in this term and in this life of the follower: `verified`. Entries are put only
behind that, and only so far is anything taken for committed.

A TRUNCATE may come late: it waited in a connection that has since been replaced, and meanwhile the same leader has
pushed on and been acknowledged. So an entry of the leader's own term, or one that it has verified, is never cut: no
leader ever needs that.
"""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.message import Code, Push, PushRequest
from system_under_test.dledger.state import State
from system_under_test.runtime.host import DiskFull


class Handler:
    def __init__(self, state: State) -> None:
        self._state = state
        self._leader = ("", NOTHING)
        """Whose pushes were obeyed last, and its term."""
        self.verified = NOTHING
        """The last index up to which this leader has, in its term, made sure that the log is its own."""

    def obeys_anyway(self, request: PushRequest) -> bool:
        """Of one that this member does not follow, or not in that term."""
        return False

    def vouches(self, request: PushRequest) -> bool:
        """Whether a yes to this says that the log is held up to some index. Then it has to be as durable as that."""
        return request.kind is not Push.COMMIT

    def obey(self, request: PushRequest) -> Code:
        """Of the leader that this member follows, in the term that it is in."""
        if self._leader != (request.leader, request.term):
            self._leader = request.leader, request.term
            self.verified = NOTHING
        if request.is_batch and not self._state.config.understands_batches:
            return Code.UNEXPECTED_ARGUMENT
        if len(request.entries) != 1 and request.kind in (Push.COMPARE, Push.TRUNCATE):
            return Code.UNEXPECTED_ARGUMENT
        if request.kind is Push.APPEND and not request.entries:
            return Code.UNEXPECTED_ARGUMENT
        try:
            code = self._done(request)
        except DiskFull:
            return Code.DISK_FULL
        if code is Code.SUCCESS:
            self.commit(request.committed)
        return code

    def _done(self, request: PushRequest) -> Code:
        if request.kind is Push.COMPARE:
            return self._compare(request.entries[0])
        if request.kind is Push.TRUNCATE:
            return self._truncate(request.entries[0])
        if request.kind is Push.APPEND:
            return self.append(request.entries)
        return Code.SUCCESS if self.verified == self._state.log.end else Code.INCONSISTENT_STATE

    def commit(self, index: int) -> None:
        self._state.commit(min(index, self.verified))

    def _compare(self, entry: Entry) -> Code:
        if self._state.log.entry(entry.index) != entry:
            return Code.INCONSISTENT_STATE
        self.verified = max(self.verified, entry.index)
        return Code.SUCCESS

    def _truncate(self, entry: Entry) -> Code:
        state, log = self._state, self._state.log
        kept = entry.index if log.entry(entry.index) == entry else NOTHING
        if not self.may_truncate(entry) or not self.end_with(entry):
            return Code.INCONSISTENT_STATE
        state.wrote(min(kept, log.end), () if kept == entry.index else (entry,))
        state.committed = min(state.committed, state.log.end)
        self.verified = entry.index
        return Code.SUCCESS

    def may_truncate(self, entry: Entry) -> bool:
        """Terms ascend in a log, so its last one says whether an entry of the leader's term would go. One that the
        leader has verified must stay as well, whatever its term: this member has vouched for it."""
        log = self._state.log
        is_last = log.end == entry.index and log.entry(log.end) == entry
        is_older = log.end_term < self._state.term and entry.index >= self.verified
        return is_last or log.end < entry.index or is_older

    def end_with(self, entry: Entry) -> bool:
        return self._state.log.end_with(entry)

    def append(self, entries: Sequence[Entry]) -> Code:
        """All of them, or none."""
        log = self._state.log
        if self.verified != log.end:
            return Code.INCONSISTENT_STATE
        known = [entry for entry in entries if entry.index <= log.end]
        if any(log.entry(entry.index) != entry for entry in known):
            return Code.INCONSISTENT_STATE
        new = entries[len(known) :]
        if new:
            kept = log.end
            if not log.append(new):
                return Code.INCONSISTENT_STATE
            self._state.wrote(kept, new)
            self.verified = log.end
        return Code.SUCCESS
