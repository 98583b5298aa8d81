"""What holds of Raft groups of ours at every moment, held against what their nodes say and do.

Of each node's part in a group the log is remembered as it reported it, by index the checksum of the entry, and how much
of that is durable. What a loss of power took was not durable, and nothing rests on it; what stands behind the durable
part after it is taken for whichever entry fits, for a cut may have been undone. A node that was removed may lose all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.invariants import Breaches
from harness.record.meaning import Meaning
from harness.watch import ENDED

RAFT_INVARIANTS: Mapping[str, Meaning] = {
    "two-leaders": Meaning(
        says="Two nodes led a group in one term.",
        usually="A vote was given twice, or the two went by memberships whose majorities have no node in common.",
    ),
    "second-vote": Meaning(
        says="A node gave its vote to two candidates in one term.",
        usually="The vote is not looked at, or was forgotten with the term.",
    ),
    "unasked-term": Meaning(
        says="A node stood for election though no majority had said that it would vote for it.",
        usually="Nobody is asked before, so that a node which hears no leader makes all others leave theirs.",
    ),
    "foreign-votes": Meaning(
        says="A node began to lead with the votes of no majority of those who vote.",
        usually="It goes by a membership that was replaced, and the change was committed.",
    ),
    "forgotten-members": Meaning(
        says="A node went by a membership that had been replaced by one that it has, committed.",
        usually="The membership is not kept with the snapshot that takes the place of the change.",
    ),
    "overlapping-changes": Meaning(
        says="A leader changed the membership before the change before was committed.",
        usually="Nobody looks whether it is, so that majorities of both need have no node in common.",
    ),
    "diverging-commits": Meaning(
        says="Two nodes took different entries of one index for committed.",
        usually="An entry counted as committed that a majority did not hold, or that was replaced later.",
    ),
    "committed-cut": Meaning(
        says="A node cut an entry that was committed.",
        usually="It obeyed a leader that was replaced, or a request that was overtaken by later ones.",
    ),
    "needless-cut": Meaning(
        says="A node cut its log at an entry, and wrote the same one in its place.",
        usually="A request that ends earlier than the log is taken for one that says where the log ends.",
    ),
    "beyond-log": Meaning(
        says="A node took more for committed than its log held.",
        usually="It believes its leader's committed index beyond what that leader has verified of its log.",
    ),
    "committed-back": Meaning(
        says="What a node knew to be committed became less while it ran.",
        usually="A new leader's committed index, which it learns anew, is taken over as it is.",
    ),
    "unheld-commit": Meaning(
        says="A leader took an entry for committed that a majority did not hold durably.",
        usually="A node's answer is counted for entries that it does not have, or has not synced.",
    ),
    "early-apply": Meaning(
        says="A node applied an entry that nobody took for committed.",
        usually="What is appended is taken for decided.",
    ),
    "not-durable": Meaning(
        says="A node that started again lacked entries that it had made durable.",
        usually="It took a failed fsync for a success, or syncs a file that its log is no longer in.",
    ),
}


@dataclass(slots=True)
class _Part:
    """A node's in one group."""

    leads: int | None = None
    """The term in which it leads."""
    term: int = 0
    vote: str | None = None
    log: dict[int, int] = field(default_factory=dict)
    """Checksums of the entries, by index."""
    begin: int = 0
    """Up to this index a snapshot stands for the log."""
    end: int = 0
    cut: dict[int, int] = field(default_factory=dict)
    """What was just cut; the next event says why."""
    doubtful: set[int] = field(default_factory=set)
    """Indices at which another entry may stand, since power was lost before a sync."""
    durable: int = 0
    """The last index up to which the log is synced."""
    was_durable: int = 0
    """The same before what was just cut."""
    committed: int = 0
    voters: tuple[str, ...] = ()
    """Who votes by its newest membership."""
    changed: int = 0
    """The index of that membership."""
    changes: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    """Those that it has not reported as committed yet: index and voters."""

    def shorten(self, end: int) -> None:
        gone = range(end + 1, self.end + 1)
        self.cut = {index: self.log[index] for index in gone if index in self.log and index not in self.doubtful}
        for index in gone:
            self.log.pop(index, None)
        self.doubtful.difference_update(gone)
        self.end = end
        self.was_durable, self.durable = self.durable, min(self.durable, end)
        self.changes = [change for change in self.changes if change[0] <= end]

    def holds(self, index: int, checksum: int | None) -> bool:
        """Durably. What a snapshot stands for is committed, and thereby the same everywhere."""
        stands = index <= self.begin or index in self.doubtful or self.log.get(index) == checksum
        return stands and index <= self.durable


