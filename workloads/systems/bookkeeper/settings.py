"""What can be set of BookKeeper on trial."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated

from harness.bounds import Bounds
from harness.errors import UsageError
from system_under_test.bookkeeper.ledger.metadata import Placement, Quorums
from workloads.systems.java import require_release

METADATA = "metadata"
BOOKIES = "bookies"
BROKERS = "brokers"
"""The groups of nodes."""
METADATA_NODES = ("m1", "m2", "m3")
OURS_ALONE = ("placement", "check_entries_s", "readers", "explicit_lac_s")
"""What a release of BookKeeper has no setting for, or what is not put on trial of one."""


class Readers(Enum):
    """Where consumers read."""

    OWNER = "owner"
    """They ask the broker that owns the partition, which sees at once what is acknowledged."""
    BOOKIES = "bookies"
    """They ask bookies, which hear of that by a later entry, an explicit LAC, or the close."""


@dataclass(frozen=True, kw_only=True)
class BookkeeperSettings:
    bookies: Annotated[int, Bounds(2, 9)] = 5
    brokers: Annotated[int, Bounds(1, 4)] = 2
    """Each may own any partition; who owns one has its key in the metadata store."""
    ensemble: Annotated[int, Bounds(1, 9)] = 3
    """E: so many bookies take the entries of a ledger in turns."""
    write_quorum: Annotated[int, Bounds(1, 9)] = 3
    """Qw: so many of them get each entry."""
    ack_quorum: Annotated[int, Bounds(1, 9)] = 2
    """Qa: so many must have it before it is acknowledged."""
    placement: Placement = Placement.FRAGMENT
    """Bookies are counted round the ensemble from the fragment's first entry, or from entry 0 as BookKeeper does it."""
    partitions: Annotated[int, Bounds(1, 8)] = 1
    """So many logs there are, each a queue of the workload `log`."""
    roll_entries: Annotated[int, Bounds(2, 1_000_000)] = 100
    """A ledger of a partition has so many entries before the next one follows it."""
    readers: Readers = Readers.OWNER
    explicit_lac_s: Annotated[float, Bounds(0, 60)] = 0.0
    """How often bookies hear of what is acknowledged, where no later entry has carried it to them; 0: never."""
    journal_sync: bool = True
    """Whether an entry is on the disk before a bookie acknowledges it."""
    session_timeout_s: Annotated[float, Bounds(0.5, 60)] = 6.0
    """A process of which the metadata store has not heard for so long owns nothing any more."""
    open_grace_s: Annotated[float, Bounds(0.1, 300)] = 3.0
    """So long repair leaves the last entries of a ledger that is written to its writer; 30 s is BookKeeper's own."""
    check_entries_s: Annotated[float, Bounds(0, 86_400)] = 0.0
    """How often repair looks at each copy of each entry; 0: never, as BookKeeper does unless it is set."""
    time_scale: Annotated[float, Bounds(0.05, 10)] = 1.0
    """Times for which nodes wait for answers and elections are multiplied by this, and those of sessions are not."""
    release: str = ""
    """A release of BookKeeper, as 4.17.2, that is on trial; empty for the BookKeeper that comes with Stormproof."""
    strict: bool = False
    """Judge as if nothing could be lost."""

    def __post_init__(self) -> None:
        try:
            _ = self.quorums
        except ValueError as error:
            raise UsageError(f"settings ensemble, write_quorum, ack_quorum of bookkeeper: {error}") from None
        if self.bookies < self.ensemble:
            least = f"at least {self.ensemble}, as many as the ensemble has"
            raise UsageError(f"setting bookies of bookkeeper takes {least}, got {self.bookies}")
        if self.release:
            self._require_original_possible()

    def _require_original_possible(self) -> None:
        require_release(self.release, of="BookKeeper", such_as="4.17.2")
        for field in fields(self):
            if field.name in OURS_ALONE and getattr(self, field.name) != field.default:
                raise UsageError(f"{field.name} is no setting of the public BookKeeper; leave it out, or release")

    @property
    def quorums(self) -> Quorums:
        return Quorums(ensemble=self.ensemble, write=self.write_quorum, ack=self.ack_quorum)

    @property
    def bookie_names(self) -> tuple[str, ...]:
        return tuple(f"b{number}" for number in range(1, self.bookies + 1))

    @property
    def broker_names(self) -> tuple[str, ...]:
        return tuple(f"p{number}" for number in range(1, self.brokers + 1))
