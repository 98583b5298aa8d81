"""What the cores of repair are stepped with, and what their steps ask for, beside what those of ledgers have.

Effects come as a list and are carried out in its order. Effects of later steps never overtake those of earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    LacAnswered,
    Publish,
    Published,
    ReadAnswered,
    ReadEntry,
)
from system_under_test.bookkeeper.repair.marks import Mark


@dataclass(frozen=True, slots=True)
class Living:
    """Those that live now."""

    available: tuple[str, ...]
    writable: tuple[str, ...]
    """Those of them that may be chosen, in the order in which they are to be chosen: freshly drawn."""


class Outcome(Enum):
    """How a round of repair ended."""

    DONE = "nothing is missing that anybody has"
    CHANGED = "something was copied, published, or found changed: look again"
    POSTPONED = "its writer may see to its open fragment itself"
    STUCK = "a bookie that is needed does not answer, or there is none"


# -- events


@dataclass(frozen=True, slots=True)
class RecoveryEnded:
    """What came of a `Recover`: whether the ledger is closed."""

    is_closed: bool


LookEvent = ReadAnswered | LacAnswered
RepairEvent = ReadAnswered | LacAnswered | AddAnswered | Published | RecoveryEnded


# -- effects


@dataclass(frozen=True, slots=True)
class AskLac:
    """To be answered by `LacAnswered`. It fences nothing."""

    bookie: str


@dataclass(frozen=True, slots=True)
class Copy:
    """An add that passes fences, of an entry as another bookie has it; to be answered by `AddAnswered`."""

    bookie: str
    entry: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Recover:
    """Recover the ledger; to be answered by `RecoveryEnded`."""


@dataclass(frozen=True, slots=True)
class EntryLost:
    """No bookie has the entry, and none that may still have it is missing."""

    entry: int


@dataclass(frozen=True, slots=True)
class RoundEnded:
    outcome: Outcome


LookEffect = ReadEntry | AskLac
RepairEffect = ReadEntry | AskLac | Copy | Publish | Recover | EntryLost | RoundEnded


# -- what the auditor asks for


@dataclass(frozen=True, slots=True)
class ReadLedgers:
    """All of them, with the marks that there are; to be answered by `LedgersRead`."""


@dataclass(frozen=True, slots=True)
class LookAtLedger:
    """Find out which bookies lack entries; to be answered by `Looked`."""

    ledger: int
    every_entry: bool


@dataclass(frozen=True, slots=True)
class SetMark:
    """Mark the ledger, or mark it anew with what is known more."""

    ledger: int
    mark: Mark


AuditorEffect = ReadLedgers | LookAtLedger | SetMark
