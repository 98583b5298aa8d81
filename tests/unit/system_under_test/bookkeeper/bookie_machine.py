"""A machine with a simulated disk and, one after the other, processes of a bookie on it, asked without a network."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

from harness.environments.simulated.disk import SimulatedDisk
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.environments.simulated.process import Process
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import seam_exceptions
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.bookie.config import BookieConfig
from system_under_test.bookkeeper.bookie.identity import Identity
from system_under_test.bookkeeper.bookie.message import (
    AddRequest,
    BookieAnswer,
    BookieRequest,
    Code,
    ListRequest,
    ReadLacRequest,
    ReadRequest,
    WriteLacRequest,
)
from system_under_test.bookkeeper.bookie.registration import Willing
from system_under_test.bookkeeper.entry import NOTHING, Entry, decode_entry, encode_entry
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.settings import read_config
from system_under_test.runtime.host import Host
from tests.references.machine_with_disk import simulate

ME = "00000000000000b1"
GONE = "00000000000000a0"
OTHER = "00000000000000ff"
HEALTHY = BookieParts()


class Clock:
    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop

    def monotonic_ns(self) -> int:
        return self._loop.now_ns

    async def sleep(self, seconds: float) -> None:
        await self._loop.sleep_until(self._loop.now_ns + max(1, round(seconds * 1e9)))

    async def within(self, seconds: float, awaitable: Any) -> Any:
        async with asyncio.timeout(seconds):
            return await awaitable


class Saying:
    """An `Availability` that remembers what it was asked to say, and says it once it may."""

    def __init__(self) -> None:
        self.heard: list[Willing] = []
        self.may_say = asyncio.Event()
        self.may_say.set()

    async def say(self, willing: Willing) -> None:
        await self.may_say.wait()
        self.heard.append(willing)


class BookieMachine:
    def __init__(
        self, loop: VirtualTimeLoop, seed: int = 1, *, parts: BookieParts = HEALTHY, **settings: object
    ) -> None:
        self.store = DiskStore("b1", loop, Seed(seed), Regime.calm(), Trace())
        self.clock = Clock(loop)
        self.parts = parts
        self.config = read_config(BookieConfig, settings)
        self.saying = Saying()
        self.events: list[tuple[str, dict[str, Any]]] = []
        """Of all processes, points as well."""
        self.panics: list[BaseException] = []
        self._process = SimpleNamespace(alive=False)
        self._tasks: list[asyncio.Task[Any]] = []
        self._bookie: Bookie | None = None
        self.digest = parts.digest()

    @property
    def bookie(self) -> Bookie:
        assert self._bookie is not None
        return self._bookie

    def host(self) -> Host:
        """Of a new process; the one before is dead."""
        self.kill()
        self._process = SimpleNamespace(alive=True)
        disk = SimulatedDisk(self.store, cast(Process, self._process), seam_exceptions())
        host = SimpleNamespace(
            name="b1", clock=self.clock, disk=disk, random=random.Random(1), spawn=self._spawn, log=self._log
        )
        host.reached = self._log
        return cast(Host, host)

    def _log(self, event: str, **values: Any) -> None:
        self.events.append((event, values))

    def named(self, event: str) -> list[dict[str, Any]]:
        return [values for name, values in self.events if name == event]

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.ensure_future(coroutine)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.panics.append(error)

    # a process's life

    async def boot(self, unclosed: list[int] | None = None) -> Bookie:
        """`unclosed`: the ledgers that count on it, should it have lost what it acknowledged."""
        self._bookie = bookie = self.parts.bookie(self.host(), self.config, self.digest)
        await bookie.open()
        in_doubt = (unclosed or []) if bookie.may_have_lost else []
        await bookie.start(Identity(ME, frozenset([GONE])), self.saying, in_doubt)
        return bookie

    def kill(self) -> None:
        self._process.alive = False
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def power_off(self) -> None:
        self.kill()
        self.store.lose_power()

    def room(self, more: int | None) -> None:
        """From now on there is room for so many bytes more."""
        self.store.faults.capacity_bytes = None if more is None else self.store.used_bytes + more

    def files(self, folder: str) -> list[str]:
        return [path for path, _ in self.store.files() if path.startswith(f"bookie/{folder}")]

    # requests

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Of a client that ends with the process."""
        self._tasks.append(asyncio.ensure_future(coroutine))

    def ask(self, request: BookieRequest) -> asyncio.Future[BookieAnswer]:
        """In a task of the process, begun at once."""
        answer = self.bookie.answer(request)
        if inspect.iscoroutine(answer):
            task = asyncio.ensure_future(answer)
            self._tasks.append(task)
            return task
        future: asyncio.Future[BookieAnswer] = asyncio.get_running_loop().create_future()
        future.set_result(cast(BookieAnswer, answer))
        return future

    def entry(self, ledger: int, entry: int, payload: bytes = b"payload", lac: int = NOTHING) -> bytes:
        return encode_entry(Entry(ledger, entry, lac, len(payload), payload), self.digest)

    def add(
        self, ledger: int, entry: int, payload: bytes = b"payload", *, lac: int = NOTHING, is_recovery: bool = False
    ) -> asyncio.Future[BookieAnswer]:
        data = self.entry(ledger, entry, payload, lac)
        return self.ask(AddRequest(bookie=ME, data=data, is_recovery=is_recovery))

    async def added(self, ledger: int, *entries: int, **options: Any) -> Code:
        """What came of the last one."""
        answers = await asyncio.gather(*(self.add(ledger, entry, **options) for entry in entries))
        return answers[-1].code

    async def read(self, ledger: int, entry: int, *, fences: bool = False) -> bytes | Code:
        """The payload."""
        answer = await self.ask(ReadRequest(bookie=ME, ledger=ledger, entry=entry, fences=fences))
        if answer.code is not Code.OK:
            return answer.code
        return decode_entry(answer.data, self.digest, ledger, entry).payload

    async def lac(self, ledger: int, *, fences: bool = False) -> int | Code:
        answer = await self.ask(ReadLacRequest(bookie=ME, ledger=ledger, fences=fences))
        return answer.lac if answer.code is Code.OK else answer.code

    async def fence(self, ledger: int) -> Code:
        return (await self.ask(ReadLacRequest(bookie=ME, ledger=ledger, fences=True))).code

    async def write_lac(self, ledger: int, lac: int) -> Code:
        return (await self.ask(WriteLacRequest(bookie=ME, ledger=ledger, lac=lac))).code

    async def listed(self, ledger: int, first: int = 0) -> tuple[Code, tuple[int, ...]]:
        answer = await self.ask(ListRequest(bookie=ME, ledger=ledger, first=first))
        return answer.code, answer.entries


def story(body: Callable[[BookieMachine], Coroutine[Any, Any, None]], **settings: Any) -> BookieMachine:
    """Play it on a machine of its own; no task of the bookie may fail."""

    async def whole(loop: VirtualTimeLoop) -> BookieMachine:
        machine = BookieMachine(loop, **settings)
        await body(machine)
        machine.kill()
        return machine

    machine = simulate(whole)
    assert machine.panics == []
    return machine
