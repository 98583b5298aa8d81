"""Masters and slaves without controllers, in the simulator: brokers b1 … whose roles are configured, NameServers c1 …

The verbs are those of `broker_cluster`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, GROUP, TOPIC, Cluster

MASTER: Mapping[str, object] = {}
SYNC_MASTER: Mapping[str, object] = {"brokerRole": "SYNC_MASTER"}


def slave(broker_id: int) -> Mapping[str, object]:
    return {"brokerRole": "SLAVE", "brokerId": broker_id}


def nameserver(name: str) -> NodeSpec:
    return NodeSpec(
        name=name,
        groups=("controllers",),
        program=PythonProgram(main="system_under_test.rocketmq.node:nameserver", config={}),
    )


def broker(name: str, settings: Mapping[str, object]) -> NodeSpec:
    config = {
        "brokerName": GROUP,
        "namesrvAddr": ";".join(f"{nameserver}:9876" for nameserver in CONTROLLERS),
        "topics": {TOPIC: 1},
        "mappedFileSizeCommitLog": 64 * 1024,
        "maxMessageSize": 16 * 1024,
        "slaveReadEnable": True,
        **settings,
    }
    return NodeSpec(
        name=name,
        groups=("brokers",),
        program=PythonProgram(main="system_under_test.rocketmq.node:broker", config=config),
    )


def play(
    story: Callable[[Cluster], Coroutine[Any, Any, None]],
    *roles: Mapping[str, object],
    seed: int = 1,
    **settings: object,
) -> None:
    """Run a story on brokers b1 … with these roles, by their settings, once all of them are known to NameServers and
    all slaves follow. `settings` are those of all brokers."""
    brokers = [broker(f"b{number}", {**role, **settings}) for number, role in enumerate(roles, 1)]

    async def whole(environment: SimulatedEnvironment) -> None:
        async def late(name: str) -> None:
            await environment.start([broker(name, {**slave(int(name[1:])), **settings})], Path(logs))

        cluster = Cluster(environment, [spec.name for spec in brokers], late)
        await environment.start([nameserver(name) for name in CONTROLLERS], Path(logs))
        await environment.start(brokers, Path(logs))
        await cluster.sleep(5)
        await story(cluster)
        await environment.stop()
        assert not environment.panics()

    with tempfile.TemporaryDirectory() as logs:
        run_simulation(whole, Seed(seed), Trace(), regime=Regime.calm())
