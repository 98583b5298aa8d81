"""Whatever is asked, and wherever a bookie dies: it has what it acknowledged, and its answered fences hold.

Adds, fences and explicit LAC of a few ledgers come at random, many at once, on a disk that is full at times. A process
is killed, or loses power, at random moments, at its start and within checkpoints, too. A model knows what was begun and
what was answered.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.bookkeeper.bookie.message import BookieAnswer, Code
from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.parts import BookieParts
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.bookkeeper.bookie_machine import HEALTHY, BookieMachine

T = TypeVar("T")
LEDGERS = 4
ENTRIES = 12


@dataclass
class Model:
    """Of one ledger."""

    begun: dict[int, list[bytes]] = field(default_factory=dict)
    """By entry, the payloads that were sent, oldest first."""
    has: dict[int, int] = field(default_factory=dict)
    """By entry, from which of these on one must be there."""
    fence_begun: bool = False
    fence_answered: bool = False
    lac_begun: int = NOTHING
    lac_answered: int = NOTHING
    after_fence: set[int] | None = None
    """Entries that ordinary adds may have put there, once a fence was answered."""
    by_recovery: set[int] = field(default_factory=set)


class Play:
    def __init__(self, loop: VirtualTimeLoop, seed: int, *, is_synced: bool, parts: BookieParts = HEALTHY) -> None:
        self.draw = random.Random(seed)
        self.is_synced = is_synced
        self.machine = BookieMachine(loop, seed, parts=parts, journalMaxSize=1024, journalSyncData=is_synced)
        self.models = {ledger: Model() for ledger in range(1, LEDGERS + 1)}
        self.count = 0
        self.answered = 0
        self.ends = 0
        self.failures: list[AssertionError] = []

    async def some_time(self) -> None:
        loop = self.machine.store.loop
        await loop.sleep_until(loop.now_ns + self.draw.randrange(1, 3_000_000))

    def begin(self) -> None:
        draw = self.draw
        ledger = draw.randrange(1, LEDGERS + 1)
        model, kind = self.models[ledger], draw.random()
        if kind < 0.85:
            self._add(ledger, model, is_recovery=draw.random() < 0.2)
        elif kind < 0.93:
            lac = draw.randrange(ENTRIES)
            model.lac_begun = max(model.lac_begun, lac)
            self._watch(
                lambda: self.machine.write_lac(ledger, lac), lambda code: self._lac_was_written(model, lac, code)
            )
        elif kind < 0.95:
            self._watch(lambda: self._fence(ledger, model), lambda _: None)

    def _watch(self, ask: Callable[[], Awaitable[T]], then: Callable[[T], None]) -> None:
        async def watched() -> None:
            try:
                then(await ask())
            except AssertionError as error:
                self.failures.append(error)
            self.answered += 1

        self.machine.spawn(watched())

    def _add(self, ledger: int, model: Model, *, is_recovery: bool) -> None:
        self.count += 1
        entry, payload = self.draw.randrange(ENTRIES), b"%06d" % self.count + bytes(self.draw.randrange(200))
        lac = self.draw.randrange(NOTHING, ENTRIES)
        payloads = model.begun.setdefault(entry, [])
        payloads.append(payload)
        number, was_answered = len(payloads) - 1, model.fence_answered
        model.lac_begun = max(model.lac_begun, lac)
        if is_recovery:
            model.by_recovery.add(entry)
        answer = self.machine.add(ledger, entry, payload, lac=lac, is_recovery=is_recovery)

        def came(answer: BookieAnswer) -> None:
            if answer.code is Code.OK:
                assert is_recovery or not was_answered, "an ordinary add passed a fence"
                model.has[entry] = max(model.has.get(entry, 0), number)
                model.lac_answered = max(model.lac_answered, lac)
            else:
                assert answer.code in (Code.READ_ONLY, *([] if is_recovery else [Code.FENCED]))

        self._watch(lambda: answer, came)

    def _lac_was_written(self, model: Model, lac: int, code: Code) -> None:
        if code is Code.OK:
            model.lac_answered = max(model.lac_answered, lac)

    async def _fence(self, ledger: int, model: Model) -> None:
        model.fence_begun = True
        if await self.machine.fence(ledger) is Code.OK:
            model.fence_answered = True
            listed = set((await self.machine.listed(ledger))[1])
            model.after_fence = listed if model.after_fence is None else model.after_fence

    async def end(self) -> None:
        """One way or the other, and a start, which may be cut short as well."""
        machine, draw = self.machine, self.draw
        has_lost_power = self._ends()
        machine.room(None)
        while draw.random() < 0.3:
            start = asyncio.ensure_future(machine.boot(unclosed=list(self.models)))
            for _ in range(draw.randrange(4)):
                await self.some_time()
            start.cancel()
            has_lost_power = self._ends() or has_lost_power
        await machine.boot(unclosed=list(self.models))
        await self.check(may_have_lost=has_lost_power and not self.is_synced)

    def _ends(self) -> bool:
        self.ends += 1
        if self.draw.random() < 0.5:
            self.machine.kill()
            return False
        self.machine.power_off()
        return True

    async def check(self, *, may_have_lost: bool) -> None:
        machine = self.machine
        in_limbo = machine.bookie.in_limbo
        assert self.is_synced <= (in_limbo == [])
        for ledger, model in self.models.items():
            entries = set((await machine.listed(ledger))[1])
            for entry in range(ENTRIES):
                await self._check_entry(ledger, entry, model, may_have_lost=may_have_lost)
            if model.after_fence is not None and not may_have_lost:
                assert entries <= model.after_fence | model.by_recovery
            lac = await machine.lac(ledger)
            known = NOTHING if lac is Code.NO_SUCH_LEDGER else lac
            assert known <= model.lac_begun
            assert may_have_lost or known >= model.lac_answered
            refused = await self._refuses(ledger, model)
            assert refused or not model.fence_answered
            assert not refused or model.fence_begun or ledger in in_limbo
            model.fence_begun = model.fence_answered = refused
            if not refused:
                model.after_fence = None
            model.lac_answered = max(known, model.lac_answered) if not may_have_lost else known

    async def _check_entry(self, ledger: int, entry: int, model: Model, *, may_have_lost: bool) -> None:
        found = await self.machine.read(ledger, entry)
        if isinstance(found, bytes):
            place = model.begun[entry].index(found)
            assert may_have_lost or place >= model.has.get(entry, 0), "an older one came back"
            model.has[entry] = place
            return
        if not self.is_synced and may_have_lost:
            assert found is Code.UNKNOWN, "it says no where it may have lost"
            model.has.pop(entry, None)
            return
        assert entry not in model.has, f"{entry} of ledger {ledger} was acknowledged, and is answered {found!r}"
        assert found in (Code.NO_SUCH_ENTRY, Code.NO_SUCH_LEDGER, Code.UNKNOWN)

    async def _refuses(self, ledger: int, model: Model) -> bool:
        """An ordinary add of what may be there."""
        payload = b"probe"
        answer = await self.machine.add(ledger, ENTRIES, payload)
        model.begun.setdefault(ENTRIES, []).append(payload)
        return answer.code is Code.FENCED

    async def run(self, rounds: int) -> None:
        await self.machine.boot()
        for _ in range(rounds):
            for _ in range(self.draw.randrange(1, 60)):
                self.begin()
                if self.draw.random() < 0.2:
                    await self.some_time()
                if self.draw.random() < 0.02:
                    self.machine.room(self.draw.randrange(400))
                if self.draw.random() < 0.02:
                    self.machine.room(None)
            await self.end()
        self.machine.kill()
        assert self.failures == []
        assert self.machine.panics == []


@pytest.mark.parametrize("is_synced", [True, False], ids=["synced", "not-synced"])
@pytest.mark.parametrize("seed", range(40))
def test_a_bookie_has_what_it_acknowledged_wherever_it_dies(seed: int, is_synced: bool) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        play = Play(loop, seed, is_synced=is_synced)
        await play.run(12)
        assert play.answered > 50
        assert play.ends >= 12

    simulate(body)
