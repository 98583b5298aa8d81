"""A machine with a simulated disk, and one after the other processes that use it, without the rest of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from harness.environments.simulated.disk import SimulatedDisk
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.environments.simulated.process import Process
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import seam_exceptions
from harness.seed import Seed
from harness.trace import Trace

T = TypeVar("T")


class MachineWithDisk:
    def __init__(self, loop: VirtualTimeLoop, seed: int = 1) -> None:
        self.store = DiskStore("n1", loop, Seed(seed), Regime.calm(), Trace())
        self._process = SimpleNamespace(alive=False)

    def disk(self) -> SimulatedDisk:
        """Of a new process; the one before is dead."""
        self._process.alive = False
        self._process = SimpleNamespace(alive=True)
        return SimulatedDisk(self.store, cast(Process, self._process), seam_exceptions())

    def lose_power(self) -> None:
        self._process.alive = False
        self.store.lose_power()

    def room(self, more: int | None) -> None:
        """From now on there is room for so many bytes more."""
        self.store.faults.capacity_bytes = None if more is None else self.store.used_bytes + more


def simulate(body: Callable[[VirtualTimeLoop], Coroutine[Any, Any, T]]) -> T:
    loop = VirtualTimeLoop()  # type: ignore[abstract]
    try:
        return loop.run(body(loop))
    finally:
        loop.close()
