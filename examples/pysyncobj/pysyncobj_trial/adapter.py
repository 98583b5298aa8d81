"""PySyncObj as a system: three nodes with registers, a leader among them.

pip install -e examples/pysyncobj
stormproof run pysyncobj --environment docker --workload register --nemesis partition,kill
stormproof run pysyncobj --environment docker --workload register --set reads=here
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pysyncobj_trial.client import RegisterClient, status
from pysyncobj_trial.nodes import DUMP, JOURNAL, NODES, node
from stormproof import Bounds, Client, Declaration, FaultWindow, Host, LegalLoss, NodeReports, NodeSpec

PAUSE_S = 0.2


@dataclass(frozen=True, kw_only=True)
class PySyncObjSettings:
    reads: Literal["log", "here"] = "log"
    """Reads have a place in the log as writes do, or are what the node asked has."""
    keep: Literal["all", "journal", "nothing"] = "all"
    """Whether nodes keep their log in a file (`journalFile`), and in another one (`fullDumpFile`) what they cut off it
    when it has grown long. PySyncObj's own default is to keep nothing."""
    longest_log: Annotated[int, Bounds(2, 1_000_000)] = 5_000
    """Entries after which a log is cut (`logCompactionMinEntries`)."""


class PySyncObj:
    """`stormproof.System`."""

    name, settings_type, workloads = "pysyncobj", PySyncObjSettings, ("register",)
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: PySyncObjSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        kept = {"all": {**JOURNAL, **DUMP}, "journal": JOURNAL, "nothing": {}}[settings.keep]
        options = {**kept, "logCompactionMinEntries": settings.longest_log}
        return tuple(node(name, reads=settings.reads, options=options) for name in NODES)

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
