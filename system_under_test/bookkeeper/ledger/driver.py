"""Runs writers, recoveries and readers of ledgers on a host: feeds their cores, and carries their effects out.

Requests to one bookie are begun in the order of the effects. Whatever is not answered in time is taken for silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from system_under_test.bookkeeper.bookie.message import (
    AddRequest,
    ReadLacRequest,
    ReadManyRequest,
    ReadRequest,
    WriteLacRequest,
)
from system_under_test.bookkeeper.bookie.registration import AVAILABLE
from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.bookies import Bookies
from system_under_test.bookkeeper.ledger.errors import EntryAbsent, EntryHarmed, LedgerError
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    Added,
    Append,
    Begin,
    Close,
    Closed,
    Effect,
    Ended,
    Failed,
    GaveUp,
    Held,
    LacAnswered,
    LacDue,
    LacWritten,
    MetadataRead,
    Publish,
    Published,
    ReadAnswered,
    ReadEntry,
    ReadLac,
    ReadMetadata,
    Recovered,
    SendAdd,
    Writable,
    WriteLac,
)
from system_under_test.bookkeeper.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerState,
    Placement,
    Quorums,
    decode_metadata,
    encode_metadata,
    key_of,
)
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.placement import NotEnoughBookies, bookies_of, first_ensemble
from system_under_test.bookkeeper.ledger.reader import ReadEnded
from system_under_test.bookkeeper.ledger.reports import LedgerReports
from system_under_test.bookkeeper.ledger.tally import LacTally, Presence
from system_under_test.bookkeeper.ledger.writer import Bounds, Phase, Writer
from system_under_test.metadata.access import MetadataAccess, MetadataError
from system_under_test.metadata.settling import settled_create
from system_under_test.runtime.host import Host

NUMBERS: Final = "/ledger-numbers"
"""The counter of the metadata store that gives ledgers their numbers."""
MOST_AT_ONCE: Final = 32
"""So many entries are read side by side."""
RECOVERIES: Final = 10
"""So often a recovery that gave up is begun anew."""
PAUSE_S: Final = 0.5
"""So long nothing is tried again that was not answered."""


Asked = SendAdd | WriteLac | ReadLac | ReadEntry | Publish | ReadMetadata
"""Effects that are answered by events."""


class Core(Protocol):
    def step(self, event: Any) -> list[Effect]: ...


class LedgerReader:
    """Reads ledgers, and what the metadata store has of them."""

    def __init__(
        self, host: Host, metadata: MetadataAccess, *, timeout_s: float = 2.0, parts: LedgerParts | None = None
    ) -> None:
        """`timeout_s`: how long a bookie is waited for."""
        self.host = host
        self.bookies = Bookies(host, metadata, timeout_s)
        self._access = metadata
        self._parts = parts or LedgerParts()

    async def metadata(self, ledger: int) -> LedgerMetadata:
        """Raises LedgerError where there is no such ledger, MetadataError."""
        found = await self._access.get(key_of(ledger))
        if found is None:
            raise LedgerError(f"there is no ledger {ledger}", is_definite=True)
        return decode_metadata(found.value, found.version)

    async def read(self, metadata: LedgerMetadata, entry: int) -> Entry:
        """An entry that is acknowledged. Raises LedgerError."""
        ended = await self._read(metadata, entry)
        if ended.entry is None and (newest := await self._newest(metadata)).fragments != metadata.fragments:
            # Repair may have brought it to others meanwhile.
            ended = await self._read(newest, entry)
        if ended.entry is None:
            if ended.presence is Presence.ABSENT:
                raise EntryAbsent(metadata.ledger, entry)
            if ended.is_harmed:
                raise EntryHarmed(metadata.ledger, entry)
            because = f"too few bookies answered to read entry {entry} of ledger {metadata.ledger}"
            raise LedgerError(because, is_definite=False)
        return ended.entry

    async def _read(self, metadata: LedgerMetadata, entry: int) -> ReadEnded:
        read = self._parts.make_read(metadata, entry)
        came: ReadEntry | ReadEnded = read.begin()
        while not isinstance(came, ReadEnded):
            came = read.step(await self._ask(metadata.ledger, came))
        return came

    async def _newest(self, metadata: LedgerMetadata) -> LedgerMetadata:
        """Raises LedgerError where the metadata store does not say."""
        try:
            return await self.metadata(metadata.ledger)
        except MetadataError as error:
            because = f"ledger {metadata.ledger} could not be read as it was known: {error}"
            raise LedgerError(because, is_definite=False) from error

    async def lac(self, metadata: LedgerMetadata) -> int:
        """Up to where a ledger that is not closed was acknowledged for certain, as the bookies of its last ensemble
        have heard: at least all that an acknowledged entry carries. Raises LedgerError where too few answer."""
        tally = LacTally(metadata, metadata.last_fragment)
        enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def ask(bookie: str) -> None:
            reply, answer = await self.bookies.ask(bookie, ReadLacRequest(bookie=bookie, ledger=metadata.ledger))
            tally.take(bookie, reply, answer.lac)
            if (tally.is_covered or tally.is_over) and not enough.done():
                enough.set_result(None)

        asking = [self.host.spawn(ask(bookie), "LAC read") for bookie in metadata.last_fragment.ensemble]
        try:
            await enough
        finally:
            for each in asking:
                each.cancel()
        if not tally.is_covered:
            because = f"too few bookies answered what is acknowledged of ledger {metadata.ledger}"
            raise LedgerError(because, is_definite=False)
        return tally.lac

    async def read_all(self, metadata: LedgerMetadata, first: int, last: int) -> list[Entry | None]:
        """These entries, at most MOST_AT_ONCE of them, with None for each that nobody has. Raises LedgerError."""
        entries = range(first, min(last + 1, first + MOST_AT_ONCE))
        found: dict[int, Entry] = {}
        for bookie in bookies_of(metadata, first):
            if len(found) < len(entries) > 1:
                found = {**await self.read_at(metadata, bookie, entries), **found}
        left = [entry for entry in entries if entry not in found]
        others = await asyncio.gather(*(self._read_if_any(metadata, each) for each in left))
        found |= {entry.entry: entry for entry in others if entry is not None}
        return [found.get(entry) for entry in entries]

    async def _read_if_any(self, metadata: LedgerMetadata, entry: int) -> Entry | None:
        try:
            return await self.read(metadata, entry)
        except EntryAbsent:
            return None

    async def read_at(self, metadata: LedgerMetadata, bookie: str, entries: range) -> dict[int, Entry]:
        """Those that this bookie should have, and has unharmed, by their numbers."""
        ledger = metadata.ledger
        request = ReadManyRequest(bookie=bookie, ledger=ledger, first=entries.start, last=entries.stop - 1)
        reply, answer = await self.bookies.ask(bookie, request)
        verification = self._parts.verification(ledger, self._parts.digest())
        found = {}
        for number, data in answer.many:
            entry = verification.entry(ReadAnswered(bookie, number, reply, data))
            if entry is not None and number in entries and bookie in bookies_of(metadata, number):
                found[number] = entry
        return found

    async def _ask(self, ledger: int, asked: ReadEntry) -> ReadAnswered:
        request = ReadRequest(bookie=asked.bookie, ledger=ledger, entry=asked.entry, fences=asked.fences)
        reply, answer = await self.bookies.ask(asked.bookie, request)
        return ReadAnswered(asked.bookie, asked.entry, reply, answer.data)

    def close(self) -> None:
        self.bookies.close()


class _Running:
    """Carries out the effects of a core; `settled` hears what the core has come to."""

    def __init__(
        self, client: LedgerClient, core: Core, ledger: int, settled: Callable[[Effect], None], *, recovers: bool
    ) -> None:
        self._client = client
        self._core = core
        self._ledger = ledger
        self._settled = settled
        self._recovers = recovers

    def step(self, event: object) -> None:
        for effect in self._core.step(event):
            if isinstance(effect, Asked):
                if self._recovers and isinstance(effect, Publish) and effect.metadata.state is LedgerState.CLOSED:
                    self._client.reports.recovery_ends(self._ledger, effect.metadata.last_entry)
                self._client.host.spawn(self._answer(effect), f"ledger {self._ledger}")
            else:
                self._settled(effect)

    async def _answer(self, effect: Asked) -> None:
        self.step(await self._answer_to(effect))

    async def _answer_to(self, effect: Asked) -> object:
        bookies, ledger = self._client.bookies, self._ledger
        if isinstance(effect, SendAdd):
            request = AddRequest(bookie=effect.bookie, data=effect.data, is_recovery=self._recovers)
            reply, _ = await bookies.ask(effect.bookie, request)
            return AddAnswered(effect.bookie, effect.entry, reply)
        if isinstance(effect, WriteLac):
            write = WriteLacRequest(bookie=effect.bookie, ledger=ledger, lac=effect.lac)
            reply, _ = await bookies.ask(effect.bookie, write)
            return LacWritten(effect.bookie, effect.lac, reply)
        if isinstance(effect, ReadLac):
            lac = ReadLacRequest(bookie=effect.bookie, ledger=ledger, fences=True)
            reply, answer = await bookies.ask(effect.bookie, lac)
            return LacAnswered(effect.bookie, reply, answer.lac)
        if isinstance(effect, ReadEntry):
            read = ReadRequest(bookie=effect.bookie, ledger=ledger, entry=effect.entry, fences=effect.fences)
            reply, answer = await bookies.ask(effect.bookie, read)
            self._client.reports.recovery_read(ledger, effect.entry, effect.bookie, reply)
            return ReadAnswered(effect.bookie, effect.entry, reply, answer.data)
        if isinstance(effect, Publish):
            return Published(await self._client.publish(effect.metadata))
        return MetadataRead(await self._client.metadata_if_any(ledger))


class OpenLedger:
    """A ledger in the hand of the client that created it."""

    def __init__(self, client: LedgerClient, writer: Writer, on_over: Callable[[], None]) -> None:
        self.ledger = writer.metadata.ledger
        self._client = client
        self._writer = writer
        self._on_over = on_over
        self._running = _Running(client, writer, self.ledger, self._settled, recovers=False)
        self._tokens = 0
        self._waiting: dict[int, asyncio.Future[int]] = {}
        """Who waits for an entry's acknowledgement, or for the end, by token."""

    @property
    def metadata(self) -> LedgerMetadata:
        return self._writer.metadata

    @property
    def lac(self) -> int:
        """The last entry that is acknowledged, and may be read."""
        return self._writer.visible_lac

    @property
    def lap(self) -> int:
        """The last entry that was begun to be written."""
        return self._writer.lap

    @property
    def is_over(self) -> bool:
        """It takes no entries any more."""
        return self._writer.phase is Phase.OVER

    def append(self, payload: bytes) -> asyncio.Future[int]:
        """The entry's number, once it and all before it are acknowledged; or else the future raises LedgerError."""
        token, acknowledged = self._new_token()
        self._running.step(Append(token, payload))
        return acknowledged

    def close(self) -> asyncio.Future[int]:
        """The last entry, after what is pending is settled; or else the future raises LedgerError."""
        token, closed = self._new_token()
        self._running.step(Close(token))
        return closed

    def writable(self, bookies: tuple[str, ...]) -> None:
        """These may be chosen now."""
        self._running.step(Writable(bookies))

    def lac_due(self) -> None:
        """Bookies that have not heard of the LAC, and will not by an entry, are to hear of it."""
        self._running.step(LacDue())

    def _new_token(self) -> tuple[int, asyncio.Future[int]]:
        self._tokens += 1
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[self._tokens] = future
        return self._tokens, future

    def _settled(self, effect: Effect) -> None:
        if isinstance(effect, Added):
            self._client.reports.acknowledged(self.ledger, effect.entry)
            self._answer(effect.token, effect.entry)
        elif isinstance(effect, Held):
            self._client.reports.held(self.ledger, effect.entry)
        elif isinstance(effect, Closed):
            self._client.reports.closed(self.ledger, effect.last_entry)
            self._answer(effect.token, effect.last_entry)
        elif isinstance(effect, Failed):
            if effect.is_definite and effect.entry is not None:
                self._client.reports.refused(self.ledger, effect.entry)
            future = self._waiting.pop(effect.token)
            if not future.done():
                future.set_exception(LedgerError(effect.reason.value, is_definite=effect.is_definite))
        elif isinstance(effect, Ended):
            self._client.forget(self)
            self._client.reports.handle_ended(self.ledger, effect.reason)
            self._on_over()

    def _answer(self, token: int, result: int) -> None:
        future = self._waiting.pop(token)
        if not future.done():
            future.set_result(result)


