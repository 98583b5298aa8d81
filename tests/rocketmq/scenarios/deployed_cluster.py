"""Clusters put together node by node, in the simulator: each with the settings of its file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.message_client import MessageClient
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster

Config = Mapping[str, object]


def node(name: str, kind: str, config: Config) -> NodeSpec:
    """`kind`: `nameserver`, `controller` or `broker`."""
    main = f"system_under_test.rocketmq.node:{kind}"
    return NodeSpec(name=name, groups=(kind,), program=PythonProgram(main=main, config=config))


class Deployed(Cluster):
    """Of these nodes; clients are led by all NameServers among them."""

    def __init__(self, environment: SimulatedEnvironment, nodes: Mapping[str, NodeSpec]) -> None:
        brokers = [name for name, spec in nodes.items() if spec.groups == ("broker",)]
        super().__init__(environment, brokers, self._add)
        asked = [f"{name}:9878" for name, spec in nodes.items() if spec.groups != ("broker",)]
        self._controllers = ControllerClient(self._host, asked, 2.0)
        self.name_servers = [f"{name}:9876" for name, spec in nodes.items() if spec.groups == ("nameserver",)]

    async def _add(self, name: str) -> None:
        raise NotImplementedError(name)

    async def reconfigure(self, name: str, config: Config) -> None:
        """Of a node that is down: it starts again with these settings, on the disk that it has."""
        machine = self._environment._nodes[name]
        machine.config = config
        await self.boot(name)

    async def publish(self, letter: str, within_s: float = 60) -> str:
        """Send as a producer does, led by NameServers, until it is acknowledged; who did that."""
        client = MessageClient(self._host, self.name_servers, 2.0)
        sent: list[str] = []

        async def is_sent() -> bool:
            with suppress(ClientError):
                sent.append((await client.send(TOPIC, 0, letter.encode())).broker.partition(":")[0])
            return bool(sent)

        try:
            await self.until(is_sent, within_s)
        finally:
            client.close()
        return sent[0]

    async def is_published(self, letter: str, within_s: float) -> bool:
        try:
            await self.publish(letter, within_s)
        except AssertionError:
            return False
        return True

    async def until_letters(self, node: str, *letters: str, within_s: float = 30) -> None:
        """This replica shows these, and no others."""

        async def are_shown() -> bool:
            return await self.read(node) == list(letters)

        await self.until(are_shown, within_s)


def play(
    story: Callable[[Deployed], Coroutine[Any, Any, None]],
    *nodes: NodeSpec,
    seed: int = 1,
    may_end: tuple[str, ...] = (),
) -> None:
    """Run a story on these nodes, all of which are started at once. `may_end`: nodes that may end by themselves."""

    async def whole(environment: SimulatedEnvironment) -> None:
        cluster = Deployed(environment, {spec.name: spec for spec in nodes})
        await environment.start(nodes, Path(logs))
        await story(cluster)
        await environment.stop()
        assert not set(environment.panics()) - set(may_end), environment.panics()

    with tempfile.TemporaryDirectory() as logs:
        run_simulation(whole, Seed(seed), Trace(), regime=Regime.calm())
