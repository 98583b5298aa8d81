"""Repair as every bookie's process runs it: an auditor, if it is elected; a worker; and the way of this bookie out of
limbo.

All of it ends with the process, and the process with any of it or with its bookie: what counts on a bookie that died
must not go on in its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from system_under_test.bookkeeper.bookie.registration import AVAILABLE
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState, MalformedMetadata
from system_under_test.bookkeeper.repair.auditor import Auditor, AuditorEvent, BookiesSeen, Due, LedgersRead, Looked
from system_under_test.bookkeeper.repair.config import RepairConfig
from system_under_test.bookkeeper.repair.event import AuditorEffect, LookAtLedger, Outcome, ReadLedgers, SetMark
from system_under_test.bookkeeper.repair.marks import (
    AUDITOR,
    MARKS,
    MalformedMark,
    Mark,
    decode_mark,
    encode_mark,
    ledger_of,
    lock_key,
    mark_key,
)
from system_under_test.bookkeeper.repair.parts import RepairParts
from system_under_test.bookkeeper.repair.reports import RepairReports
from system_under_test.bookkeeper.repair.rounds import Rounds
from system_under_test.metadata.access import Conflict, MetadataAccess, MetadataError, Unavailable, Versioned
from system_under_test.metadata.settling import settled_create, settled_delete
from system_under_test.metadata.tenure import Tenure, take, try_to_take
from system_under_test.runtime.host import Host

PAUSE_S: Final = 0.5
"""How long a metadata store is left alone that gave no answer."""

T = TypeVar("T")


class LocalBookie(Protocol):
    """The bookie of this process, once it is started."""

    @property
    def identity(self) -> str: ...

    @property
    def in_limbo(self) -> list[int]:
        """The ledgers of which it may have lost what it acknowledged."""

    async def leave_limbo(self, ledger: int) -> None:
        """The ledger is closed, and what it should hold of it is there, or nowhere."""


class Grace:
    """How long the last fragments of ledgers have been as they are, as far as it was seen here."""

    def __init__(self, clock_ns: Callable[[], int], grace_ns: int) -> None:
        self._clock_ns = clock_ns
        self._grace_ns = grace_ns
        self._seen: dict[int, tuple[Fragment, int]] = {}

    def is_over(self, metadata: LedgerMetadata) -> bool:
        return self.left_ns(metadata) <= 0

    def left_ns(self, metadata: LedgerMetadata) -> int:
        now_ns, fragment = self._clock_ns(), metadata.last_fragment
        seen = self._seen.get(metadata.ledger)
        if seen is None or seen[0] != fragment:
            seen = self._seen[metadata.ledger] = fragment, now_ns
        return seen[1] + self._grace_ns - now_ns

    def forget(self, ledger: int) -> None:
        self._seen.pop(ledger, None)


class Repair:
    """`Service` of a bookie's process, to be started after the bookie."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataAccess,
        bookie: LocalBookie,
        rounds: Rounds,
        config: RepairConfig,
        *,
        parts: RepairParts,
        reports: RepairReports,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._bookie = bookie
        self._rounds = rounds
        self._config = config
        self._parts = parts
        self._reports = reports
        clock_ns = host.clock.monotonic_ns
        self._grace = Grace(clock_ns, int(config.grace_s * 1e9))
        self._resting: dict[int, tuple[int, int]] = {}
        """Marked ledgers that were tried: the version of the mark, and until when it is left alone."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        spawn = self._host.spawn
        self._tasks = [
            spawn(self._stand_for_election(), "auditor election"),
            spawn(self._work(), "repair"),
            spawn(self._leave_limbo(), "limbo"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """As often as it takes until the metadata store answers."""
        while True:
            try:
                return await ask()
            except Unavailable:
                await self._host.clock.sleep(PAUSE_S)

    # -- the auditor

    async def _stand_for_election(self) -> None:
        while True:
            tenure = await self._patiently(lambda: take(self._metadata, AUDITOR, self._bookie.identity))
            self._reports.auditor(is_elected=True)
            auditing = self._host.spawn(self._audit(), "auditor")
            try:
                await self._session_over(tenure)
            finally:
                auditing.cancel()
            self._reports.auditor(is_elected=False)

    async def _session_over(self, tenure: Tenure) -> None:
        await self._patiently(lambda: self._metadata.session_other_than(tenure.session))

    async def _audit(self) -> None:
        clock = self._host.clock
        auditor = self._parts.auditor(self._config.times(), clock.monotonic_ns())
        since = 0
        while True:
            left_s = max(0.0, (auditor.deadline_ns - clock.monotonic_ns()) / 1e9)
            try:
                since = await clock.within(left_s, self._metadata.wait(AVAILABLE, since)) if left_s else since
            except TimeoutError:
                pass
            except Unavailable:
                await clock.sleep(PAUSE_S)
                continue
            living = await self._patiently(self._rounds.living)
            await self._tell(auditor, BookiesSeen(frozenset(living.available)))
            await self._tell(auditor, Due())

    async def _tell(self, auditor: Auditor, event: AuditorEvent) -> None:
        for effect in auditor.step(event, self._host.clock.monotonic_ns()):
            await self._do(auditor, effect)

    async def _do(self, auditor: Auditor, effect: AuditorEffect) -> None:
        if isinstance(effect, ReadLedgers):
            ledgers = await self._patiently(self._rounds.all_ledgers)
            marks = {ledger: mark for ledger, (mark, _) in (await self._patiently(self._marks)).items()}
            await self._tell(auditor, LedgersRead(ledgers, marks))
        elif isinstance(effect, LookAtLedger):
            lacking = await self._patiently(lambda: self._lacking(effect))
            await self._tell(auditor, Looked(effect.ledger, effect.every_entry, lacking))
        else:
            await self._patiently(lambda: self._mark(effect))

    async def _lacking(self, effect: LookAtLedger) -> tuple[str, ...]:
        metadata = await self._rounds.ledger(effect.ledger)
        return () if metadata is None else await self._rounds.look(metadata, every_entry=effect.every_entry)

    async def _mark(self, effect: SetMark) -> None:
        """Once more does no harm: a worker looks once more."""
        key = mark_key(effect.ledger)
        while True:
            found = await self._metadata.get(key)
            try:
                if found is None:
                    await settled_create(self._metadata, key, encode_mark(effect.mark))
                else:
                    mark = decode_mark(found.value).with_more(effect.mark)
                    await self._metadata.put(key, encode_mark(mark), found.version)
            except Conflict:
                continue
            self._reports.marked(effect.ledger, effect.mark)
            return

    # -- the worker

    async def _marks(self) -> Mapping[int, tuple[Mark, Versioned]]:
        """By ledger. Raises Unavailable."""
        marks = {}
        for key, found in (await self._metadata.list(MARKS)).items():
            try:
                marks[ledger_of(key)] = decode_mark(found.value), found
            except MalformedMark as error:
                self._host.log("malformed_mark", key=key, reason=str(error))
        return marks

    async def _work(self) -> None:
        clock = self._host.clock
        since = 0
        while True:
            left_s = self._rest_s()
            try:
                since = await clock.within(left_s, self._metadata.wait(MARKS, since))
            except TimeoutError:
                pass
            except Unavailable:
                await clock.sleep(PAUSE_S)
                continue
            marks = await self._patiently(self._marks)
            self._resting = {
                ledger: (version, until_ns)
                for ledger, (version, until_ns) in self._resting.items()
                if ledger in marks and marks[ledger][1].version == version
            }
            ledgers = list(marks)
            self._host.random.shuffle(ledgers)
            for ledger in ledgers:
                if ledger not in self._resting or self._resting[ledger][1] <= clock.monotonic_ns():
                    rest_s = await self._attend(ledger)
                    self._resting[ledger] = marks[ledger][1].version, clock.monotonic_ns() + int(rest_s * 1e9)

    def _rest_s(self) -> float:
        """Until a marked ledger is to be tried again, or for long."""
        now_ns = self._host.clock.monotonic_ns()
        at_latest_ns = now_ns + int(self._config.grace_s * 1e9)
        next_ns = min([until_ns for _, until_ns in self._resting.values()], default=at_latest_ns)
        return max(0.001, (next_ns - now_ns) / 1e9)

    async def _attend(self, ledger: int) -> float:
        """How long the ledger is to be left alone if it is still marked as it was."""
        rest_s = self._config.retry_s
        try:
            tenure = await try_to_take(self._metadata, lock_key(ledger), self._bookie.identity)
        except MetadataError:
            tenure = None
        if tenure is None:
            return rest_s
        self._reports.locked(ledger)
        try:
            rest_s = await self._repair(ledger)
        except (MetadataError, MalformedMetadata, MalformedMark) as error:
            self._host.log("repair_failed", ledger=ledger, reason=str(error))
        with suppress(MetadataError):
            # What is not unlocked now is so when this process takes it again, or its session ends.
            await settled_delete(self._metadata, tenure.key, tenure.version)
        return rest_s

    async def _repair(self, ledger: int) -> float:
        """As `_attend`, where it is marked. Raises MetadataError, Conflict where it was marked anew meanwhile,
        MalformedMetadata, MalformedMark."""
        found = await self._metadata.get(mark_key(ledger))
        if found is None:
            return self._config.retry_s
        mark = decode_mark(found.value)
        outcome = await self._rounds.repair(ledger, every_entry=mark.every_entry, grace_is_over=self._grace.is_over)
        if outcome is Outcome.DONE:
            self._grace.forget(ledger)
            await settled_delete(self._metadata, mark_key(ledger), found.version)
            self._reports.unmarked(ledger)
        elif outcome is Outcome.POSTPONED:
            metadata = await self._rounds.ledger(ledger)
            if metadata is not None:
                return max(self._grace.left_ns(metadata), 0) / 1e9
        return self._config.retry_s

    # -- limbo

    async def _leave_limbo(self) -> None:
        """One ledger after the other, until all are left: what this bookie lost is fetched, once the ledger is
        closed."""
        while self._bookie.in_limbo:
            for ledger in self._bookie.in_limbo:
                try:
                    is_whole = await self._fetch(ledger)
                except (MetadataError, MalformedMetadata) as error:
                    self._host.log("repair_failed", ledger=ledger, reason=str(error))
                    is_whole = False
                if is_whole:
                    await self._bookie.leave_limbo(ledger)
                    self._reports.left_limbo(ledger)
            await self._host.clock.sleep(PAUSE_S)

    async def _fetch(self, ledger: int) -> bool:
        """Whether this bookie has what it should of it, as far as anybody has. Raises MetadataError,
        MalformedMetadata."""
        metadata = await self._rounds.ledger(ledger)
        if metadata is not None and metadata.state is not LedgerState.CLOSED:
            if self._grace.is_over(metadata):
                await self._rounds.recover(ledger)
            return False
        self._grace.forget(ledger)
        own = self._bookie.identity
        if own not in (await self._rounds.living()).available:
            return False
        outcome = await self._rounds.repair(ledger, every_entry=True, grace_is_over=lambda metadata: True, only=own)
        return outcome is Outcome.DONE
