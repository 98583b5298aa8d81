"""Carries out looks and rounds of repair: feeds their cores, asks bookies and the metadata store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from system_under_test.bookkeeper.bookie.message import AddRequest, ReadLacRequest, ReadRequest
from system_under_test.bookkeeper.bookie.registration import AVAILABLE, Willing
from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.driver import LedgerClient
from system_under_test.bookkeeper.ledger.errors import LedgerError
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    LacAnswered,
    Publish,
    Published,
    ReadAnswered,
    ReadEntry,
    Reply,
)
from system_under_test.bookkeeper.ledger.metadata import (
    LEDGERS,
    LedgerMetadata,
    MalformedMetadata,
    decode_metadata,
    encode_metadata,
    key_of,
)
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.repair.config import RepairConfig
from system_under_test.bookkeeper.repair.event import (
    AskLac,
    Copy,
    EntryLost,
    Living,
    Outcome,
    Recover,
    RecoveryEnded,
    RoundEnded,
)
from system_under_test.bookkeeper.repair.look import Look
from system_under_test.bookkeeper.repair.parts import RepairParts
from system_under_test.bookkeeper.repair.reports import RepairReports
from system_under_test.metadata.access import MetadataAccess, MetadataError
from system_under_test.metadata.settling import settled_put
from system_under_test.runtime.host import Host

MOST_ROUNDS: Final = 10
"""How often a ledger is looked at again because something was changed, until it is left for later."""

Asked = ReadEntry | AskLac | Copy | Publish | Recover
"""Effects that are answered by events."""


class Rounds:
    def __init__(
        self,
        host: Host,
        metadata: MetadataAccess,
        ledgers: LedgerClient,
        config: RepairConfig,
        *,
        parts: RepairParts,
        ledger_parts: LedgerParts,
        reports: RepairReports,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._ledgers = ledgers
        self._config = config
        self._parts = parts
        self._ledger_parts = ledger_parts
        self._reports = reports

    # -- what there is

    async def ledger(self, ledger: int) -> LedgerMetadata | None:
        """None where there is none. Raises Unavailable."""
        found = await self._metadata.get(key_of(ledger))
        return None if found is None else decode_metadata(found.value, found.version)

    async def all_ledgers(self) -> tuple[LedgerMetadata, ...]:
        """Raises Unavailable."""
        ledgers = []
        for key, found in (await self._metadata.list(LEDGERS)).items():
            try:
                ledgers.append(decode_metadata(found.value, found.version))
            except MalformedMetadata as error:
                self._host.log("malformed_ledger", key=key, reason=str(error))
        return tuple(ledgers)

    async def living(self) -> Living:
        """Raises Unavailable."""
        found = await self._metadata.list(AVAILABLE)
        willing = {key.removeprefix(AVAILABLE): each.value for key, each in found.items()}
        writable = [bookie for bookie, state in willing.items() if state == Willing.WRITABLE.value]
        self._host.random.shuffle(writable)
        return Living(tuple(willing), tuple(writable))

    # -- looks and rounds

    async def look(self, metadata: LedgerMetadata, *, every_entry: bool) -> tuple[str, ...]:
        """The bookies that lack entries. Raises Unavailable."""
        look = Look(
            metadata,
            await self.living(),
            verification=self._verification(metadata),
            probes=self._parts.every_entry if every_entry else self._parts.probes,
            most_at_once=self._config.most_at_once,
        )
        await self._carry_out(metadata.ledger, look.begin(), look.step, lambda effect: None)
        return tuple(lack.bookie for lack in look.lacks)

    async def repair(
        self,
        ledger: int,
        *,
        every_entry: bool,
        grace_is_over: Callable[[LedgerMetadata], bool],
        only: str | None = None,
    ) -> Outcome:
        """Rounds until one changes nothing. Of a ledger that is there no more nothing is missing. Raises Unavailable,
        MalformedMetadata."""
        for _ in range(MOST_ROUNDS):
            metadata = await self.ledger(ledger)
            if metadata is None:
                return Outcome.DONE
            outcome = await self._round(metadata, every_entry, grace_is_over(metadata), only)
            self._reports.round_ended(ledger, outcome)
            if outcome is not Outcome.CHANGED:
                return outcome
        return Outcome.STUCK

    async def _round(
        self, metadata: LedgerMetadata, every_entry: bool, grace_is_over: bool, only: str | None
    ) -> Outcome:
        outcome = Outcome.STUCK

        def settled(effect: object) -> None:
            nonlocal outcome
            if isinstance(effect, EntryLost):
                self._reports.entry_lost(metadata.ledger, effect.entry)
            elif isinstance(effect, RoundEnded):
                outcome = effect.outcome

        core = self._parts.repair_round(
            metadata,
            await self.living(),
            verification=self._verification(metadata),
            probes=self._parts.every_entry if every_entry else self._parts.probes,
            grace_is_over=grace_is_over,
            most_at_once=self._config.most_at_once,
            only=only,
        )
        await self._carry_out(metadata.ledger, core.begin(), core.step, settled)
        return outcome

    def _verification(self, metadata: LedgerMetadata) -> Verification:
        return self._ledger_parts.verification(metadata.ledger, self._ledger_parts.digest())

    async def _carry_out(
        self,
        ledger: int,
        effects: Sequence[Any],
        step: Callable[[Any], Sequence[Any]],
        settled: Callable[[object], None],
    ) -> None:
        """Until nothing is under way any more. `settled` hears effects that are not answered."""
        answers: asyncio.Queue[object] = asyncio.Queue()
        under_way = 0

        async def ask(effect: Asked) -> None:
            answers.put_nowait(await self._answer(ledger, effect))

        while effects or under_way:
            for effect in effects:
                if isinstance(effect, Asked):
                    under_way += 1
                    self._host.spawn(ask(effect), f"repair of ledger {ledger}")
                else:
                    settled(effect)
            if under_way:
                event = await answers.get()
                under_way -= 1
                effects = step(event)
            else:
                effects = ()

    async def _answer(self, ledger: int, effect: Asked) -> object:
        bookies = self._ledgers.bookies
        if isinstance(effect, ReadEntry):
            read = ReadRequest(bookie=effect.bookie, ledger=ledger, entry=effect.entry)
            reply, answer = await bookies.ask(effect.bookie, read)
            return ReadAnswered(effect.bookie, effect.entry, reply, answer.data)
        if isinstance(effect, Copy):
            add = AddRequest(bookie=effect.bookie, data=effect.data, is_recovery=True)
            reply, _ = await bookies.ask(effect.bookie, add)
            return AddAnswered(effect.bookie, effect.entry, reply)
        if isinstance(effect, AskLac):
            reply, answer = await bookies.ask(effect.bookie, ReadLacRequest(bookie=effect.bookie, ledger=ledger))
            return LacAnswered(effect.bookie, reply, answer.lac if reply is Reply.OK else NOTHING)
        if isinstance(effect, Publish):
            return Published(await self._publish(effect.metadata))
        return RecoveryEnded(await self.recover(ledger))

    async def _publish(self, metadata: LedgerMetadata) -> int | None:
        """The new version; None where it does not fit, or it is not known what came of it."""
        self._reports.copied(metadata.ledger)
        key, value = key_of(metadata.ledger), encode_metadata(metadata)
        try:
            version = await settled_put(self._metadata, key, value, metadata.version)
        except MetadataError:
            return None
        self._reports.published(metadata.ledger)
        return version

    async def recover(self, ledger: int) -> bool:
        """Whether it is closed."""
        try:
            await self._ledgers.recover(ledger)
        except (LedgerError, MetadataError) as error:
            self._host.log("recovery_failed", ledger=ledger, reason=str(error))
            return False
        return True
