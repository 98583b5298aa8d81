"""A cluster with a planted bug starts and serves: what is planted is a bug, not a system that does nothing."""

from __future__ import annotations

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.seed import Seed
from harness.trace import Trace
from tests.rocketmq.mutants.planted_parts import MUTANTS
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.clients.connect import key_value_client, message_client
from workloads.systems.rocketmq.settings import TOPIC, RocketmqSettings

PATIENCE_S = 60.0
SETTINGS = RocketmqSettings(topic_queues=1)
LETTERS = [b"letter %d" % number for number in range(5)]


async def serve(environment: SimulatedEnvironment, mutant: str) -> None:
    await environment.start(SYSTEM.nodes(SETTINGS, mutant), None)
    host = environment.client_host("client")
    await host.clock.within(PATIENCE_S, SYSTEM.ready(SETTINGS, host, "log"))
    messages, values = message_client(host, SETTINGS), key_value_client(host, SETTINGS, 0)
    for letter in LETTERS:
        await messages.send(TOPIC, 0, letter)
    pulled = await messages.pull(TOPIC, 0, 0, 32, "readers")
    assert [body for _, body in pulled.messages] == LETTERS
    await values.put("key", 1)
    await values.compare_and_set("key", 1, 2)
    assert await values.get("key") == 2
    messages.close()
    values.close()
    await environment.stop()
    assert not environment.panics()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate if place % 4 else []) for place, name in enumerate(MUTANTS)]
)
def test_a_cluster_with_a_planted_bug_starts_and_serves(name):
    run_simulation(lambda environment: serve(environment, name), Seed(1), Trace(), regime=Regime.calm())