class RaftGroupInvariants:
    """Those of one group."""

    def __init__(self, group: str, voters: Iterable[str], breaches: Breaches) -> None:
        """`voters` are those of the beginning."""
        self._group = group
        self._says = breaches.says
        self._parts: dict[str, _Part] = {}
        self._leaders: dict[int, str] = {}
        """By term."""
        self._promised: dict[tuple[str, int], set[str]] = {}
        """(Candidate, term) -> who said that it would vote for it."""
        self._successors: set[tuple[str, int]] = set()
        """(Node, term) of those whom a leader asked to stand."""
        self._committed: dict[int, tuple[int, str]] = {}
        """By index the checksum, and who was first to take it for committed."""
        self._decided = 0
        """The last index that anybody took for committed."""
        self._memberships: list[tuple[int, tuple[str, ...]]] = [(0, tuple(sorted(voters)))]
        """The committed ones, by index."""

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        handle = _EVENTS.get(event)
        if handle is not None:
            handle(self, node, self._part(node), fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        if point in ("appended-before-answer", "snapshot-persisted"):
            part = self._part(node)
            part.durable = max(part.durable, min(values["durable"], part.end))
        elif point == "about-to-apply" and values["index"] > self._decided:
            because = f"{node} applied entry {values['index']}, and {self._decided} was the last committed one"
            self._break("early-apply", (node,), because)

    def too_few(self, node: str, index: int) -> tuple[str, ...]:
        """Who holds the entry at this index as this node has it, durably, if that is no majority of those who vote by
        its membership; empty if it is one."""
        part, (committed, _) = self._part(node), self._committed.get(index, (None, ""))
        checksum = part.log.get(index, committed)
        holders = tuple(name for name in part.voters if self._part(name).holds(index, checksum))
        return () if len(holders) > len(part.voters) // 2 else holders or ("nobody",)

    def _part(self, node: str) -> _Part:
        part = self._parts.get(node)
        if part is None:
            part = self._parts[node] = _Part()
        return part

    def _break(self, name: str, nodes: tuple[str, ...], because: str) -> None:
        self._says(name, nodes, f"in group {self._group} {because}")

    # Lives ------------------------------------------------------------------------------------------------------

    def _ended(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        part.leads, part.vote, part.committed, part.changes = None, None, 0, []
        if fields["how"] == "power lost":
            part.doubtful.update(range(part.durable + 1, part.end + 1))

    def _recovered(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        end = int(fields["end"])
        if end < part.durable and node in self._memberships[-1][1]:
            because = f"{node} started again with entries up to {end}, though it had synced them up to {part.durable}"
            self._break("not-durable", (node,), because)
        part.doubtful.update(range(part.end + 1, end + 1))
        part.shorten(end)
        part.begin = min(part.begin, end)
        part.cut, part.durable = {}, end

    # Who leads --------------------------------------------------------------------------------------------------

    def _term(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        term, vote = fields["term"], fields["vote"]
        if term == part.term and part.vote not in (None, vote):
            self._break("second-vote", (node,), f"{node} voted for {part.vote} and for {vote} in term {term}")
        if vote == node and (term, vote) != (part.term, part.vote):
            self._stands(node, part, term)
        part.term, part.vote = term, vote

    def _stands(self, node: str, part: _Part, term: int) -> None:
        promised = {node} | self._promised.get((node, term), set())
        if (node, term) in self._successors or sum(voter in promised for voter in part.voters) > len(part.voters) // 2:
            return
        who = ", ".join(sorted(promised - {node})) or "nobody"
        because = f"{node} stood for election in term {term}, and of {', '.join(part.voters)} it had votes promised by"
        self._break("unasked-term", (node,), f"{because} {who}")

    def _promises(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        self._promised.setdefault((fields["candidate"], fields["term"]), set()).add(node)

    def _hands_over(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        self._successors.add((fields["successor"], fields["term"] + 1))

    def _voted_in(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        at, voters = self._membership_at(fields["last"][1])
        if part.changed <= max(at, part.begin) and 2 * sum(voter in voters for voter in fields["by"]) <= len(voters):
            because = f"{node} began to lead in term {fields['term']} by votes of {', '.join(fields['by'])}, though"
            self._break("foreign-votes", (node,), f"{because} {', '.join(voters)} vote since entry {at}")

    def _leads(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        part.leads = term = fields["term"]
        first = self._leaders.setdefault(term, node)
        if first != node:
            self._break("two-leaders", (first, node), f"both {first} and {node} led in term {term}")

    def _leads_no_more(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        part.leads = None

    # Who votes --------------------------------------------------------------------------------------------------

    def _membership_at(self, index: int) -> tuple[int, tuple[str, ...]]:
        """Of the committed ones, as of this entry: since which entry it holds, and who votes."""
        return next(membership for membership in reversed(self._memberships) if membership[0] <= index)

    def _goes_by(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        index, voters = int(fields["index"]), tuple(fields["voters"])
        if part.leads is not None and index > part.changed > part.committed:
            because = f"{node} appended a change of the membership at {index}, and the one at {part.changed} was not"
            self._break("overlapping-changes", (node,), f"{because} committed")
        part.voters, part.changed = voters, index
        if index > self._decided:
            part.changes.append((index, voters))
            return
        since, agreed = self._membership_at(index)
        if index and voters != agreed and self._is_committed(part, index):
            because = f"{node} goes by the voters {', '.join(voters)} as of entry {index}, and since {since} these are"
            self._break("forgotten-members", (node,), f"{because} {', '.join(agreed)}")

    def _is_committed(self, part: _Part, index: int) -> bool:
        """Whether what this node has at an index is what was committed there, as far as that is known."""
        stands, committed = part.log.get(index), self._committed.get(index)
        known = index not in part.doubtful and committed is not None and committed[0] == stands
        return index <= part.begin or known

    # The log ----------------------------------------------------------------------------------------------------

    def _written(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        index, checksum = int(fields["end"]), fields["checksum"]
        if part.cut:
            self._look_at_cut(node, part, index, checksum)
        part.log[index] = checksum
        part.doubtful.discard(index)
        part.end = index

    def _truncated(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        part.shorten(int(fields["to"]))

    def _deleted(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        """A snapshot took the place of all up to there."""
        to = int(fields["to"])
        cut, part.cut = part.cut, {}
        if not part.end:
            # It is the leader's, and what it had durably stays so until this one is.
            part.durable = min(part.was_durable, part.committed)
        self._look_for_committed(node, {index: checksum for index, checksum in cut.items() if index > to})
        for index in range(part.begin + 1, min(to, part.end) + 1):
            part.log.pop(index, None)
            part.doubtful.discard(index)
        part.begin, part.end = max(part.begin, to), max(part.end, to)

    def _look_at_cut(self, node: str, part: _Part, index: int, checksum: int) -> None:
        cut, part.cut = part.cut, {}
        if cut.get(index) == checksum:
            because = f"{node} cut its log at {index}, where the same entry stands again, up to {max(cut)}"
            self._break("needless-cut", (node,), because)
        self._look_for_committed(node, cut)

    def _look_for_committed(self, node: str, cut: Mapping[int, int]) -> None:
        for index, checksum in cut.items():
            first = self._committed.get(index)
            if first is not None and first[0] == checksum:
                because = f"{node} cut its log at {index}, though {first[1]} took this entry for committed"
                self._break("committed-cut", (node,), because)
                return

    def _commits(self, node: str, part: _Part, fields: Mapping[str, Any]) -> None:
        index, before = int(fields["offset"]), part.committed
        part.committed = index
        if index < before:
            because = f"{node} had taken all up to {before} for committed, then up to {index}"
            self._break("committed-back", (node,), because)
        if index > part.end:
            because = f"{node} took all up to {index} for committed, and its log ended at {part.end}"
            self._break("beyond-log", (node,), because)
        for at in range(max(before, part.begin) + 1, index + 1):
            self._commits_one(node, at, part.log.get(at))
        self._decided = max(self._decided, index)
        self._take_over_changes(part)
        if part.leads is not None and index > before and (holders := self.too_few(node, index)):
            because = f"{node} took entry {index} for committed, which of {', '.join(part.voters)} had durably"
            self._break("unheld-commit", (node,), f"{because} {', '.join(holders)}")

    def _commits_one(self, node: str, index: int, checksum: int | None) -> None:
        if checksum is None or index in self._part(node).doubtful:
            return
        known, first = self._committed.setdefault(index, (checksum, node))
        if known != checksum:
            because = f"{first} and {node} took different entries at {index} for committed"
            self._break("diverging-commits", (first, node), because)

    def _take_over_changes(self, part: _Part) -> None:
        while part.changes and part.changes[0][0] <= part.committed:
            change = part.changes.pop(0)
            if change[0] > self._memberships[-1][0]:
                self._memberships.append(change)


_EVENTS: Mapping[str, Callable[[RaftGroupInvariants, str, _Part, Mapping[str, Any]], None]] = {
    ENDED: RaftGroupInvariants._ended,
    "recovered": RaftGroupInvariants._recovered,
    "term": RaftGroupInvariants._term,
    "pre_vote": RaftGroupInvariants._promises,
    "hands_over": RaftGroupInvariants._hands_over,
    "voted_in": RaftGroupInvariants._voted_in,
    "leader": RaftGroupInvariants._leads,
    "follower": RaftGroupInvariants._leads_no_more,
    "membership": RaftGroupInvariants._goes_by,
    "written": RaftGroupInvariants._written,
    "truncated": RaftGroupInvariants._truncated,
    "deleted": RaftGroupInvariants._deleted,
    "confirmed": RaftGroupInvariants._commits,
}
