"""A workload's client where several workloads run side by side, and which of them a thread is for."""

from __future__ import annotations

from dataclasses import dataclass

from harness.client import Client
from harness.generator.strands import inward, outward, shares
from harness.operation import Operation
from harness.workload import Workload


def strand_of(workload: Workload, thread: int, concurrency: int) -> str:
    """The name of the workload that this thread is for."""
    names = workload.names
    return next(name for name, threads in zip(names, shares(concurrency, len(names)), strict=True) if thread in threads)


@dataclass(frozen=True, slots=True)
class StrandClient:
    """A client that knows its own workload alone."""

    strand: str
    client: Client

    async def open(self) -> None:
        await self.client.open()

    async def invoke(self, operation: Operation) -> Operation:
        return outward(self.strand, await self.client.invoke(inward(self.strand, operation)))

    async def close(self) -> None:
        await self.client.close()
