"""How skeleton is shown to Stormproof: its nodes, at what faults can be aimed, its clients, and what it may lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from stormproof import (
    Bounds,
    Client,
    ConnectFailed,
    ConnectionClosed,
    Declaration,
    FaultWindow,
    Host,
    LegalLoss,
    NodeReports,
    NodeSpec,
    PythonProgram,
)
from stormproof.skeletons.python.client import SkeletonClient
from stormproof.skeletons.python.program import PAUSE_S, PORT, asked


@dataclass(frozen=True, kw_only=True)
class SkeletonSettings:
    """What `--set key=value` can change; a number comes with its bounds."""

    nodes: Annotated[int, Bounds(1, 9)] = 3


class Skeleton:
    """`stormproof.System`."""

    name = "skeleton"
    settings_type = SkeletonSettings
    workloads = ("register",)  # stormproof list workloads shows the others
    mutants: Mapping[str, str] = {"forgets": "what was acknowledged is still there after a kill"}

    def nodes(self, settings: SkeletonSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        primary, *backups = _names(settings)
        kept_in = "memory" if mutant == "forgets" else "disk"
        program = PythonProgram(
            main="stormproof.skeletons.python.program:node",
            config={"primary": primary, "backups": backups, "kept_in": kept_in},
        )
        return tuple(
            NodeSpec(name=name, groups=("stores",), program=program, ports=(PORT,)) for name in _names(settings)
        )

    def cluster(self, settings: SkeletonSettings) -> Declaration:
        """`isolate primary every 10 for 5` aims at a role, `kill one of stores every 10 for 5` at a group."""
        return Declaration(groups=("stores",), data=("stores",), roles={"primary": "stores"}, recovers_within_s=20.0)

    def client(self, workload: str, settings: SkeletonSettings, host: Host, process: int) -> Client:
        return SkeletonClient(host, _names(settings), process)

    async def ready(self, settings: SkeletonSettings, host: Host, workload: str) -> None:
        """Every node answers, and one of them is the primary."""
        while True:
            roles = [await _role(host, name) for name in _names(settings)]
            if None not in roles and "primary" in roles:
                return
            await host.clock.sleep(PAUSE_S)

    async def roles(self, settings: SkeletonSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        """Asked when a fault is aimed at a role."""
        return {"primary": tuple([name for name in _names(settings) if await _role(host, name) == "primary"])}

    def legal_loss(
        self, settings: SkeletonSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        """Nothing: what is acknowledged is durable. Say here what yours may lose, and who says so."""
        return LegalLoss()


def _names(settings: SkeletonSettings) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in range(1, settings.nodes + 1))


async def _role(host: Host, name: str) -> str | None:
    """What a node says it is; None where it does not answer."""
    try:
        return str((await asked(host, name, {"f": "role"}))["role"])
    except (ConnectFailed, ConnectionClosed, TimeoutError):
        return None


SYSTEM = Skeleton()
"""What the entry point in pyproject.toml names."""
