"""A machine with a simulated disk and, one after the other, processes that open a DLedger store on it."""

from __future__ import annotations

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.dledger.entry_files import FileSizes
from system_under_test.dledger.store import FileStore
from tests.references.machine_with_disk import MachineWithDisk

SIZES = FileSizes(data_bytes=200, index_bytes=96)
"""Three small entries a data file, three records an index file."""
SMALL = FileSizes(data_bytes=400, index_bytes=160)


class DiskMachine(MachineWithDisk):
    def __init__(self, loop: VirtualTimeLoop, seed: int = 1, sizes: FileSizes = SIZES) -> None:
        super().__init__(loop, seed)
        self.sizes = sizes
        self.full_share = 1.0

    async def boot(self) -> FileStore:
        store = FileStore(self.disk(), "d", self.sizes, self.full_share)
        await store.open()
        return store

    async def after_power_loss(self) -> FileStore:
        self.lose_power()
        return await self.boot()
