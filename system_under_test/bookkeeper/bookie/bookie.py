"""A bookie: takes entries, fences ledgers, and gives back what it has.

Adds and fences of a ledger are decided in one step, and written in the order of these steps: so an add is before the
fence, and recovery's reads, which come after it, find it; or it comes after it and is refused, also where the same
entry had been added before. An add is acknowledged, and a fence answered, once the journal is durable up to there. With
a journal that is not synced adds do not wait; fences do all the same.

After an unclean end of a process that did not sync, this bookie may have lost what it acknowledged. The ledgers that
count on it are in limbo then: fenced, and where an entry is missing the answer is UNKNOWN, until `leave_limbo`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from system_under_test.bookkeeper.bookie.config import BookieConfig
from system_under_test.bookkeeper.bookie.identity import Identity
from system_under_test.bookkeeper.bookie.message import (
    MAX_LISTED,
    MAX_READ_BYTES,
    AddRequest,
    BookieAnswer,
    BookieRequest,
    Code,
    ListRequest,
    ReadLacRequest,
    ReadManyRequest,
    ReadRequest,
    WriteLacRequest,
)
from system_under_test.bookkeeper.bookie.registration import Availability, Willing
from system_under_test.bookkeeper.bookie.reports import BookieReports
from system_under_test.bookkeeper.bookie.store import Store
from system_under_test.bookkeeper.bookie.wire import identity_of
from system_under_test.bookkeeper.entry import HEAD_BYTES, Digest, Entry, EntryCorrupt, decode_entry, ids_of
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.flush import AsyncFlush, AsyncFlushTimes, Flusher, GroupCommit

_ROOM_PAUSE_S = 0.1
"""So long a checkpoint that found no room waits before it is tried again."""

Answer = BookieAnswer | Coroutine[Any, Any, BookieAnswer]


class Bookie:
    """`open` comes first; `start` once it is known who it is and how others see it."""

    def __init__(self, host: Host, config: BookieConfig, digest: Digest) -> None:
        self._host = host
        self._config = config
        self._digest = digest
        self._identity = Identity("")
        self._availability: Availability | None = None
        self._willing = Willing.WRITABLE
        self._share_when_full = 1.0
        self._store = Store(host.disk, config.directory, digest, config.file_bytes)
        self._flusher: Flusher | None = None
        self._checkpoint_may_be_due = asyncio.Event()
        self._fences: dict[int, int] = {}
        """Where the journal has to be durable for the fence of a ledger; no entry: it is."""
        self._tasks: list[asyncio.Task[None]] = []
        self._serial = 0
        self._reports = BookieReports(host)

    # -- its life

    @staticmethod
    def draw_identity(draw: random.Random, registered_here: list[str]) -> str:
        """For an empty disk, also where another one had this address: the fences of that one are gone."""
        return identity_of(draw.getrandbits(64))

    @property
    def identity(self) -> str:
        return self._identity.own

    @property
    def disk_is_empty(self) -> bool:
        return self._store.is_empty

    @property
    def may_have_lost(self) -> bool:
        """What it acknowledged: the process before did not sync, and did not stop cleanly."""
        return not self._store.was_synced and not self._store.was_stopped

    @property
    def in_limbo(self) -> list[int]:
        """The ledgers that are, until each is recovered and its entries are here."""
        return sorted(ledger for ledger, notes in self._store.ledgers.items() if notes.in_limbo)

    async def open(self) -> None:
        """Load what is on the disk. Raises StorageCorrupt, StorageFailed."""
        await self._once_there_is_room(self._store.open)

    async def start(self, identity: Identity, availability: Availability, unclosed: list[int]) -> None:
        """`unclosed`: the ledgers in which it may have lost what it acknowledged. Raises StorageFailed."""
        self._identity, self._availability = identity, availability
        await self._once_there_is_room(lambda: self._begin(unclosed))
        journal, host = self._store.journal, self._host
        self._flusher = (
            GroupCommit(journal, host) if self._config.is_synced else AsyncFlush(journal, host, AsyncFlushTimes())
        )
        self._reports.started(self._store)
        self._tasks = [
            host.spawn(self._flusher.run(), "bookie journal"),
            host.spawn(self._keep_checkpoints(), "bookie checkpoint"),
            host.spawn(self._watch_disk(), "bookie disk"),
        ]

    async def _begin(self, unclosed: list[int]) -> None:
        for ledger in unclosed:
            self._store.enter_limbo(ledger)
        # Behind them: a start that got no further is followed by another one that does it again.
        await self._store.start(is_synced=self._config.is_synced)
        if unclosed:
            self._reports.limbo(unclosed)

    async def stop(self) -> None:
        """Cleanly, so that nothing of what it acknowledged is in doubt."""
        for task in self._tasks:
            task.cancel()
        if self._flusher is not None:
            with suppress(DiskFull):
                await self._store.close()

    # -- requests

    def answer(self, request: BookieRequest) -> Answer:
        """At once, or later. Raises StorageFailed: the process must end."""
        if request.bookie != self._identity.own:
            is_gone = request.bookie in self._identity.replaced
            return BookieAnswer(Code.WRONG_BOOKIE if is_gone else Code.UNKNOWN)
        match request:
            case AddRequest():
                return self.add(request)
            case WriteLacRequest():
                return self._write_lac(request)
            case ReadRequest() | ReadLacRequest():
                return self._read_fenced(request) if request.fences else self._read(request)
            case ReadManyRequest():
                return self._read_many(request)
            case ListRequest():
                return self._list(request)

    async def add(self, request: AddRequest) -> BookieAnswer:
        added = self._decide_add(request)
        if isinstance(added, Code):
            return await self._refused(added)
        return await self._acknowledged(added)

    def _decide_add(self, request: AddRequest) -> int | Code:
        """Where the journal has to be durable for it, or why it is refused."""
        entry = self._sent(request.data)
        if entry is None:
            return Code.CORRUPT
        return self._refusal(entry.ledger, request.is_recovery) or self._write(entry, request)

    def _sent(self, data: bytes) -> Entry | None:
        """None where it was harmed on its way."""
        try:
            ledger, number = ids_of(data)
            return decode_entry(data, self._digest, ledger, number)
        except EntryCorrupt:
            return None

    def _refusal(self, ledger: int, is_recovery: bool) -> Code | None:
        """Recovery's own adds pass the fence, and take what room there is."""
        notes = self._store.ledgers.get(ledger)
        if is_recovery:
            return None
        if notes is not None and notes.is_fenced:
            return Code.FENCED
        return Code.READ_ONLY if self._willing is Willing.READ_ONLY else None

    def _write(self, entry: Entry, request: AddRequest) -> int | Code:
        store = self._store
        is_new_ledger, lac = entry.ledger not in store.ledgers, store.state(entry.ledger).lac
        is_new = not self._has_already(entry)
        try:
            position = store.add(entry, request.data)
        except DiskFull:
            return Code.READ_ONLY
        if is_new_ledger:
            self._reports.ledger(entry.ledger)
        if entry.lac > lac:
            self._reports.confirms(entry.ledger, entry.lac)
        self._serial += 1
        self._reports.added(entry, is_recovery=request.is_recovery, is_new=is_new, serial=self._serial)
        self._wrote()
        return position

    def _has_already(self, entry: Entry) -> bool:
        """It may have been sent with another LAC."""
        try:
            data = self._store.read(entry.ledger, entry.entry)
        except EntryCorrupt:
            return False
        return data is not None and data[HEAD_BYTES:] == entry.payload

    def _wrote(self) -> None:
        assert self._flusher is not None, "a bookie is started first"
        self._flusher.written()
        if self._store.checkpoint_is_due:
            self._checkpoint_may_be_due.set()

    async def _acknowledged(self, position: int) -> BookieAnswer:
        if self._config.is_synced:
            await self._durable(position)
        self._reports.confirmed()
        return BookieAnswer(Code.OK)

    async def _durable(self, position: int) -> None:
        assert self._flusher is not None
        await self._flusher.wait(position)

    async def _refused(self, code: Code) -> BookieAnswer:
        if code is Code.READ_ONLY:
            await self._turn(Willing.READ_ONLY)
        return BookieAnswer(code)

    # -- fences

    async def _read_fenced(self, request: ReadRequest | ReadLacRequest) -> BookieAnswer:
        position = self.fence(request.ledger)
        if isinstance(position, Code):
            return await self._refused(position)
        await self._durable(position)
        if self._fences.pop(request.ledger, None) is not None:
            self._reports.fence_durable(request.ledger)
        return self._read(request)

    def fence(self, ledger: int) -> int | Code:
        """From now on only recovery adds to it. Where the journal has to be durable for that, or READ_ONLY: there was
        no room for the fence, and there is none."""
        notes = self._store.ledgers.get(ledger)
        if notes is not None and notes.is_fenced:
            return self._fences.get(ledger, 0)
        try:
            position = self._fences[ledger] = self.write_fence(ledger)
        except DiskFull:
            return Code.READ_ONLY
        if notes is None:
            self._reports.ledger(ledger)
        self._reports.fence_written(ledger)
        self._wrote()
        return position

    def write_fence(self, ledger: int) -> int:
        """Where the journal has to be durable for it. Raises DiskFull."""
        return self._store.fence(ledger)

    # -- reads

    def _read(self, request: ReadRequest | ReadLacRequest) -> BookieAnswer:
        notes = self._store.ledgers.get(request.ledger)
        if notes is None:
            return BookieAnswer(Code.NO_SUCH_LEDGER)
        if isinstance(request, ReadLacRequest):
            return BookieAnswer(Code.OK, lac=notes.lac)
        try:
            data = self._store.read(request.ledger, request.entry)
        except EntryCorrupt:
            return BookieAnswer(Code.CORRUPT)
        if data is None:
            return BookieAnswer(Code.UNKNOWN if notes.in_limbo else Code.NO_SUCH_ENTRY)
        return BookieAnswer(Code.OK, data)

    def _read_many(self, request: ReadManyRequest) -> BookieAnswer:
        many: list[tuple[int, bytes]] = []
        room_bytes = MAX_READ_BYTES
        asked = max(0, min(request.last - request.first + 1, MAX_LISTED))
        for entry in self._store.index.entries(request.ledger, request.first, asked):
            if entry > request.last or room_bytes <= 0:
                break
            with suppress(EntryCorrupt):
                if (data := self._store.read(request.ledger, entry)) is not None:
                    many.append((entry, data))
                    room_bytes -= len(data)
        return BookieAnswer(Code.OK, many=tuple(many))

    def _list(self, request: ListRequest) -> BookieAnswer:
        notes = self._store.ledgers.get(request.ledger)
        if notes is None:
            return BookieAnswer(Code.NO_SUCH_LEDGER)
        entries = tuple(self._store.index.entries(request.ledger, request.first, MAX_LISTED))
        return BookieAnswer(Code.UNKNOWN if notes.in_limbo else Code.OK, entries=entries)

    async def _write_lac(self, request: WriteLacRequest) -> BookieAnswer:
        """Kept as an entry is: who read up to there reads up to there also after a loss of power."""
        refusal = self._refusal(request.ledger, is_recovery=False)
        notes = self._store.ledgers.get(request.ledger)
        if refusal is None:
            try:
                position = self._store.write_lac(request.ledger, request.lac)
            except DiskFull:
                refusal = Code.READ_ONLY
        if refusal is not None:
            return await self._refused(refusal)
        if notes is None:
            self._reports.ledger(request.ledger)
        self._reports.confirms(request.ledger, self._store.state(request.ledger).lac)
        self._wrote()
        return await self._acknowledged(position)

    # -- limbo

    async def leave_limbo(self, ledger: int) -> None:
        """The ledger is closed, and all entries that this bookie should hold are here: what is missing never was.
        Durable on return. Raises DiskFull, StorageFailed."""
        notes = self._store.ledgers.get(ledger)
        if notes is not None and notes.in_limbo:
            position = self._store.leave_limbo(ledger)
            self._wrote()
            await self._durable(position)

    # -- room

    async def _turn(self, willing: Willing) -> None:
        """Returns once it is registered, or things have changed again."""
        assert self._availability is not None, "a bookie is started first"
        is_turn, self._willing = willing is not self._willing, willing
        if is_turn:
            self._share_when_full = self._host.disk.used_share()
        await self._availability.say(willing)
        if is_turn and self._willing is willing:
            self._reports.willing(willing)

    async def _watch_disk(self) -> None:
        while True:
            share = self._host.disk.used_share()
            # There may have been no room with less in use than the threshold: then something has to go.
            room_share = min(self._config.full_share, self._share_when_full)
            if self._willing is Willing.WRITABLE and share > self._config.full_share:
                await self._turn(Willing.READ_ONLY)
            elif self._willing is Willing.READ_ONLY and share < room_share:
                await self._turn(Willing.WRITABLE)
            await self._host.clock.sleep(self._config.disk_check_s)

    async def _keep_checkpoints(self) -> None:
        while True:
            await self._checkpoint_may_be_due.wait()
            self._checkpoint_may_be_due.clear()
            if self._store.checkpoint_is_due:
                await self._once_there_is_room(self._store.checkpoint)
                self._reports.checkpoint(self._store.journal.max_offset)

    async def _once_there_is_room(self, write: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await write()
                return
            except DiskFull as error:
                self._host.log("disk_full", reason=str(error))
                await self._host.clock.sleep(_ROOM_PAUSE_S)
