"""The simulator as a kind of environment: one seed, one trace."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.environments.environment import Environment
from harness.environments.kind import Setting, refuse_inventory
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.system import NodeSpec
from harness.trace import Trace

T = TypeVar("T")


@dataclass(frozen=True)
class Simulated:
    """`EnvironmentKind`."""

    name: str = "simulated"
    faults: frozenset[str] = SimulatedEnvironment.faults
    has_moments: bool = True
    takes_inventory: bool = False
    has_packets: bool = False
    reaches_clients: bool = True
    programs: tuple[type, ...] = (PythonProgram,)
    about: str = "deterministic simulator in virtual time; needs nothing"

    def require_placed(self, nodes: Sequence[NodeSpec], inventory: str) -> None:
        refuse_inventory(self.name, inventory)

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], setting: Setting
    ) -> tuple[T, Mapping[str, Any]]:
        trace = Trace(recording=setting.recording)
        made: list[SimulatedEnvironment] = []

        async def inside(environment: SimulatedEnvironment) -> T:
            made.append(environment)
            return await main(environment)

        try:
            seed = setting.seed.child("world")
            result = run_simulation(inside, seed, trace, regime=Regime.of_world(setting.world, seed))
        finally:
            trace.close()
        (environment,) = made
        return result, {
            "trace_hash": trace.digest(),
            "trace_events": trace.count,
            "regime": environment.regime.to_json(),
            "reached": dict(environment.reached()),
        }


SIMULATED = Simulated()
