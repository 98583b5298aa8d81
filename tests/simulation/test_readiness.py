"""When the system counts as serving again."""

from __future__ import annotations

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.rocketmq.client.message_client import MessageClient
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.settings import NAMESERVER_PORT, TOPIC, RocketmqSettings

SETTINGS = RocketmqSettings(time_scale=1.0)


def test_it_serves_again_once_every_name_server_leads_to_the_brokers() -> None:
    async def story(environment: SimulatedEnvironment) -> None:
        await environment.start(SYSTEM.nodes(SETTINGS, None), None)
        host = environment.client_host("client")
        await host.clock.within(60, SYSTEM.ready(SETTINGS, host, "log"))
        await environment.kill(["c3"])
        await host.clock.within(60, SYSTEM.ready(SETTINGS, host, "log"))
        await environment.boot(["c3"])
        await host.clock.within(60, SYSTEM.ready(SETTINGS, host, "log"))
        client = MessageClient(host, [f"c3:{NAMESERVER_PORT}"], 1.0)
        assert (await client.route(TOPIC)).groups[0].master
        client.close()
        await environment.stop()

    run_simulation(story, Seed(1), Trace(), regime=Regime.calm())
