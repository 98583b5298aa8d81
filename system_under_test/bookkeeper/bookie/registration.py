"""What others see of a bookie in the metadata store while it lives: that it may be chosen, or is for reading alone.

An ephemeral key, created anew with each session. A bookie whose disk is full says so there before it refuses anybody:
one that was refused and looks for another bookie would choose it again otherwise.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Protocol

from system_under_test.bookkeeper.bookie.identity import PAUSE_S
from system_under_test.bookkeeper.ledger.metadata import LEDGERS, LedgerMetadata, LedgerState, decode_metadata
from system_under_test.metadata.access import Conflict, MetadataAccess, SessionLost, Unavailable
from system_under_test.runtime.host import Clock

AVAILABLE = "/available/"


class Willing(Enum):
    """For what a bookie may be chosen; the value of its key."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"


class Availability(Protocol):
    async def say(self, willing: Willing) -> None:
        """Returns once the metadata store has it."""


class Registration:
    """An `Availability`; `run` keeps it up."""

    def __init__(self, clock: Clock, metadata: MetadataAccess, identity: str) -> None:
        self._clock = clock
        self._metadata = metadata
        self._key = AVAILABLE + identity
        self._willing = Willing.WRITABLE
        self._session: str | None = None
        self._has_changed = asyncio.Event()
        self._has_changed.set()
        self._registered: Willing | None = None
        self._waiting: list[tuple[Willing, asyncio.Future[None]]] = []

    async def say(self, willing: Willing) -> None:
        self._willing = willing
        if self._registered is willing:
            return
        self._has_changed.set()
        registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((willing, registered))
        await registered

    async def run(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            willing = self._willing
            try:
                await self._register(willing)
            except (Unavailable, Conflict, SessionLost):
                self._has_changed.set()
                await self._clock.sleep(PAUSE_S)
                continue
            self._registered = willing
            self._release(willing)

    def _release(self, willing: Willing) -> None:
        waiting, self._waiting = self._waiting, []
        for wanted, registered in waiting:
            if wanted is not willing and self._willing is wanted:
                self._waiting.append((wanted, registered))
            elif not registered.done():
                registered.set_result(None)

    async def follow_sessions(self) -> None:
        """A key goes with its session."""
        while True:
            try:
                self._session = await self._metadata.session_other_than(self._session)
            except Unavailable:
                await self._clock.sleep(PAUSE_S)
                continue
            self._registered = None
            self._has_changed.set()

    async def _register(self, willing: Willing) -> None:
        found = await self._metadata.get(self._key)
        if found is not None and found.session != self._metadata.session:
            await self._metadata.delete(self._key, found.version)
            found = None
        if found is None:
            await self._metadata.create(self._key, willing.value, ephemeral=True)
        elif found.value != willing.value:
            await self._metadata.put(self._key, willing.value, found.version)


async def unclosed_ledgers(clock: Clock, metadata: MetadataAccess, identity: str) -> list[int]:
    """Those in which this bookie may have acknowledged an entry that its writer or a recovery still counts on. Raises
    MalformedMetadata."""
    while True:
        try:
            found = await metadata.list(LEDGERS)
        except Unavailable:
            await clock.sleep(PAUSE_S)
            continue
        ledgers = [decode_metadata(each.value, each.version) for each in found.values()]
        return sorted(ledger.ledger for ledger in ledgers if _counts_on(ledger, identity))


def _counts_on(ledger: LedgerMetadata, identity: str) -> bool:
    """A recovery may have chosen the bookie without having said so yet."""
    if ledger.state is LedgerState.OPEN:
        return any(identity in fragment.ensemble for fragment in ledger.fragments)
    return ledger.state is LedgerState.IN_RECOVERY
