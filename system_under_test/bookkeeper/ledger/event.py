"""What the cores of a ledger are stepped with, and what their steps ask for.

Effects come as a list and are carried out in its order. Effects of later steps never overtake those of earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata


class Reply(Enum):
    """What a bookie's answer says, or that none came."""

    OK = "ok"
    NO_SUCH_ENTRY = "no such entry"
    NO_SUCH_LEDGER = "no such ledger"
    FENCED = "fenced"
    READ_ONLY = "read-only"
    UNKNOWN = "unknown"
    """The bookie cannot say whether it ever had the entry, or what became of the one that was meant."""
    CORRUPT = "corrupt"
    GONE = "gone"
    """There is another bookie in its place: its disk, and what it had acknowledged, is no more."""
    SILENT = "silent"
    """No answer came in time, or none can come; the request may have had its effect."""

    @property
    def is_no(self) -> bool:
        """An explicit one: the bookie does not have it, and cannot have acknowledged it."""
        return self in (Reply.NO_SUCH_ENTRY, Reply.NO_SUCH_LEDGER)


class Reason(Enum):
    """Why something was refused, failed, or ended."""

    NOT_OPEN = "the ledger takes no entries any more"
    PENDING_FULL = "too many entries are pending"
    TOO_LONG = "the entry is too long"
    NOT_ENOUGH_BOOKIES = "not enough bookies"
    FENCED = "a bookie was fenced"
    OVERTAKEN = "somebody else changed the ledger's metadata"
    METADATA_SILENT = "the metadata store did not answer"
    TOO_MANY_CHANGES = "the ensemble had to change too often"
    UNDECIDED = "too few bookies answered"


# -- events


@dataclass(frozen=True, slots=True)
class Append:
    """From a client, which is answered under this token."""

    token: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """From a client: end the ledger with its last entry, once what is pending is acknowledged."""

    token: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Recovery is to begin."""


@dataclass(frozen=True, slots=True)
class AddAnswered:
    """The answer to a `SendAdd`."""

    bookie: str
    entry: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class LacDue:
    """It is time to look whether bookies have heard of the LAC."""


@dataclass(frozen=True, slots=True)
class LacWritten:
    """The answer to a `WriteLac`."""

    bookie: str
    lac: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class LacAnswered:
    """The answer to a `ReadLac`. With OK: the LAC that the bookie knows, NOTHING where it knows none."""

    bookie: str
    reply: Reply
    lac: int


@dataclass(frozen=True, slots=True)
class ReadAnswered:
    """The answer to a `ReadEntry`. With OK: the entry as it is on the disk."""

    bookie: str
    entry: int
    reply: Reply
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Writable:
    """The bookies that may be chosen now, all of them, in the order in which they are to be chosen: freshly drawn."""

    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """What came of a `Publish`: the version that the store gave it; None if the version did not fit, or if it is not
    known what came of it."""

    version: int | None


@dataclass(frozen=True, slots=True)
class MetadataRead:
    """What came of a `ReadMetadata`; None if there was no answer."""

    metadata: LedgerMetadata | None


WriterEvent = Append | Close | AddAnswered | LacDue | LacWritten | Writable | Published | MetadataRead
RecoveryEvent = Begin | AddAnswered | LacAnswered | ReadAnswered | Writable | Published | MetadataRead


# -- effects


@dataclass(frozen=True, slots=True)
class SendAdd:
    """To be answered by `AddAnswered`."""

    bookie: str
    entry: int
    data: bytes


@dataclass(frozen=True, slots=True)
class WriteLac:
    """To be answered by `LacWritten`."""

    bookie: str
    lac: int


@dataclass(frozen=True, slots=True)
class ReadLac:
    """To be answered by `LacAnswered`. The bookie is to fence the ledger first."""

    bookie: str


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """To be answered by `ReadAnswered`."""

    bookie: str
    entry: int
    fences: bool
    """The bookie is to fence the ledger first."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Put this in the store in place of the version that it names; to be answered by `Published`."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class ReadMetadata:
    """To be answered by `MetadataRead`."""


@dataclass(frozen=True, slots=True)
class Added:
    """The entry is acknowledged, and all before it are."""

    token: int
    entry: int


@dataclass(frozen=True, slots=True)
class Held:
    """Qa bookies have the entry, and it is not acknowledged: it is not settled where readers look for it."""

    entry: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing came of what the token stands for. `is_definite`: certainly, and nothing ever will."""

    token: int
    reason: Reason
    is_definite: bool
    entry: int | None = None
    """What was pushed for it, and may be at bookies; None where nothing was."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The ledger is closed with what was acknowledged."""

    token: int
    last_entry: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The handle is of no use any more."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Recovered:
    """The ledger is closed, by this recovery or by somebody else."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The ledger is not closed; recovery may begin anew."""

    reason: Reason


Effect = (
    SendAdd
    | WriteLac
    | ReadLac
    | ReadEntry
    | Publish
    | ReadMetadata
    | Added
    | Held
    | Failed
    | Closed
    | Ended
    | Recovered
    | GaveUp
)
