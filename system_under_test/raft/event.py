"""What Raft's core is stepped with, and what a step asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

from system_under_test.raft.membership import Change
from system_under_test.raft.message import Append, Entry, HardState, Message, SnapshotChunk, TimeoutNow
from system_under_test.raft.snapshot import Piece, Snapshot, SnapshotFile


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed. To be stepped at `deadline_ns`, or earlier at will."""

    election_timeout_ns: int
    """Freshly drawn; taken when the election timer starts the next time."""


@dataclass(frozen=True, slots=True)
class Receive:
    message: Message


@dataclass(frozen=True, slots=True)
class Propose:
    """Only for a leader that is not about to hand over: append these, in this order, as entries of its term."""

    data: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Only for a leader: tell when what is committed now may be read. Tokens are the driver's."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Persisted:
    """All that effects up to this sequence number asked to be kept is durable."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Compact:
    """The state machine has applied all up to `index`, and gave this for its state: the log may begin behind it."""

    index: int
    data: bytes
    files: tuple[SnapshotFile, ...] = ()
    base_index: int | None = None
    """The log is to begin behind this entry, if it does not yet; None: behind all that are applied."""


@dataclass(frozen=True, slots=True)
class Apply:
    """More of what is committed may be handed out to be applied. To be stepped soon while `applied` is less than
    `commit`, but not at once: messages come first."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Only for a leader: bring this one up to date and have it stand for election, or give up after some time."""

    to: str


@dataclass(frozen=True, slots=True)
class ChangeMembership:
    """Only for a leader for which `refusal_of` this change is None."""

    change: Change


Event = Tick | Receive | Propose | Read | Persisted | Compact | Apply | Transfer | ChangeMembership


@dataclass(slots=True)
class Effects:
    """What one step asks for. Effects of later steps never overtake those of earlier ones."""

    sequence: int
    """Counts steps; `Persisted` refers to it."""
    hard_state: HardState | None = None
    """Must be made durable."""
    begins_receiving: bool = False
    """Files of a snapshot are about to come, into a place of their own: what may be there is removed first."""
    pieces: list[Piece] = field(default_factory=list)
    """Are written to these files, before `snapshot` is. They need not be durable before it."""
    snapshot: Snapshot | None = None
    """Must be made durable, with its files, in place of the one before. What was durable before stays so until this
    is."""
    log_base: int | None = None
    """With a snapshot: up to this entry the log is not needed any more once the snapshot is durable. None: it does not
    lead to the snapshot, and is empty behind it from now on; there are no entries in the same step."""
    entries: list[Entry] = field(default_factory=list)
    """Must be written to the log and made durable. The log ends before the first of them: what is there from its index
    on is cut, in the same write."""
    appends: list[Append | SnapshotChunk | TimeoutNow] = field(default_factory=list)
    """Are sent at once, in parallel to the own fsync: a leader counts itself only once `Persisted` says so."""
    messages: list[Message] = field(default_factory=list)
    """May be sent only when hard state, snapshot and entries of this step and all before are durable, for they tell
    others that they are: a vote, the request for one, an acknowledgement."""
    restored: Snapshot | None = None
    """It and its files become the state, before `committed` is applied; no need to wait for the own disk."""
    committed: list[Entry] = field(default_factory=list)
    """Are applied, in order; no need to wait for the own disk, as a majority has them. Those of one step are so many
    as can be applied in one go; `Apply` asks for more."""
    reads: list[int] = field(default_factory=list)
    """Tokens whose reads may be served after `committed` of this step is applied."""
    lost_reads: list[int] = field(default_factory=list)
    """Tokens that will not be served: no leader, or none any more."""

    @property
    def must_persist(self) -> bool:
        return self.hard_state is not None or self.snapshot is not None or bool(self.entries)
