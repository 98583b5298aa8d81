"""Raft nodes on a stage: logs are given, one thing happens at a time, and what is said is written down.

Logs are written as in the paper, one digit an entry, its term: `1114455666`. Everything is durable at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from system_under_test.raft.core import Raft, Role, Timing
from system_under_test.raft.event import Compact, Event, Persisted, Propose, Receive, Tick
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    ChunkTaken,
    Entry,
    HardState,
    Message,
    PreVoteReply,
    PreVoteRequest,
    SnapshotChunk,
    VoteReply,
    VoteRequest,
)
from system_under_test.raft.snapshot import NOTHING

SECOND = 1_000_000_000
TIMING = Timing(heartbeat_ns=SECOND // 10, min_election_timeout_ns=SECOND, quorum_timeout_ns=2 * SECOND)


def entries(log: str) -> list[Entry]:
    return [Entry(index, int(term), b"" if not index else b"x") for index, term in enumerate(log, 1)]


class Stage:
    def __init__(
        self,
        logs: Mapping[str, str],
        terms: Mapping[str, int] | None = None,
        core: type[Raft] = Raft,
        timing: Timing = TIMING,
    ) -> None:
        self.now_ns = 0
        self.wire: list[Message] = []
        self.transcript: list[str] = []
        self.nodes = {
            name: core(
                node=name,
                membership=Membership(voters=dict.fromkeys(sorted(logs), "")),
                timing=timing,
                hard_state=HardState((terms or {}).get(name, int(log[-1]) if log else 0), None),
                snapshot=NOTHING,
                entries=entries(log),
                now_ns=0,
                election_timeout_ns=SECOND,
            )
            for name, log in logs.items()
        }

    def logs(self) -> dict[str, str]:
        return {name: "".join(str(entry.term) for entry in raft.log.entries) for name, raft in self.nodes.items()}

    def step(self, name: str, event: Event) -> None:
        raft = self.nodes[name]
        was = raft.role, raft.commit
        effects = raft.step(event, self.now_ns)
        self.wire += [*effects.appends, *effects.messages]
        if raft.role is not was[0] and raft.role is not Role.PRE_CANDIDATE:
            self.transcript.append(f"{name} {raft.role.value} of term {raft.term}")
        if effects.snapshot is not None:
            self.transcript.append(f"{name} keeps a snapshot up to {effects.snapshot.index}: {self.logs()[name]}")
        elif effects.entries:
            last = effects.entries[-1].index
            self.transcript.append(f"{name} writes {effects.entries[0].index}..{last}: {self.logs()[name]}")
        if effects.must_persist:
            self.step(name, Persisted(effects.sequence))
        if raft.commit > was[1] and not effects.must_persist:
            self.transcript.append(f"{name} commits {raft.commit}")

    def stand(self, name: str) -> None:
        """Its election timer runs out."""
        self.now_ns += 2 * SECOND
        self.step(name, Tick(SECOND))

    def beat(self, name: str) -> None:
        self.now_ns += SECOND // 10
        self.step(name, Tick(SECOND))

    def compact(self, name: str) -> None:
        self.step(name, Compact(self.nodes[name].commit, b"what the entries led to"))

    def propose(self, name: str) -> None:
        self.step(name, Propose((b"x",)))

    def deliver(self, wanted: Callable[[Message], bool] = lambda message: True) -> None:
        """Deliver, in order and as long as there is anything, what is wanted; the rest is lost."""
        while self.wire:
            message = self.wire.pop(0)
            if wanted(message):
                self.transcript.append(described(message))
                self.step(message.recipient, Receive(message))

    def between(self, *names: str) -> None:
        """Deliver what these say to each other; all else is lost."""
        self.deliver(lambda message: message.sender in names and message.recipient in names)

    def elect(self, name: str, *others: str) -> None:
        """This one stands, these hear and answer; what it appends on winning is still under way."""
        self.stand(name)
        voting = PreVoteRequest | PreVoteReply | VoteRequest | VoteReply
        kept: list[Message] = []
        while self.wire:
            message = self.wire.pop(0)
            if not isinstance(message, voting):
                kept.append(message)
            elif {message.sender, message.recipient} <= {name, *others}:
                self.step(message.recipient, Receive(message))
        self.wire = kept


def described(message: Message) -> str:
    to = f"{message.sender}→{message.recipient}"
    if isinstance(message, Append):
        carried = "".join(str(entry.term) for entry in message.entries) or "nothing"
        return f"{to} after {message.previous_index} (term {message.previous_term}): {carried}"
    if isinstance(message, AppendAccepted):
        return f"{to} equal up to {message.match}"
    if isinstance(message, AppendRefused):
        return f"{to} does not fit at {message.previous_index}; try {message.hint_index} (term {message.hint_term})"
    if isinstance(message, SnapshotChunk):
        end = message.offset + len(message.data)
        return f"{to} snapshot up to {message.index}: bytes {message.offset}..{end} of {message.size}"
    if isinstance(message, ChunkTaken):
        return f"{to} has {message.received} bytes of the snapshot up to {message.index}"
    if isinstance(message, VoteReply | PreVoteReply):
        return f"{to} {'yes' if message.granted else 'no'}"
    return f"{to} {type(message).__name__} for term {message.term}"
