"""Deletes files of the log that have expired, and, where the disk runs full, the oldest ones all the same.

A file expires once its last message is older than the time for which messages are kept; it is deleted in certain hours
of the day, or as soon as the disk is fuller than one share. Beyond a second share the oldest files go whatever their
age: that breaks the promise to keep messages for so long, and can be switched off. The caller that deletes
(`MessageStore`) keeps the last file, and all that is not flushed, confirmed and dispatched, so nothing goes that a
member of the SyncStateSet has not acknowledged. Consumers are not asked: who comes later than that finds the queue
beginning later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from system_under_test.node.settings import Settings, flag, integer, seconds, setting
from system_under_test.runtime.host import DiskFull, Host

HOURS = 24
HOUR_NS = 3_600_000_000_000


@setting
def _kept_s(settings: Settings, name: str) -> float:
    kept_hours = settings.integer("fileReservedTime", 72)
    return settings.seconds_from_ms(name, kept_hours * 3_600_000, minimum_ms=0)


@setting
def deletion_hours(settings: Settings, name: str) -> frozenset[int]:
    hours = settings.text(name, "04")
    if not all(hour.isascii() and hour.isdigit() and int(hour) < HOURS for hour in hours.split(";")):
        raise ValueError(f"{name}: expected hours of the day, 00 to 23, with semicolons between, got {hours!r}")
    return frozenset(int(hour) for hour in hours.split(";"))


@setting
def _share(settings: Settings, name: str, default: int, *, minimum: int, maximum: int) -> float:
    return settings.integer(name, default, minimum=minimum, maximum=maximum) / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRules:
    """When which files are deleted."""

    interval_s: float = seconds("cleanResourceInterval", 10_000)
    """So often the cleaner looks."""
    kept_s: float = _kept_s("fileReservedTimeMillis")
    """How long a file is kept once it is full."""
    hours: frozenset[int] = deletion_hours("deleteWhen")
    """Hours of the day, UTC, in which expired files are deleted."""
    full_share: float = _share("diskMaxUsedSpaceRatio", 75, minimum=10, maximum=95)
    """Share of the disk in use beyond which expired files are deleted in any hour."""
    forced_share: float = _share("diskSpaceCleanForciblyRatio", 85, minimum=30, maximum=99)
    """Share of the disk in use beyond which files are deleted whatever their age, where `is_forced`."""
    is_forced: bool = flag("cleanFileForciblyEnable", True)
    files_at_once: int = integer("deleteFileBatchMax", 10, minimum=1)
    """How many files are deleted at most, each time the cleaner looks."""


class FileAge(NamedTuple):
    """A file of the log that is full, and for how long."""

    end: int
    age_s: float


class Deletion(NamedTuple):
    """Delete what is before `end`."""

    end: int
    is_forced: bool


def files_to_delete(files: Sequence[FileAge], rules: CleaningRules, *, hour: int, used_share: float) -> Deletion | None:
    """`files` are the full ones, oldest first. A file never goes before one that is older."""
    is_forced = rules.is_forced and used_share > rules.forced_share
    if not is_forced and hour not in rules.hours and used_share <= rules.full_share:
        return None
    end = None
    for file in files[: rules.files_at_once]:
        if not is_forced and file.age_s < rules.kept_s:
            break
        end = file.end
    return None if end is None else Deletion(end, is_forced)


class CleanedStore(Protocol):
    """What the cleaner needs of a store."""

    async def full_files(self, elapsed_s: Callable[[], float]) -> list[FileAge]:
        """The full files, oldest first. `elapsed_s` is asked when they are looked at, which may be after a wait: how
        many seconds after the last time. Raises StorageFailed."""

    async def delete_files_before(self, offset: int, *, is_forced: bool = False) -> None:
        """As far as that is safe. Raises StorageFailed, DiskFull."""


class FileCleaner:
    def __init__(self, host: Host, store: CleanedStore, rules: CleaningRules) -> None:
        self._host = host
        self._store = store
        self._rules = rules
        self._looked_ns = 0

    async def run(self) -> None:
        """Until cancelled. Raises StorageFailed."""
        self._looked_ns = self.now_ns()
        while True:
            await self._host.clock.sleep(self._rules.interval_s)
            try:
                await self._look()
            except DiskFull as error:
                # What cannot be noted is not deleted: a restart would look for the files that are gone.
                self._host.log("cleaning_skipped", reason=str(error))

    def now_ns(self) -> int:
        """The time by which files grow older."""
        return self._host.clock.monotonic_ns()

    def _elapsed_s(self) -> float:
        before_ns, self._looked_ns = self._looked_ns, self.now_ns()
        return (self._looked_ns - before_ns) / 1e9

    async def _look(self) -> None:
        files = await self._store.full_files(self._elapsed_s)
        hour = self._host.clock.wall_ns() // HOUR_NS % 24
        found = files_to_delete(files, self._rules, hour=hour, used_share=self._host.disk.used_share())
        if found is not None:
            await self._store.delete_files_before(found.end, is_forced=found.is_forced)
