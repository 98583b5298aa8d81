"""The simulated host: what a node knows of its surroundings, bound to one life of its process.

Satisfies `Host` of `system_under_test.runtime.host` by structure. A host whose process is dead does nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from harness.environments.simulated.clock import SimulatedClock
from harness.environments.simulated.connection import Endpoint
from harness.environments.simulated.disk import SimulatedDisk
from harness.environments.simulated.loop import NANOSECONDS
from harness.environments.simulated.moments import Moments
from harness.environments.simulated.network import SimulatedNetwork
from harness.environments.simulated.process import Process, SimulatedListener
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import SeamExceptions
from harness.seed import Seed
from harness.trace import Trace


class RarePaths:
    """Where the simulator takes the legal but unusual path."""

    __slots__ = ("_draws", "_regime", "_seed")

    def __init__(self, seed: Seed, regime: Regime) -> None:
        self._seed = seed
        self._regime = regime
        self._draws: dict[tuple[str, str], Callable[[], float] | None] = {}

    def unusual(self, host: str, point: str) -> bool:
        key = (host, point)
        if key not in self._draws:
            live = self._seed.child("unusual", point).stream().random() < self._regime.unusual_share
            self._draws[key] = self._seed.child("unusual", point, host).stream().random if live else None
        draw = self._draws[key]
        return draw is not None and draw() < self._regime.unusual_probability


class SimulatedHost:
    """`Host` of the seam, for one life of a process."""

    def __init__(
        self,
        process: Process,
        *,
        network: SimulatedNetwork,
        exceptions: SeamExceptions,
        seed: Seed,
        rare: RarePaths,
        trace: Trace,
        kernel: Context,
        moments: Moments,
        record: Callable[[str], None] | None,
    ) -> None:
        """`record` takes the lines of a node's event log; a client's host has none, and nobody watches it."""
        machine = process.machine
        self.name = machine.name
        self.clock = SimulatedClock(process, machine.clock, process.loop, trace)
        self.network = HostNetwork(self, process, network)
        self.disk = SimulatedDisk(machine.disk, process, exceptions)
        self.random = seed.child("host", machine.name, str(machine.lives)).stream()
        self._process = process
        self._rare = rare
        self._trace = trace
        self._kernel = kernel
        self._moments = moments
        self._counts = moments.counts_of(machine.name)
        self._record = record

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        process = self._process
        if not process.alive:
            # A `finally` that runs when the simulation throws its dead away; nothing may come of it.
            coroutine.close()
            raise asyncio.CancelledError
        loop = process.loop
        self._trace.event(loop.now_ns, self.name, "spawn", name)
        task = loop.create_task(coroutine, name=f"{self.name}/{name}", context=process.context.copy())
        process.tasks[task] = None
        task.add_done_callback(self._finished, context=self._kernel)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        process = self._process
        process.tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and process.alive:
            process.crash(error)

    def log(self, event: str, **fields: object) -> None:
        process = self._process
        if not process.alive:
            return
        now_ns = process.loop.now_ns
        line = json.dumps({"time": now_ns, "wall": self.clock.wall_ns(), "event": event, **fields})
        self._trace.event(now_ns, self.name, "log", line)
        if self._record is not None:
            self._record(line)
            process.machine.last_event = event
            if self._moments.watch is not None:
                self._moments.saw(self.name, event, fields)

    def unusual(self, point: str) -> bool:
        if not self._process.alive or not self._rare.unusual(self.name, point):
            return False
        self._trace.event(self._process.loop.now_ns, self.name, "unusual", point)
        return True

    def reached(self, point: str, **values: int) -> None:
        if self._process.alive:
            self._counts[point] += 1
            if values and self._moments.values is not None and self._record is not None:
                self._moments.observe(self.name, point, values)
            if self._moments.heeds_points and self._record is not None:
                self._moments.reached(self.name, point)
                if not self._process.alive:
                    # Killed within a step: none of the rest of it is run. It could go on for ever,
                    # for it would not read from its disk what it believes to have written.
                    raise asyncio.CancelledError


class HostNetwork:
    """`Network` of the seam."""

    __slots__ = ("_host", "_network", "_process")

    def __init__(self, host: SimulatedHost, process: Process, network: SimulatedNetwork) -> None:
        self._host = host
        self._process = process
        self._network = network

    async def listen(self, port: int, accept: Callable[[Any], Coroutine[Any, Any, None]]) -> SimulatedListener:
        return self._network.listen(self._process, port, accept, self._host.spawn)

    async def connect(self, address: str, timeout_s: float) -> Endpoint:
        return await self._network.connect(self._process, address, max(0, round(timeout_s * NANOSECONDS)))
