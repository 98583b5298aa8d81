"""What a Raft node reports of itself, so that nodes can be held against each other.

Who was elected by whom, and what is decided; of a log that has a name also each entry with its checksum, where it was
cut, up to where it is committed, who leads from which entry on, by which membership a node goes, and to whom it said
that it would vote for it. A process may hold the logs of several groups.
"""

from __future__ import annotations

import struct
import zlib

from system_under_test.raft.core import Raft, Role
from system_under_test.raft.event import Effects
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import Entry, HardState, PreVoteReply, TimeoutNow
from system_under_test.runtime.host import Host

_HEAD = struct.Struct(">QB")


class RaftReports:
    def __init__(self, host: Host, log: str, *, entries: bool) -> None:
        """`log`: its name; empty: only elections and what a leader decides are reported, of no group by name.
        `entries`: whether each entry of a log that has a name is reported."""
        self._host = host
        self._log = log
        self._entries = entries and bool(log)
        self._group = {"group": log} if log else {}
        self._decided = 0
        """What was reported as the leader."""
        self._confirmed = 0

    def recovered(self, last_index: int) -> None:
        if self._entries:
            self._host.log("log", log=self._log, unit="entries")
            self._host.log("recovered", log=self._log, end=last_index)

    def role(self, raft: Raft) -> None:
        """It leads now, or does no longer."""
        is_leader, term = raft.role is Role.LEADER, raft.term
        if is_leader:
            by, needed, last = list(raft.elected_by), raft.membership.majority, list(raft.elected_with)
            self._host.log("voted_in", **self._group, term=term, by=by, needed=needed, last=last)
        if self._log and is_leader:
            self._host.log("leader", group=self._log, term=term, start=raft.elected_with[1])
        elif self._log:
            self._host.log("follower", group=self._log, term=term)

    def term(self, hard_state: HardState) -> None:
        self._host.log("term", **self._group, term=hard_state.term, vote=hard_state.vote)

    def membership(self, index: int, membership: Membership) -> None:
        """By which it goes from now on: that of the entry at this index, or as of there."""
        if self._log:
            voters, learners = sorted(membership.voters), sorted(membership.learners)
            self._host.log("membership", **self._group, index=index, voters=voters, learners=learners)

    def asks(self, effects: Effects) -> None:
        """Whom this step lets stand for election: by a promise to vote, or as the leader's successor."""
        if not self._log:
            return
        for message in effects.messages:
            if isinstance(message, PreVoteReply) and message.granted:
                self._host.log("pre_vote", **self._group, term=message.term, candidate=message.recipient)
        for sent in effects.appends:
            if isinstance(sent, TimeoutNow):
                self._host.log("hands_over", **self._group, term=sent.term, successor=sent.recipient)

    def persists(self, effects: Effects, last_index: int) -> None:
        """Of a step before which the log ended at `last_index`."""
        host, log, entries, snapshot = self._host, self._log, effects.entries, effects.snapshot
        if not self._entries:
            return
        if snapshot is not None:
            # What stays behind a snapshot was reported when it came.
            if effects.log_base is None:
                host.log("truncated", log=log, to=0)
            host.log("deleted", log=log, to=snapshot.index, forced=False)
        elif entries:
            if entries[0].index <= last_index:
                host.log("truncated", log=log, to=entries[0].index - 1)
            for entry in entries:
                host.log("written", log=log, start=entry.index - 1, end=entry.index, checksum=_checksum(entry))

    def committed(self, raft: Raft) -> None:
        if raft.role is Role.LEADER and raft.commit > self._decided:
            self._decided = raft.commit
            self._host.log("raft_committed", **self._group, term=raft.log.term_at(raft.commit), index=raft.commit)
        if self._entries and raft.commit != self._confirmed:
            self._confirmed = raft.commit
            self._host.log("confirmed", log=self._log, offset=raft.commit, master_epoch=raft.term)


def _checksum(entry: Entry) -> int:
    return zlib.crc32(entry.data, zlib.crc32(_HEAD.pack(entry.term, entry.kind)))
