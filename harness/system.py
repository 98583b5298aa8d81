"""How a system shows itself to the harness. Adapters live in `workloads/systems` or in other people's packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harness import path_name
from harness.client import Client
from harness.program import PythonProgram
from harness.record.fault_log import Storm


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One process of the system: the same description starts it in every environment that can run its program.

    Raises UsageError for a name that cannot be a folder's: its logs lie under it.
    """

    name: str
    groups: tuple[str, ...]
    """Names that targets may use, such as `brokers`, `controllers`."""
    program: PythonProgram
    ports: tuple[int, ...] = ()
    """Ports that clients (not only other nodes) reach."""
    replica: bool = False
    """Whether it holds a copy of the data that the final reads compare."""

    def __post_init__(self) -> None:
        path_name.checked(self.name, "a node")


@dataclass(frozen=True, kw_only=True)
class LegalLoss:
    """What this configuration may legally do under the faults that were applied (empty: nothing)."""

    anomalies: tuple[str, ...] = ()
    """Names of anomalies that are reported but do not make the verdict invalid."""
    reason: str = ""


class System(Protocol):
    """A system on trial. `settings` is the system's own frozen dataclass, made by the registry from `--set`."""

    @property
    def name(self) -> str: ...

    @property
    def settings_type(self) -> type: ...

    @property
    def workloads(self) -> tuple[str, ...]: ...

    @property
    def mutants(self) -> Mapping[str, str]:
        """Planted bugs that `--mutant` chooses -> the promise that each breaks."""

    def nodes(self, settings: Any, mutant: str | None) -> tuple[NodeSpec, ...]: ...

    def client(self, workload: str, settings: Any, host: Any, process: int) -> Client:
        """A client for one logical process that reaches the nodes through `host`."""

    async def ready(self, settings: Any, host: Any, workload: str) -> None:
        """Return once the system serves the workload (the caller bounds the wait)."""

    async def roles(self, settings: Any, host: Any) -> Mapping[str, tuple[str, ...]]:
        """Who plays which part now, e.g. {"primary": ("b2",), "active-controller": ("c1",)}; best effort."""

    def legal_loss(self, settings: Any, storm: Storm) -> LegalLoss:
        """The cell of the table of legal losses for this configuration and what struck."""
