"""A partition, as the broker has it that owns it, or would like to.

Its log is a list of ledgers (`ledger_list.py`). A broker that has got the owner's key ends the last ledger, also if
another one writes that, appends one of its own to the list, and only then serves. The key keeps brokers from taking
ledgers from each other all the time, and promises nothing: an owner that is so no more without knowing finds itself
fenced.

A ledger that is full is closed, and only then the next one is listed: so there is one ledger at most that is not
closed, the last, and to end it suffices.

Source: the description of Pulsar's partitions in TDMQ's documents.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.driver import LedgerClient, OpenLedger
from system_under_test.bookkeeper.ledger.errors import LedgerError
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.partition.cache import ReadCache
from system_under_test.bookkeeper.partition.ledger_list import LedgerList, append_ledger, owner_key_of, read_list
from system_under_test.bookkeeper.partition.position import Position
from system_under_test.bookkeeper.partition.reading import Found, Readable, read_log
from system_under_test.bookkeeper.partition.reports import OwnerRole, PartitionReports
from system_under_test.metadata.access import Conflict, MetadataAccess, MetadataError, Unavailable
from system_under_test.metadata.tenure import take
from system_under_test.runtime.host import Host

HOLD_S: Final = 2.0
"""A request waits so long for the next ledger, where the owner is about to open one."""
PAUSE_S: Final = 0.2
"""Until an owner that could not take over tries again."""


class NotServing(Exception):
    """This broker does not own the partition, or has not taken it over yet: nothing was done."""


class Partition:
    """`Service`"""

    def __init__(
        self, host: Host, name: str, role: OwnerRole, metadata: MetadataAccess, ledgers: LedgerClient, roll_entries: int
    ) -> None:
        """`role`: one for all partitions of the broker."""
        self._host = host
        self._name = name
        self._metadata = metadata
        self._ledgers = ledgers
        self._entries = ReadCache(ledgers)
        self._roll_entries = roll_entries
        self._reports = PartitionReports(host, name, role)
        self._owns = False
        self._list = LedgerList()
        self._current: OpenLedger | None = None
        """The last one of the list, while this broker writes it; it stays until there is another one."""
        self._is_open = False
        """Whether the current one takes entries."""
        self._may_write = asyncio.Event()
        self._attend = asyncio.Event()
        """The current ledger is full, or over."""
        self._closed: dict[int, LedgerMetadata] = {}
        """Of ledgers before the current one; these change no more but for who holds the entries."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = self._host.spawn(self._own_again_and_again(), f"partition {self._name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # -- clients

    async def send(self, payload: bytes) -> int:
        """The offset of the first message, once all are acknowledged. Raises NotServing, LedgerError."""
        place, ledger = await self._to_write()
        if ledger.lap + 2 >= self._roll_entries:
            # This is the last one. Closing waits for it.
            self._is_open = False
            self._attend.set()
        return Position(place, await ledger.append(payload)).offset

    async def read(self, offset: int) -> Found:
        """From the offset on. Raises NotServing, LedgerError, Unavailable."""
        if self._current is None:
            raise NotServing
        current = self._current

        async def readable(ledger: int) -> Readable:
            if ledger == current.ledger:
                return Readable(current.metadata, current.lac, is_all=False)
            metadata = await self._metadata_of(ledger)
            return Readable(metadata, metadata.last_entry, is_all=True)

        return await read_log(offset, self._list.ledgers, self._entries, readable)

    async def seal(self) -> None:
        """Close the current ledger, if it has entries, and go on in another one. Raises NotServing."""
        _, ledger = await self._to_write()
        if ledger.lap != NOTHING:
            self._is_open = False
            self._attend.set()
            await self._to_write()

    async def _metadata_of(self, ledger: int) -> LedgerMetadata:
        if ledger not in self._closed:
            self._closed[ledger] = await self._ledgers.metadata(ledger)
        return self._closed[ledger]

    async def _to_write(self) -> tuple[int, OpenLedger]:
        """The ledger that takes entries, and its place in the list. Raises NotServing."""
        until_ns = self._host.clock.monotonic_ns() + int(HOLD_S * 1e9)
        while not self._is_open:
            left_ns = until_ns - self._host.clock.monotonic_ns()
            if not self._owns or left_ns <= 0:
                raise NotServing
            with suppress(TimeoutError):
                await self._host.clock.within(left_ns / 1e9, self._may_write.wait())
        assert self._current is not None
        return len(self._list.ledgers) - 1, self._current

    # -- owning

    async def _own_again_and_again(self) -> None:
        while True:
            try:
                tenure = await take(self._metadata, owner_key_of(self._name), self._host.name)
            except Unavailable:
                continue
            self._owns = True
            self._reports.owns()
            serving = self._host.spawn(self._serve(), f"owner of {self._name}")
            try:
                await self._metadata.session_other_than(tenure.session)
            finally:
                serving.cancel()
                self._stop_serving()
            self._reports.owns_no_more()

    def _stop_serving(self) -> None:
        self._owns = self._is_open = False
        if self._current is not None:
            self._ledgers.forget(self._current)
        self._current = None
        # Who waits for the next ledger wakes up, and finds none.
        self._may_write.set()
        self._may_write = asyncio.Event()

    async def _serve(self) -> None:
        while True:
            try:
                ledger = await self._take_over()
                while not ledger.is_over:
                    await self._write_until_full(ledger)
                    if ledger.is_over:
                        break
                    await ledger.close()
                    self._reports.rolled(ledger.ledger)
                    ledger = await self._append_to_list(self._list)
            except (LedgerError, MetadataError) as error:
                self._host.log("partition_interrupted", partition=self._name, reason=str(error))
            await self._host.clock.sleep(PAUSE_S)

    async def _take_over(self) -> OpenLedger:
        listed = await read_list(self._metadata, self._name)
        if listed.ledgers:
            await self._ledgers.recover(listed.ledgers[-1])
        return await self._append_to_list(listed)

    async def _append_to_list(self, listed: LedgerList) -> OpenLedger:
        """Raises Conflict where somebody else has changed the list."""
        self._attend.clear()
        ledger = await self._ledgers.create(self._over)
        try:
            self._list = await append_ledger(self._metadata, self._name, listed, ledger.ledger)
        except Conflict:
            # Nobody will ever look for entries in it.
            await ledger.close()
            raise
        self._reports.listed(ledger.ledger, len(self._list.ledgers))
        return ledger

    def _over(self) -> None:
        """The current ledger, or one that was to become it."""
        self._attend.set()

    async def _write_until_full(self, ledger: OpenLedger) -> None:
        self._current = ledger
        self._is_open = True
        self._may_write.set()
        self._may_write = asyncio.Event()
        await self._attend.wait()
        self._is_open = False
        if ledger.is_over:
            self._reports.fenced(ledger.ledger)
