"""A machine with a simulated disk and, one after the other, processes that keep queues' messages on it."""

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
from system_under_test.cmq.entry import Command, encode
from system_under_test.cmq.message_files import MessageFiles
from system_under_test.cmq.state_machine import NO_QUEUES, CopiedState, QueueGroupState, Result

T = TypeVar("T")
PLACE = "files-0"
FILE_BYTES = 100
"""Five messages of four bytes."""
MAX_QUEUES = 4


class QueueProcess:
    """A group's state on one node, with its files."""

    def __init__(
        self, disk: SimulatedDisk, copied: CopiedState, place: str = PLACE, files: type[MessageFiles] = MessageFiles
    ) -> None:
        self.disk = disk
        self.files = files(disk)
        self.state = QueueGroupState(FILE_BYTES, MAX_QUEUES, self.files.restore(place, copied))

    def apply(self, command: Command) -> Result:
        applied = self.state.apply(encode(command))
        for write in applied.writes:
            self.files.write(write)
        return applied.result

    def messages(self) -> dict[str, dict[int, bytes]]:
        """By queue and number, all that are not acknowledged."""
        return {
            name: {
                number: self.files.read(name, number)
                for number in range(queue.bitmap.base, queue.next_number)
                if not queue.bitmap.is_set(number)
            }
            for name, queue in self.state.queues.items()
        }


class MessageMachine:
    def __init__(self, loop: VirtualTimeLoop, seed: int = 1) -> None:
        self.store = DiskStore("n1", loop, Seed(seed), Regime.calm(), Trace())
        self._process = SimpleNamespace(alive=False)

    def disk(self) -> SimulatedDisk:
        """Of a new process; the one before is dead."""
        self._process.alive = False
        self._process = SimpleNamespace(alive=True)
        return SimulatedDisk(self.store, cast(Process, self._process), seam_exceptions())

    def boot(
        self, copied: CopiedState = NO_QUEUES, place: str = PLACE, files: type[MessageFiles] = MessageFiles
    ) -> QueueProcess:
        return QueueProcess(self.disk(), copied, place, files)

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