class LedgerClient(LedgerReader):
    """`Service` of a process that writes and ends ledgers."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataAccess,
        quorums: Quorums,
        *,
        placement: Placement = Placement.FRAGMENT,
        bounds: Bounds | None = None,
        timeout_s: float = 2.0,
        explicit_lac_s: float = 0.0,
        parts: LedgerParts | None = None,
    ) -> None:
        """`explicit_lac_s`: how often bookies hear of the LAC of ledgers that are open here; 0: by entries alone."""
        super().__init__(host, metadata, timeout_s=timeout_s, parts=parts)
        self.reports = LedgerReports(host)
        self._quorums = quorums
        self._placement = placement
        self._bounds = bounds or Bounds()
        self._explicit_lac_s = explicit_lac_s
        self._open: list[OpenLedger] = []
        self._listening: list[Callable[[tuple[str, ...]], None]] = []
        """Each hears which bookies may be chosen, when that changes."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [self.host.spawn(self._follow_bookies(), "writable bookies")]
        if self._explicit_lac_s:
            self._tasks.append(self.host.spawn(self._write_lacs(), "explicit LAC"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.close()

    async def create(self, on_over: Callable[[], None]) -> OpenLedger:
        """`on_over` is called once, as soon as the ledger takes no entries any more. Raises LedgerError,
        MetadataError."""
        writable = await self.bookies.writable()
        try:
            ensemble = first_ensemble(self._quorums, writable)
        except NotEnoughBookies as error:
            raise LedgerError(str(error), is_definite=True) from error
        ledger = await self._access.next_number(NUMBERS)
        self.host.reached("ensemble-chosen", ledger=ledger)
        created = LedgerMetadata(
            ledger=ledger, quorums=self._quorums, fragments=(Fragment(0, ensemble, 0),), placement=self._placement
        )
        version = await settled_create(self._access, key_of(ledger), encode_metadata(created))
        handle = OpenLedger(self, self._parts.make_writer(replace(created, version=version), self._bounds), on_over)
        self._open.append(handle)
        self._listening.append(handle.writable)
        handle.writable(writable)
        return handle

    def forget(self, handle: OpenLedger) -> None:
        """It takes no entries any more."""
        if handle in self._open:
            self._open.remove(handle)
            self._listening.remove(handle.writable)

    async def recover(self, ledger: int) -> LedgerMetadata:
        """End it, also while it is written; what comes back is closed. Raises LedgerError, MetadataError."""
        reason = ""
        for _ in range(RECOVERIES):
            came = await self._recovery(await self.metadata(ledger))
            if isinstance(came, Recovered):
                self.reports.closed(ledger, came.metadata.last_entry)
                return came.metadata
            reason = came.reason.value
            self.host.log("recovery_gave_up", ledger=ledger, reason=reason)
            await self.host.clock.sleep(PAUSE_S)
        raise LedgerError(f"ledger {ledger} could not be recovered: {reason}", is_definite=False)

    async def _recovery(self, metadata: LedgerMetadata) -> Recovered | GaveUp:
        over: asyncio.Future[Recovered | GaveUp] = asyncio.get_running_loop().create_future()

        def settled(effect: Effect) -> None:
            assert isinstance(effect, Recovered | GaveUp)
            if not over.done():
                over.set_result(effect)

        core = self._parts.make_recovery(metadata, self._bounds)
        running = _Running(self, core, metadata.ledger, settled, recovers=True)

        def writable(bookies: tuple[str, ...]) -> None:
            running.step(Writable(bookies))

        if metadata.state is not LedgerState.CLOSED:
            writable(await self.bookies.writable())
        self._listening.append(writable)
        try:
            running.step(Begin())
            return await over
        finally:
            self._listening.remove(writable)

    async def publish(self, metadata: LedgerMetadata) -> int | None:
        """In place of the version that it names. None if it does not fit, or it is not known what came of it."""
        self.reports.publishes(metadata)
        try:
            version = await self._access.put(key_of(metadata.ledger), encode_metadata(metadata), metadata.version)
        except MetadataError:
            return None
        self.reports.published(metadata)
        return version

    async def metadata_if_any(self, ledger: int) -> LedgerMetadata | None:
        """None if there was no answer that has them."""
        try:
            return await self.metadata(ledger)
        except (MetadataError, LedgerError):
            return None

    async def _write_lacs(self) -> None:
        while True:
            await self.host.clock.sleep(self._explicit_lac_s)
            for handle in list(self._open):
                handle.lac_due()

    async def _follow_bookies(self) -> None:
        since = 0
        while True:
            try:
                since = await self._access.wait(AVAILABLE, since)
                writable = await self.bookies.writable()
            except MetadataError:
                await self.host.clock.sleep(PAUSE_S)
                continue
            for listening in list(self._listening):
                listening(writable)
