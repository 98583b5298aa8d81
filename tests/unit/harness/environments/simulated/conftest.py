"""A small cluster for tests of the simulator: nodes that lend out their hosts, and a regime that is calm."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from tests.unit.harness.environments.simulated.lending import LENT

Test = Callable[[SimulatedEnvironment, dict[str, Any]], Coroutine[Any, Any, None]]


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., Trace]:
    """Run a test body with nodes a, b and c; `hosts` always holds the newest life of each."""

    def run(
        body: Test,
        *,
        seed: int = 1,
        regime: Regime | None = None,
        main: str = "tests.unit.harness.environments.simulated.lending:lend",
    ) -> Trace:
        trace = Trace()

        async def whole(environment: SimulatedEnvironment) -> None:
            specs = [
                NodeSpec(name=name, groups=("nodes",), program=PythonProgram(main=main)) for name in ("a", "b", "c")
            ]
            await environment.start(specs, tmp_path)
            await environment.timeline.sleep(0)
            await body(environment, LENT)
            await environment.stop()

        LENT.clear()
        run_simulation(whole, Seed(seed), trace, regime=regime or Regime.calm())
        return trace

    return run
