"""What can be set of a group on trial."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated, Protocol

from harness.bounds import Bounds
from harness.errors import UsageError
from workloads.systems.java import require_release

OURS_ALONE = ("ack_durable", "begins_as_version")
"""What the public library has no setting for."""

NEWEST_VERSION = 2


class GroupOnTrial(Protocol):
    """What is asked of a group's settings, whether it is on trial by itself or beneath something else."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its members' nodes."""

    @property
    def store(self) -> Store: ...

    @property
    def ack_durable(self) -> bool: ...

    @property
    def preferred(self) -> int:
        """The number of the member that is to lead if it can; 0: none."""


class Store(Enum):
    FILE = "file"
    MEMORY = "memory"


@dataclass(frozen=True, kw_only=True)
class DledgerSettings:
    members: Annotated[int, Bounds(3, 5)] = 3
    store: Store = Store.FILE
    ack_durable: bool = False
    """Whether a member counts only once it has synced what it acknowledges."""
    batch_push: bool = False
    """Whether the leader pushes several entries at once."""
    begins_as_version: Annotated[int, Bounds(1, 2)] = 2
    """Members of version 1 push and take single entries alone, until the nemesis upgrades them to version 2."""
    preferred: Annotated[int, Bounds(0, 5)] = 0
    """The number of the member that is to lead if it can, and 0 where none is."""
    time_scale: Annotated[float, Bounds(0.02, 10)] = 0.25
    """Times of the protocol are multiplied by this; those in which answers must come, only if it is above 1."""
    release: str = ""
    """A release of the public library, as 0.3.1, that is on trial; empty for the DLedger that comes with Stormproof."""
    originals: Annotated[int, Bounds(0, 5)] = 0
    """So many members, the first ones, run the release, and the others ours. With 0 all run it."""
    strict: bool = False
    """Judge as if nothing could be lost."""

    def __post_init__(self) -> None:
        if self.members % 2 == 0:
            raise UsageError(f"setting members of dledger takes 3 or 5, got {self.members}")
        if self.preferred > self.members:
            raise UsageError(f"setting preferred of dledger takes 0 to {self.members}, got {self.preferred}")
        if self.store is Store.MEMORY and self.ack_durable:
            raise UsageError("ack_durable=true with store=memory: nothing in it is ever durable; leave one of them out")
        if self.originals > self.members:
            raise UsageError(f"setting originals of dledger takes 0 to {self.members}, got {self.originals}")
        if self.release:
            self._require_original_possible()
        elif self.originals:
            raise UsageError("originals is about a release of the public library: say which, by release=0.3.1")

    def _require_original_possible(self) -> None:
        require_release(self.release, of="DLedger", such_as="0.3.1")
        for field in fields(self):
            if field.name in OURS_ALONE and getattr(self, field.name) != field.default:
                raise UsageError(f"{field.name} is no setting of the public DLedger; leave it out, or release")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.members + 1))

    @property
    def public(self) -> tuple[str, ...]:
        """The members that run the public library."""
        return self.names[: self.originals or self.members] if self.release else ()


def roles_in(group: GroupOnTrial, leader: str | None) -> dict[str, tuple[str, ...]]:
    """Who plays which role, if it is known who leads. Spare are the leader and as many others as still leave a
    majority."""
    roles: dict[str, tuple[str, ...]] = {}
    if group.preferred:
        roles["preferred"] = (group.names[group.preferred - 1],)
    if leader is not None:
        others = [name for name in group.names if name != leader]
        roles |= {"leader": (leader,), "spare": (leader, *others[: len(others) // 2 - 1])}
    return roles
