"""A leader's dispatcher and a follower's handler on a stage: logs are given, and what is said is written down.

A log is written by its terms, `0-3:1 4-5:3` are entries 0 to 3 of term 1 and 4 to 5 of term 3. Entries of one index and
term are the same, unless their log has a mark: `6-8:1*`. Each has a file of its own, so a log may begin anew anywhere.
"""

from __future__ import annotations

from typing import Any

from system_under_test.dledger.core import CoreParts, Member
from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.event import Answered, Effects, HardState, Sent, Tick
from system_under_test.dledger.message import PushAnswer, PushRequest, VoteAnswer, VoteResult
from system_under_test.dledger.state import GroupConfig, Role, State
from tests.unit.system_under_test.dledger.dledger_cluster import FILE_BYTES, ListLog

SECOND = 1_000_000_000


class FileLog(ListLog):
    """Each entry in a file of its own."""

    def next_position(self, size: int) -> int:
        return self.entries[-1].position + FILE_BYTES if self.entries else 0


def entry(index: int, term: int, mark: str = "") -> Entry:
    return Entry(index, term, index * FILE_BYTES, f"{index}:{term}{mark}".encode())


def log(text: str) -> FileLog:
    entries: list[Entry] = []
    for part in text.split():
        span, term = part.split(":")
        first, last = span.split("-")
        mark = "*" if term.endswith("*") else ""
        entries += [entry(index, int(term.strip("*")), mark) for index in range(int(first), int(last) + 1)]
    return FileLog(entries)


def written(own: ListLog) -> str:
    """As `log` reads it."""
    spans: list[list[object]] = []
    for one in own.entries:
        mark = "*" if one.body.endswith(b"*") else ""
        if spans and spans[-1][2:] == [one.term, mark]:
            spans[-1][1] = one.index
        else:
            spans.append([one.index, one.index, one.term, mark])
    return " ".join(f"{first}-{last}:{term}{mark}" for first, last, term, mark in spans) or "nothing"


def state_of(node: str, text: str, term: int, members: tuple[str, ...], **options: Any) -> State:
    config = GroupConfig(node=node, members=members, **options)
    own = log(text)
    return State(config=config, log=own, hard_state=HardState(term), committed=NOTHING, now_ns=SECOND)


def member(text: str, term: int = 1, *, parts: CoreParts | None = None, **options: Any) -> Member:
    """Of a, b and c it is a, and has voted for b."""
    config = GroupConfig(node="a", members=("a", "b", "c"), **options)
    return Member(config, log(text), HardState(term, "b"), parts=parts)


def won(own: Member) -> Effects:
    """Of the step in which it wins: both others answer at once, and vote for it once they are asked in its own term."""
    now_ns = 0
    while True:
        now_ns = max(now_ns, own.deadline_ns)
        for sent in own.step(Tick(SECOND), now_ns).votes:
            has_voted = own.state.hard_state.vote != "a"
            result = VoteResult.REJECT_ALREADY_VOTED if has_voted else VoteResult.ACCEPT
            effects = own.step(Answered(sent.peer, sent.number, VoteAnswer(result, own.state.term)), now_ns)
            if result is VoteResult.ACCEPT:
                return effects


class Stage:
    """L leads in the term of its last entry, and F follows."""

    def __init__(
        self,
        leader: str,
        follower: str,
        *,
        committed: int = NOTHING,
        term: int | None = None,
        batch_bytes: int = 0,
        compare_by_term: bool = False,
        understands_batches: bool = True,
        parts: CoreParts | None = None,
    ) -> None:
        parts = parts or CoreParts()
        members = "F", "L", "M"
        term = log(leader).end_term if term is None else term
        self.leader = state_of("L", leader, term, members, batch_bytes=batch_bytes, compare_by_term=compare_by_term)
        self.leader.role, self.leader.leader = Role.LEADER, "L"
        self.leader.committed = committed
        self.quorum = parts.quorum(self.leader)
        self.quorum.begin()
        self.dispatcher = parts.dispatcher(self.leader, self.quorum, "F")
        self.follower = state_of("F", follower, term, members, understands_batches=understands_batches)
        self.handler = parts.handler(self.follower)
        self.transcript: list[str] = []

    def sends(self) -> list[Sent]:
        """What the dispatcher sends now."""
        self.leader.effects = Effects(0)
        self.dispatcher.go_on()
        return self.leader.effects.requests

    def obeys(self, request: PushRequest) -> PushAnswer:
        """What the follower says to it, written down."""
        code = self.handler.obey(request)
        own = self.follower.log
        what = f"{request.kind.value} {request.entries[0].index if request.entries else request.committed}"
        if len(request.entries) > 1:
            what += f"..{request.entries[-1].index}"
        self.transcript.append(f"{what}: {code.name}, F has {written(own)}")  # type: ignore[arg-type]
        return PushAnswer(code, self.follower.term, own.begin, own.end)

    def run(self) -> list[str]:
        """Until nothing is left to be said but that all is well, once a second."""
        while not self.transcript or not self.transcript[-1].startswith("COMMIT"):
            requests = self.sends()
            if not requests:
                self.leader.now_ns += SECOND
            for sent in requests:
                assert isinstance(sent.request, PushRequest)
                self.dispatcher.take(sent.number, self.obeys(sent.request))
        return self.transcript
