"""The demands of each model, as the verification reads them.

A serial order explains every read by the last write before it; a snapshot order does so for begins and commits. A
commit order keeps reads, the order that lists show (and sessions), and puts u before w if r, which reads a key from w,
has seen u, and u wrote that key, too. The models with commit orders differ in what has been seen, which is a path of
steps. An order of writes keeps the order that lists show (and sessions). What a transaction reads of a key after its
own write is only judged by the models that are atomic; a list read so shows the order of versions at all models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Family(Enum):
    WRITES = "writes"
    """Nothing but versions has an order."""
    SERIAL = "serial"
    SNAPSHOT = "snapshot"
    COMMITS = "commits"


class ExternalOrder(Enum):
    """The order known from elsewhere than reads and writes that the model's order keeps."""

    NOTHING = "nothing"
    SESSIONS = "sessions"
    REALTIME = "realtime"


class Seen(Enum):
    """What a reader has seen, at models with commit orders."""

    NOTHING = "nothing"
    EARLIER_READS = "earlier reads"
    """A read of another key from u earlier in the same transaction."""
    UPDATES = "updates"
    """All versions before the reader of a key that it writes."""
    PATHS = "paths"
    """A path of the steps in `Demand.paths`."""
    CAUSES = "causes"
    """Any path of reads and sessions."""
    VERSIONS = "versions"
    """Any path of reads, sessions and versions that replaced others."""


READ, SESSION = "read", "session"


@dataclass(frozen=True, kw_only=True)
class Demand:
    family: Family
    keeps: ExternalOrder = ExternalOrder.NOTHING
    seen: Seen = Seen.NOTHING
    paths: tuple[tuple[str, ...], ...] = ()
    """The paths by which a reader has seen a writer. A step of a session stands for any number of them."""
    forgets_own_writes: bool = False
    """Whether nothing is demanded of what a transaction reads of a key that it has written."""

    @property
    def sees_sessions(self) -> bool:
        """Whether a session shows something, even where the order need not keep to it."""
        return any(SESSION in path for path in self.paths)

    @property
    def atomic(self) -> bool:
        """Whether a transaction that reads one key of another's sees all of them, the same at every look, and what it
        wrote itself."""
        all_is_seen = self._has_states or self.seen in (Seen.CAUSES, Seen.VERSIONS) or (READ,) in self.paths
        return all_is_seen and not self.forgets_own_writes

    @property
    def forbids_lost_updates(self) -> bool:
        return self._has_states or self.seen in (Seen.UPDATES, Seen.VERSIONS)

    @property
    def _has_states(self) -> bool:
        """Whether what a transaction reads is the state at some moment."""
        return self.family in (Family.SERIAL, Family.SNAPSHOT)


def _commits(keeps: ExternalOrder, seen: Seen = Seen.PATHS, *paths: tuple[str, ...]) -> Demand:
    return Demand(family=Family.COMMITS, keeps=keeps, seen=seen, paths=paths)


DEMANDS: Mapping[str, Demand] = {
    "read-uncommitted": Demand(family=Family.WRITES),
    "strong-session-read-uncommitted": Demand(family=Family.WRITES, keeps=ExternalOrder.SESSIONS),
    "PL-2": _commits(ExternalOrder.NOTHING, Seen.NOTHING),
    "strong-session-PL-2": _commits(ExternalOrder.SESSIONS, Seen.NOTHING),
    "read-committed": _commits(ExternalOrder.NOTHING, Seen.EARLIER_READS),
    "strong-session-read-committed": _commits(ExternalOrder.SESSIONS, Seen.EARLIER_READS),
    "cursor-stability": _commits(ExternalOrder.NOTHING, Seen.UPDATES),
    "read-atomic": _commits(ExternalOrder.NOTHING, Seen.PATHS, (READ,)),
    "strong-session-read-atomic": _commits(ExternalOrder.SESSIONS, Seen.PATHS, (READ,), (SESSION,)),
    "read-your-writes": _commits(ExternalOrder.NOTHING, Seen.PATHS, (SESSION,)),
    "monotonic-reads": _commits(ExternalOrder.NOTHING, Seen.PATHS, (READ, SESSION)),
    "monotonic-writes": _commits(ExternalOrder.SESSIONS, Seen.PATHS, (SESSION, READ)),
    "writes-follow-reads": _commits(ExternalOrder.NOTHING, Seen.PATHS, (READ, READ), (READ, SESSION, READ)),
    "pram": _commits(
        ExternalOrder.SESSIONS, Seen.PATHS, (SESSION,), (READ, SESSION), (SESSION, READ), (SESSION, READ, SESSION)
    ),
    "causal": _commits(ExternalOrder.SESSIONS, Seen.CAUSES),
    "consistent-view": Demand(family=Family.COMMITS, seen=Seen.VERSIONS, forgets_own_writes=True),
    "parallel-snapshot-isolation": _commits(ExternalOrder.NOTHING, Seen.VERSIONS),
    "strong-session-parallel-snapshot-isolation": _commits(ExternalOrder.SESSIONS, Seen.VERSIONS),
    "snapshot-isolation": Demand(family=Family.SNAPSHOT),
    "strong-session-snapshot-isolation": Demand(family=Family.SNAPSHOT, keeps=ExternalOrder.SESSIONS),
    "strong-snapshot-isolation": Demand(family=Family.SNAPSHOT, keeps=ExternalOrder.REALTIME),
    "repeatable-read": Demand(family=Family.SERIAL, forgets_own_writes=True),
    "serializable": Demand(family=Family.SERIAL),
    "strong-session-serializable": Demand(family=Family.SERIAL, keeps=ExternalOrder.SESSIONS),
    "strict-serializable": Demand(family=Family.SERIAL, keeps=ExternalOrder.REALTIME),
}
