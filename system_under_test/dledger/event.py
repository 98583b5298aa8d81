"""What a member of a DLedger group is stepped with, and what a step asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

from system_under_test.dledger.entry import Entry
from system_under_test.dledger.message import AnyAnswer, Code, Request


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed. To be stepped at `deadline_ns`, or earlier at will."""

    backoff_ns: int
    """Freshly drawn: how long to wait before the next round of votes, if there is to be one."""


@dataclass(frozen=True, slots=True)
class Receive:
    """A request, to be answered under this token, which is the driver's."""

    token: int
    request: Request


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request that effects asked to be sent; None if it did not come in time, or cannot come."""

    peer: str
    number: int
    answer: AnyAnswer | None


@dataclass(frozen=True, slots=True)
class Connected:
    """Requests to this peer go by a new connection: there may be another process behind it."""

    peer: str


@dataclass(frozen=True, slots=True)
class Append:
    """From a client: put these behind the last entry."""

    token: int
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Persisted:
    """All that effects up to this sequence number asked to be kept is durable."""

    sequence: int


Event = Tick | Receive | Answered | Connected | Append | Persisted


@dataclass(frozen=True, slots=True)
class HardState:
    term: int = 0
    vote: str | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """What came of an Append. SUCCESS: a majority has the entries. Before anything was written: NOT_LEADER, DISK_FULL,
    LEADER_PENDING_FULL, LEADER_TRANSFERRING, REQUEST_WITH_EMPTY_BODYS, UNEXPECTED_ARGUMENT for a body that is too long.
    They may or may not stay: TERM_CHANGED, WAIT_QUORUM_ACK_TIMEOUT."""

    token: int
    code: Code
    index: int
    """The index of the last entry, or NOTHING."""
    position: int
    """The position of the last entry, or NOTHING."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to a peer. `Answered` refers to it by its number."""

    peer: str
    number: int
    request: Request


@dataclass(slots=True)
class Effects:
    """What one step asks for, beside what it wrote to the log. Effects of later steps never overtake those of earlier
    ones."""

    sequence: int
    """Counts steps; `Persisted` refers to it."""
    hard_state: HardState | None = None
    """Term and vote, which are to be made durable."""
    kept: int | None = None
    """The last index up to which the log is as it was, NOTHING if it began anew; None if it was not written to or cut,
    which is to be made durable."""
    entries: list[Entry] = field(default_factory=list)
    """Entries that were put behind that."""
    requests: list[Sent] = field(default_factory=list)
    """Requests that are to be sent at once."""
    votes: list[Sent] = field(default_factory=list)
    """Requests that are to be sent once hard states of this step and all before are durable."""
    answers: list[tuple[int, AnyAnswer]] = field(default_factory=list)
    """Answers, by token, that are to be sent at once."""
    granted: list[tuple[int, AnyAnswer]] = field(default_factory=list)
    """Votes that are to be sent once hard states of this step and all before are durable."""
    acknowledged: list[tuple[int, AnyAnswer]] = field(default_factory=list)
    """Answers that are to be sent, where acknowledgements are durable, once the log is as it was after this step."""
    appended: list[Appended] = field(default_factory=list)
    took_over: int | None = None
    """The leader's last index when it asked this member to lead, which stands in its place now."""

    @property
    def wrote(self) -> bool:
        return self.kept is not None
