"""PySyncObj as a system: three nodes with registers, a leader among them.

pip install -e examples/pysyncobj
stormproof run pysyncobj --environment docker --workload register --nemesis partition,kill
stormproof run pysyncobj --environment docker --workload register --set reads=here
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pysyncobj_trial.client import RegisterClient, status
from pysyncobj_trial.nodes import NODES, node
from stormproof import Client, Declaration, FaultWindow, Host, LegalLoss, NodeReports, NodeSpec

PAUSE_S = 0.2


@dataclass(frozen=True, kw_only=True)
class PySyncObjSettings:
    reads: Literal["log", "here"] = "log"
    """Reads have a place in the log as writes do, or are what the node asked has."""
    journal: bool = True
    """Whether nodes keep their log in a file; PySyncObj's own default is not to."""


class PySyncObj:
    """`stormproof.System`."""

    name, settings_type, workloads = "pysyncobj", PySyncObjSettings, ("register",)
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: PySyncObjSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return tuple(node(name, reads=settings.reads, keeps_journal=settings.journal) for name in NODES)

    def cluster(self, settings: PySyncObjSettings) -> Declaration:
        groups = ("servers",)
        return Declaration(
            groups=groups, data=groups, voters=groups, roles={"leader": "servers"}, recovers_within_s=60.0
        )

    def client(self, workload: str, settings: PySyncObjSettings, host: Host, process: int) -> Client:
        return RegisterClient(host, process)

    async def ready(self, settings: PySyncObjSettings, host: Host, workload: str) -> None:
        """All have what was committed, and one leads."""
        while True:
            said = [await status(host, name) for name in NODES]
            if all(one.get("ready") for one in said) and any(one["leader"] for one in said):
                return
            await host.clock.sleep(PAUSE_S)

    async def roles(self, settings: PySyncObjSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        return {"leader": tuple([name for name in NODES if (await status(host, name)).get("leader")])}

    def legal_loss(
        self, settings: PySyncObjSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        """Nothing: it is Raft by its own words. docs/systems/pysyncobj.md has what it does not promise."""
        return LegalLoss()


SYSTEM = PySyncObj()
