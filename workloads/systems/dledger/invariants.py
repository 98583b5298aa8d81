"""What holds of a group of DLedger at every moment, held against what its members say and do.

Of each member the log is remembered as it reported it: by index the term and checksum of the entry. What a member lost
with its disk, by a loss of power or worse, it counts as holding still as long as it has nothing else there: what may
become of that is judged where clients see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.invariants import Breaches
from harness.record.meaning import Meaning
from harness.watch import ENDED
from workloads.systems.dledger.settings import GroupOnTrial, Store

INVARIANTS: Mapping[str, Meaning] = {
    "diverging-commits": Meaning(
        says="Two members took different entries of one index for committed.",
        usually="An entry counted as committed that a majority did not hold, or that was replaced later.",
    ),
    "committed-cut": Meaning(
        says="A member cut an entry that was committed.",
        usually="It obeyed a leader that was replaced, or a request that was overtaken by later ones.",
    ),
    "beyond-log": Meaning(
        says="A member took more for committed than its log held.",
        usually="It believes its leader's committed index beyond what that leader has verified of its log.",
    ),
    "committed-back": Meaning(
        says="What a member knew to be committed became less while it ran.",
        usually="A new leader's committed index, which it learns anew, is taken over as it is.",
    ),
    "unheld-commit": Meaning(
        says="A leader took an entry for committed that a majority did not hold, durably where that is demanded.",
        usually="A member's answer is counted for entries that it does not have, or has not synced.",
    ),
    "wrong-ack": Meaning(
        says="An append was acknowledged though another entry stands at its index.",
        usually="Who waits for an index is answered whatever term's entry is committed there.",
    ),
    "old-term-counted": Meaning(
        says="A leader took entries of older terms for committed before one of its own.",
        usually="A majority that holds an entry is taken for enough, whatever the entry's term is.",
    ),
    "electable-laggard": Meaning(
        says="A majority would have elected a member that lacked what was being committed.",
        usually="Entries of older terms are counted, or fewer than a majority.",
    ),
    "unlike-leader": Meaning(
        says="A member said that its log is that of its leader up to an index, and it was not.",
        usually="An entry is taken for there that was cut, or never written.",
    ),
    "hurried-transfer": Meaning(
        says="A member stood in its leader's place though it lacked what that one had when it asked.",
        usually="Whether it has caught up is not looked at, or against another end than the leader's.",
    ),
    "not-durable": Meaning(
        says="A member that started again lacked what it had made durable.",
        usually="It took a failed fsync for a success, or syncs a file that its log is no longer in.",
    ),
    "second-vote": Meaning(
        says="A member gave its vote to two candidates in one term.",
        usually="The vote is not looked at, or was forgotten.",
    ),
    "forgotten-vote": Meaning(
        says="A member that started again had forgotten its term or its vote.",
        usually="They were not durable when they were used.",
    ),
}

Stands = tuple[int, int]
"""(Term, checksum) of an entry."""


@dataclass(slots=True)
class _Member:
    leads: int | None = None
    """The term in which it leads."""
    term: int = 0
    log: dict[int, Stands] = field(default_factory=dict)
    end: int = -1
    """The last index."""
    lost: dict[int, Stands] = field(default_factory=dict)
    """What it held when it ended, and not when it started again, until something else stands there."""
    durable: int = -1
    """The last index up to which its log was synced."""
    syncing: int = -1
    """The last index when the sync began that is under way, or the one before which the log was cut since."""
    committed: int = -1
    vote: tuple[int, str | None] = (0, None)
    """Term and vote as they were made durable last."""

    @property
    def end_term(self) -> int:
        stands = self.log.get(self.end)
        return -1 if stands is None else stands[0]

    @property
    def last(self) -> tuple[int, int]:
        """Term and index of its last entry."""
        return self.end_term, self.end

    @property
    def ever_last(self) -> tuple[int, int]:
        """The same with what it lost."""
        index = max(self.lost, default=-1)
        return max(self.last, (self.lost[index][0], index)) if self.lost else self.last

    def cut(self, end: int) -> dict[int, Stands]:
        """What was behind it."""
        gone = {index: self.log.pop(index) for index in range(end + 1, self.end + 1) if index in self.log}
        self.end = end
        self.durable, self.syncing = min(self.durable, end), min(self.syncing, end)
        return gone


class DledgerInvariants:
    """`Invariants` of the harness."""

    def __init__(self, settings: GroupOnTrial, breaches: Breaches) -> None:
        self._says = breaches.says
        self._store, self._ack_durable = settings.store, settings.ack_durable
        self._members = {name: _Member() for name in settings.names}
        self._majority = len(self._members) // 2 + 1
        self._committed: dict[int, tuple[Stands, str]] = {}
        """By index, and who was first to take it for committed."""
        self._appended: dict[tuple[str, int], Stands] = {}
        """(Leader, serial) -> the last entry of an append that waits."""

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        handle = _EVENTS.get(event)
        if handle is not None:
            handle(self, node, self._members[node], fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        handle = _POINTS.get(point)
        if handle is not None:
            handle(self, node, self._members[node], **values)

    # Events -----------------------------------------------------------------------------------------------------

    def _ended(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        member.leads, member.committed, member.syncing = None, -1, -1
        self._appended = {key: stands for key, stands in self._appended.items() if key[0] != node}

    def _recovered(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        end, durable = int(fields["end"]) - 1, member.durable if self._store is Store.FILE else -1
        if end < durable:
            because = f"{node} started again with its log up to {end}, though it had synced it up to {durable}"
            self._says("not-durable", (node,), because)
        lost = member.cut(end)
        if self._ack_durable:
            lost = {index: stands for index, stands in lost.items() if index <= durable}
        member.lost |= lost
        member.durable = end

    def _truncated(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        for index, stands in member.cut(int(fields["to"]) - 1).items():
            known = self._committed.get(index)
            if known is not None and known[0] == stands:
                because = f"{node} cut its log at {fields['to']}, though {known[1]} took entry {index} for committed"
                self._says("committed-cut", (node,), because)
                break

    def _deleted(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        if member.end < fields["to"] - 1:
            member.end = fields["to"] - 1

    def _written(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        index = member.end = int(fields["start"])
        member.log[index] = fields["term"], fields["checksum"]
        member.lost.pop(index, None)

    def _leads(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        member.leads = fields["term"]

    def _leads_no_more(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        member.leads = None

    def _term(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        """Kept in memory; at a start it is what the disk has."""
        term, vote = fields["term"], fields["vote"]
        member.term = term
        known_term, known_vote = member.vote
        if term < known_term or (term == known_term and known_vote is not None and vote != known_vote):
            because = f"{node} had made term {known_term} and its vote for {known_vote} durable, and is in term {term}"
            self._says("forgotten-vote", (node,), f"{because} with its vote for {vote}")
            member.vote = term, vote

    def _vote_persisted(self, node: str, member: _Member, fields: Mapping[str, Any]) -> None:
        term, vote = fields["term"], fields["vote"]
        if term == member.vote[0] and member.vote[1] not in (None, vote):
            because = f"in term {term} {node} voted for {member.vote[1]} and for {vote}"
            self._says("second-vote", (node,), because)
        member.vote = term, vote

    # Points -----------------------------------------------------------------------------------------------------

    def _about_to_persist(self, node: str, member: _Member, index: int) -> None:
        member.syncing = index

    def _persisted(self, node: str, member: _Member, index: int) -> None:
        member.durable = max(member.durable, member.syncing)

    def _append_written(self, node: str, member: _Member, index: int, serial: int) -> None:
        self._appended[node, serial] = member.log[index]

    def _append_committed(self, node: str, member: _Member, index: int, serial: int) -> None:
        appended, stands = self._appended.pop((node, serial)), member.log.get(index)
        if appended != stands:
            because = f"{node} acknowledged an append of term {appended[0]} at {index}, where another entry stands"
            self._says("wrong-ack", (node,), because)

    def _holds(self, member: _Member, index: int, stands: Stands) -> bool:
        if member.log.get(index) == stands:
            return not self._ack_durable or index <= member.durable
        return member.lost.get(index) == stands

    def _commits(self, node: str, member: _Member, index: int, leads: int) -> None:
        before, member.committed = member.committed, index
        if index < before:
            self._says(
                "committed-back", (node,), f"{node} had taken all up to {before} for committed, then up to {index}"
            )
        if index > member.end:
            because = f"{node} took all up to {index} for committed, and its log ended at {member.end}"
            self._says("beyond-log", (node,), because)
        for at in range(index, before, -1):
            stands = member.log.get(at)
            if stands is None:
                continue
            known, first = self._committed.setdefault(at, (stands, node))
            if known != stands:
                because = f"{first} committed an entry of term {known[0]} at {at}, and {node} one of term {stands[0]}"
                self._says("diverging-commits", (first, node), because)
        if leads and index in member.log:
            self._counted(node, member, index, member.log[index])

    def _counted(self, node: str, member: _Member, index: int, stands: Stands) -> None:
        """A leader has found that a majority has it."""
        holders = [name for name, other in self._members.items() if self._holds(other, index, stands)]
        if len(holders) < self._majority:
            durably = " durably" if self._ack_durable else ""
            because = f"{node} committed entry {index}, which {', '.join(holders) or 'nobody'} held{durably}"
            self._says("unheld-commit", (node,), because)
        if stands[0] != member.leads:
            because = f"{node}, which led in term {member.leads}, committed entry {index} of term {stands[0]}"
            self._says("old-term-counted", (node,), because)
        self._look_for_laggards(node, index, stands)

    def _look_for_laggards(self, node: str, index: int, stands: Stands) -> None:
        for name, member in self._members.items():
            if member.log.get(index) == stands or member.lost.get(index) == stands:
                continue
            others = {other: its for other, its in self._members.items() if other != name}
            voters = [name, *(other for other, its in others.items() if its.ever_last <= member.last)]
            if len(voters) >= self._majority:
                because = (
                    f"{node} committed entry {index}, and {name}, which lacks it, ends with entry {member.end} of "
                    f"term {member.end_term}, so that {', '.join(voters)} would vote for it"
                )
                self._says("electable-laggard", (name,), because)

    def _vouches(self, node: str, member: _Member, index: int, term: int) -> None:
        for name, leader in self._members.items():
            theirs = leader.log.get(index)
            if leader.leads == member.term == term and theirs is not None and member.log.get(index) != theirs:
                because = f"{node} said that its log is that of {name} up to {index}, where another entry stands"
                self._says("unlike-leader", (node, name), because)

    def _takes_over(self, node: str, member: _Member, index: int, leaders: int) -> None:
        if index < leaders:
            because = (
                f"{node} stood in its leader's place with entries up to {index}, and that one had them up to {leaders}"
            )
            self._says("hurried-transfer", (node,), because)


_EVENTS: Mapping[str, Callable[[DledgerInvariants, str, _Member, Mapping[str, Any]], None]] = {
    ENDED: DledgerInvariants._ended,
    "recovered": DledgerInvariants._recovered,
    "truncated": DledgerInvariants._truncated,
    "deleted": DledgerInvariants._deleted,
    "written": DledgerInvariants._written,
    "leader": DledgerInvariants._leads,
    "follower": DledgerInvariants._leads_no_more,
    "candidate": DledgerInvariants._leads_no_more,
    "term": DledgerInvariants._term,
    "vote_persisted": DledgerInvariants._vote_persisted,
}
_POINTS: Mapping[str, Callable[..., None]] = {
    "about-to-persist-log": DledgerInvariants._about_to_persist,
    "log-persisted": DledgerInvariants._persisted,
    "append-written": DledgerInvariants._append_written,
    "append-committed": DledgerInvariants._append_committed,
    "committed": DledgerInvariants._commits,
    "push-acknowledged": DledgerInvariants._vouches,
    "took-over": DledgerInvariants._takes_over,
}
