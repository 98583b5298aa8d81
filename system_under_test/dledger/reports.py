"""What a member of a DLedger group reports of itself, so that members can be held against each other.

Who was elected by whom, each entry of the log with its term and checksum, where the log was cut, up to where it is
committed; and points at which faults may strike. Offsets of the log count entries: all before offset 3 are those of
the indices 0 to 2.
"""

from __future__ import annotations

import struct
import zlib

from system_under_test.dledger.core import Member
from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.event import Append, Effects, Event, HardState, Receive
from system_under_test.dledger.message import Code, Push, PushRequest
from system_under_test.dledger.state import Role
from system_under_test.runtime.host import Host

_HEAD = struct.Struct(">qq")


class MemberReports:
    def __init__(self, host: Host, log: str) -> None:
        """`log`: the name of the group, which is that of its log."""
        self._host = host
        self._log = log
        self._role = Role.CANDIDATE
        self._end = self._committed = NOTHING
        self._transfers_to: str | None = None

    def started(self, member: Member) -> None:
        host, log = self._host, member.state.log
        host.log("log", log=self._log, unit="entries")
        host.log("recovered", log=self._log, end=log.end + 1)
        self._term(member.state.hard_state)
        self._end = log.end
        self._commits(member, counts=False)

    def steps(self, event: Event) -> None:
        """Is about to."""
        if (
            isinstance(event, Receive)
            and isinstance(event.request, PushRequest)
            and event.request.kind is Push.TRUNCATE
        ):
            self._host.reached("about-to-truncate")

    def stepped(self, event: Event, member: Member, effects: Effects) -> None:
        """And has not sent anything yet."""
        host, state, led = self._host, member.state, self._role is Role.LEADER
        if effects.hard_state is not None:
            self._term(effects.hard_state)
        if effects.took_over is not None:
            host.reached("took-over", index=member.handler.verified, leaders=effects.took_over)
        if state.role is not self._role:
            self._changes_role(member)
        if effects.kept is not None:
            self._writes(effects.kept, effects.entries, state.log.begin)
            if isinstance(event, Append):
                host.reached("append-written", index=state.log.end, serial=event.token)
        if state.committed != self._committed:
            self._commits(member, led and state.role is Role.LEADER)
        if member.transfer.to != self._transfers_to:
            self._transfers_to = member.transfer.to
            if self._transfers_to is not None:
                host.reached("transfer-begun")
        for sent in effects.requests:
            if isinstance(sent.request, PushRequest) and sent.request.kind is Push.TRUNCATE:
                host.reached("about-to-push-truncate")
        for appended in effects.appended:
            if appended.code is Code.SUCCESS:
                host.reached("append-committed", index=appended.index, serial=appended.token)

    def vote_persisted(self, hard_state: HardState) -> None:
        self._host.log("vote_persisted", term=hard_state.term, vote=hard_state.vote)
        self._host.reached("vote-persisted")

    def deleted(self, begin: int, *, is_forced: bool = False) -> None:
        """The log begins with this index."""
        self._host.log("deleted", log=self._log, to=begin, forced=is_forced)

    def _term(self, hard_state: HardState) -> None:
        self._host.log("term", term=hard_state.term, vote=hard_state.vote)

    def _changes_role(self, member: Member) -> None:
        host, state, election = self._host, member.state, member.election
        was_leader, self._role = self._role is Role.LEADER, state.role
        if state.role is Role.LEADER:
            by, needed, last = list(election.elected_by), state.config.majority, list(election.elected_with)
            host.log("voted_in", group=self._log, term=state.term, by=by, needed=needed, last=last)
            host.log("leader", group=self._log, term=state.term, start=election.elected_with[1] + 1)
            host.reached("became-leader", term=state.term)
            return
        host.log(state.role.value, group=self._log, term=state.term)
        if was_leader:
            host.reached("lost-leadership", term=state.term)

    def _writes(self, kept: int, entries: list[Entry], begin: int) -> None:
        host, log = self._host, self._log
        was_cut = kept < self._end
        if was_cut:
            host.log("truncated", log=log, to=kept + 1)
        if kept == NOTHING and begin > 0:
            self.deleted(begin)
        for entry in entries:
            start, checksum = entry.index, _checksum(entry)
            host.log("written", log=log, start=start, end=start + 1, checksum=checksum, term=entry.term)
        self._end = entries[-1].index if entries else kept
        if was_cut:
            host.reached("truncated", index=self._end)

    def _commits(self, member: Member, counts: bool) -> None:
        """`counts`: as the leader, which knows it by counting, and not from another one."""
        state = member.state
        self._committed = state.committed
        self._host.log("confirmed", log=self._log, offset=state.committed + 1, master_epoch=state.term)
        self._host.reached("committed", index=state.committed, leads=int(counts))


def _checksum(entry: Entry) -> int:
    return zlib.crc32(entry.body, zlib.crc32(_HEAD.pack(entry.term, entry.index)))
