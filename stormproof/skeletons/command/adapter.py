"""How skeleton is shown to Stormproof: its nodes, at what faults can be aimed, its clients, and what it may lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stormproof import (
    Client,
    Declaration,
    FaultWindow,
    Host,
    LegalLoss,
    NodeReports,
    NodeSpec,
    Operation,
    OperationError,
)
from stormproof.skeletons.command.client import SkeletonClient
from stormproof.skeletons.command.nodes import NODE, node

PAUSE_S = 0.2


@dataclass(frozen=True, kw_only=True)
class SkeletonSettings:
    """What `--set key=value` can change: nothing yet."""


class Skeleton:
    """`stormproof.System`."""

    name = "skeleton"
    settings_type = SkeletonSettings
    workloads = ("register",)  # stormproof list workloads shows the others
    mutants: Mapping[str, str] = {"forgets": "what was acknowledged is still there after a kill"}

    def nodes(self, settings: SkeletonSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return (node(forgets=mutant == "forgets"),)

    def cluster(self, settings: SkeletonSettings) -> Declaration:
        """`kill primary every 10 for 5` aims at a role, `kill one of stores every 10 for 5` at a group."""
        return Declaration(groups=("stores",), data=("stores",), roles={"primary": "stores"}, recovers_within_s=60.0)

    def client(self, workload: str, settings: SkeletonSettings, host: Host, process: int) -> Client:
        return SkeletonClient(host)

    async def ready(self, settings: SkeletonSettings, host: Host, workload: str) -> None:
        """It answers a read."""
        client = SkeletonClient(host)
        while True:
            try:
                await client.invoke(Operation(0, "invoke", "read", key="ready"))
                return await client.close()
            except OperationError:
                await host.clock.sleep(PAUSE_S)

    async def roles(self, settings: SkeletonSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        """Asked when a fault is aimed at a role. Ask the nodes here, where there are several."""
        return {"primary": (NODE,)}

    def legal_loss(
        self, settings: SkeletonSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        """Nothing: what is acknowledged is on the disk. Say here what yours may lose, and who says so."""
        return LegalLoss()


SYSTEM = Skeleton()
"""What the entry point in pyproject.toml names."""
