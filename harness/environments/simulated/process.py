"""Machines, the processes that run on them, and the ports at which these listen.

A machine is what survives a crash: a name, a disk, a clock, a power switch. A process is one life of a
program on it. Whatever a process does runs in a context that names it, so that the loop can hold it still
(pause), slow it down, or see to it that nothing of it ever runs again (kill).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Protocol

from harness.environments.simulated.clock import MachineClock
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.loop import OWNER, Handle, VirtualTimeLoop
from harness.environments.simulated.slow_timers import USUAL


class Machine:
    """What a host keeps when its program dies."""

    __slots__ = (
        "callback_cost_ns",
        "clock",
        "disk",
        "heard",
        "last_event",
        "listeners",
        "lives",
        "name",
        "powered",
        "process",
    )

    def __init__(self, name: str, clock: MachineClock, disk: DiskStore) -> None:
        self.name = name
        self.clock = clock
        self.disk = disk
        self.powered = True
        self.process: Process | None = None
        self.lives = 0
        self.listeners: dict[int, SimulatedListener] = {}
        self.last_event = ""
        """The last event that its program reported."""
        self.heard = ""
        """The last event of a sender when it sent what arrived here last: it may have caused what comes."""
        self.callback_cost_ns = 0

    def slower(self, callback_cost_ns: int, stretch: float) -> None:
        """Each callback takes so much longer, and each sleep so many times as long, also in lives to come."""
        self.clock.set_stretch(self.clock.stretch * stretch)
        self._set_cost(self.callback_cost_ns + callback_cost_ns)

    def faster(self, callback_cost_ns: int, stretch: float) -> None:
        """Take away what `slower` has added."""
        left_ns = self.callback_cost_ns - callback_cost_ns
        is_over = left_ns == 0  # then without what rounding has left
        self.clock.set_stretch(USUAL if is_over else self.clock.stretch / stretch)
        self._set_cost(left_ns)

    def _set_cost(self, callback_cost_ns: int) -> None:
        self.callback_cost_ns = callback_cost_ns
        if self.process is not None and self.process.alive:
            self.process.slow_down(callback_cost_ns)


class OpenConnection(Protocol):
    """A process's side of a connection, as the kernel ends it together with the process."""

    def process_killed(self) -> None: ...

    def power_lost(self) -> None: ...


class Process:
    """One life of a program. `alive` until killed or ended; `paused` in between at will."""

    __slots__ = (
        "_busy_until_ns",
        "_callback_cost_ns",
        "_on_crash",
        "_parked",
        "alive",
        "connections",
        "context",
        "loop",
        "machine",
        "name",
        "paused",
        "root",
        "runs",
        "tasks",
    )

    def __init__(
        self, machine: Machine, loop: VirtualTimeLoop, on_crash: Callable[[Process, BaseException], None]
    ) -> None:
        self.machine = machine
        self.name = machine.name
        self.alive = True
        self.paused = False
        self.runs = True
        self.root: asyncio.Task[Any] | None = None
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.connections: dict[OpenConnection, None] = {}
        self.context: Context = copy_context()
        self.context.run(OWNER.set, self)
        self.loop = loop
        self._on_crash = on_crash
        self._parked: deque[Handle] = deque()
        self._callback_cost_ns = 0
        self._busy_until_ns = 0

    def admit(self, handle: Handle) -> bool:
        if not self.alive:
            return False
        if self.paused:
            self._parked.append(handle)
            return False
        if handle.delayed:
            return True
        handle.delayed = True
        now_ns = self.loop.now_ns
        if not self._parked and self._busy_until_ns <= now_ns:
            self._busy_until_ns = now_ns + self._callback_cost_ns
            return True
        self._parked.append(handle)
        if len(self._parked) == 1:
            self.loop.kernel_at(self._busy_until_ns, self._next)
        return False

    def _next(self) -> None:
        """The processor is free for the next callback that waits."""
        if self.paused or self.runs or not self._parked or self.loop.now_ns < self._busy_until_ns:
            return
        self.loop.soon(self._parked.popleft())
        self._busy_until_ns = self.loop.now_ns + self._callback_cost_ns
        if self._parked:
            self.loop.kernel_at(self._busy_until_ns, self._next)

    async def never(self) -> None:
        """What a dead process waits for: a call that it makes of the kernel is not answered."""
        await self.loop.create_future()

    def crash(self, error: BaseException) -> None:
        self._on_crash(self, error)

    def pause(self) -> None:
        self.paused = True
        self.runs = False

    def resume(self) -> None:
        """Go on: what fell due meanwhile runs now, in its order."""
        self.paused = False
        self._go_on()

    def slow_down(self, callback_cost_ns: int) -> None:
        """Let each callback take so long, one after the other, as on a starved processor; 0 for full speed."""
        self._callback_cost_ns = callback_cost_ns
        self._go_on()

    def _go_on(self) -> None:
        """What waits runs now, in its order, unless the process is paused still."""
        self.runs = self.alive and not self.paused and self._callback_cost_ns == 0
        while self._parked and not self.paused:
            self.loop.soon(self._parked.popleft())

    def die(self) -> None:
        """Nothing of this process runs any more, not even a `finally`."""
        self.alive = False
        self.runs = False
        self._parked.clear()
        self.loop.bury(self)


class SimulatedListener:
    """`Listener` of the seam."""

    __slots__ = ("accept", "port", "process", "spawn")

    def __init__(
        self,
        process: Process,
        port: int,
        accept: Callable[[Any], Coroutine[Any, Any, None]],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self.process = process
        self.port = port
        self.accept = accept
        self.spawn = spawn

    @property
    def open(self) -> bool:
        return self.process.alive and self.process.machine.listeners.get(self.port) is self

    def close(self) -> None:
        listeners = self.process.machine.listeners
        if listeners.get(self.port) is self:
            del listeners[self.port]
