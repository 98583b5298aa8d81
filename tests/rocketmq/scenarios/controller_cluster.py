"""Controllers in the simulator, and brokers that only send requests to the controllers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.rocketmq.client.controller_client import ControllerClient, ControllerRefusal
from system_under_test.rocketmq.controller.protocol import BrokerReport, ReplicaInfo

CONTROLLERS = ("c1", "c2", "c3")
CLUSTER = "cluster"
GROUP = "broker-a"


class ScriptedBroker:
    """Says what the script makes it say. `number` is only its name; the controller gives it its id."""

    def __init__(self, env: SimulatedEnvironment, number: int) -> None:
        self.name = f"b{number}"
        self.env = env
        self.host = env.client_host(self.name)
        self.broker_id = 0
        self.life = 0
        self.offset = 0
        self.master_epoch = 0
        self.priority = 100
        self.is_learner = False
        self.notices: list[ReplicaInfo] = []
        self._server = RemotingServer(self.host, self._on_request)
        self._beating: asyncio.Task[None] | None = None
        self._listens = False
        self.client = self._new_client()

    def _new_client(self) -> ControllerClient:
        return ControllerClient(self.host, [f"{name}:9878" for name in CONTROLLERS], timeout_s=1.0)

    def _on_request(self, command: RemotingCommand, peer: Peer) -> RemotingCommand | None:
        assert command.code == RequestCode.NOTIFY_BROKER_ROLE_CHANGED
        self.notices.append(ReplicaInfo.from_answer(command.ext_fields, command.body))
        return None

    def report(self) -> BrokerReport:
        return BrokerReport(
            cluster=CLUSTER,
            group=GROUP,
            broker_id=self.broker_id,
            address=f"{self.name}:10911",
            incarnation=f"{self.name}, life {self.life}",
            master_epoch=self.master_epoch,
            max_offset=self.offset,
            priority=self.priority,
            is_learner=self.is_learner,
        )

    async def start(self) -> ReplicaInfo:
        """A new process: three steps of registration (the first two only once), then heartbeats."""
        self.life += 1
        if not self._listens:
            await self._server.start(10911)
            self._listens = True
        while self.broker_id == 0:
            wanted = await self.insist(lambda: self.client.get_next_broker_id(CLUSTER, GROUP))
            try:
                await self.client.apply_broker_id(CLUSTER, GROUP, wanted, f"code of {self.name}")
                self.broker_id = wanted
            except ClientError:
                await self.env.timeline.sleep(0.1)
        info = await self.insist(lambda: self.client.register_broker(self.report()))
        self._beating = self.host.spawn(self._beat(), f"heartbeats of {self.name}")
        return info

    async def _beat(self) -> None:
        while True:
            for controller in self.client.controllers:
                try:
                    await self.client.heartbeat(controller, self.report())
                except ClientError:
                    continue
            await self.env.timeline.sleep(1.0)

    def fall_silent(self) -> None:
        """No heartbeat any more; the connections stay."""
        if self._beating is not None:
            self._beating.cancel()

    def speak_again(self) -> None:
        self._beating = self.host.spawn(self._beat(), f"heartbeats of {self.name}")

    def die(self) -> None:
        """The process ends: its connections close."""
        self.fall_silent()
        self.client.close()
        self.client = self._new_client()

    async def insist(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask until a controller answers."""
        for _ in range(300):
            try:
                return await ask()
            except ControllerRefusal as refusal:
                if refusal.code != "not-leader":
                    raise
            except ClientError:
                pass
            await self.env.timeline.sleep(0.1)
        raise AssertionError("no controller answers")

    async def refusal(self, ask: Callable[[], Awaitable[Any]]) -> str:
        """The name of the code with which this is refused, `SUCCESS` if it is not."""
        try:
            await self.insist(ask)
        except ControllerRefusal as refused:
            return ResponseCode(refused.response_code).name
        return "SUCCESS"

    async def answer_of(self, controller: str) -> str:
        """What one controller says to getReplicaInfo, leader or not."""
        self.client.active = controller
        try:
            await self.client.get_replica_info(GROUP)
        except ClientError as error:
            return error.code
        return "SUCCESS"

    async def elect(self) -> ReplicaInfo:
        info: ReplicaInfo = await self.insist(lambda: self.client.elect_master(CLUSTER, GROUP, self.broker_id))
        return info

    async def alter(self, *members: int) -> None:
        """As a master does that knows the current state."""
        info = await self.info()
        await self.insist(
            lambda: self.client.alter_sync_state_set(
                GROUP, self.broker_id, info.master_epoch, members, info.sync_state_set.epoch
            )
        )

    async def info(self) -> ReplicaInfo:
        info: ReplicaInfo = await self.insist(lambda: self.client.get_replica_info(GROUP))
        return info


class ControllerCluster:
    def __init__(self, env: SimulatedEnvironment, logs: Path) -> None:
        self.env = env
        self._logs = logs

    async def start_controller(self, name: str, **config: Any) -> None:
        """One that was not there from the beginning; it waits to be added."""
        await self.env.start([controller(name, **config)], self._logs)

    async def broker(self, number: int) -> ScriptedBroker:
        """Started, and not master."""
        broker = ScriptedBroker(self.env, number)
        await broker.start()
        return broker

    async def three(self) -> tuple[ScriptedBroker, ScriptedBroker, ScriptedBroker]:
        """b1 is master, all three are in the set."""
        b1, b2, b3 = [await self.broker(number) for number in (1, 2, 3)]
        await b1.elect()
        await self.pass_s(1.5)
        await b1.alter(1, 2, 3)
        return b1, b2, b3

    async def pass_s(self, seconds: float) -> None:
        await self.env.timeline.sleep(seconds)

    async def cut_between(self, pairs: list[tuple[str, str]]) -> None:
        """Both ways."""
        await self.env.cut([Link(*pair) for pair in pairs] + [Link(right, left) for left, right in pairs])

    async def until(self, holds: Callable[[], Awaitable[bool]], bound_s: float) -> float:
        """Seconds until it holds; fails after the bound."""
        begun_ns = self.env.timeline.now_ns()
        while not await holds():
            passed_s = (self.env.timeline.now_ns() - begun_ns) / 1e9
            assert passed_s < bound_s, f"still not so after {passed_s:.1f} s"
            await self.pass_s(0.1)
        return (self.env.timeline.now_ns() - begun_ns) / 1e9


Story = Callable[[ControllerCluster], Coroutine[Any, Any, None]]


def controller(name: str, **config: Any) -> NodeSpec:
    """One of the three, or one that is to join them."""
    joins = {} if name in CONTROLLERS else {"controllerJoinsGroup": True}
    peers = ";".join(f"{peer}-{peer}:9879" for peer in dict.fromkeys((*CONTROLLERS, name)))
    return NodeSpec(
        name=name,
        groups=("controllers",),
        program=PythonProgram(
            main="system_under_test.rocketmq.node:controller",
            config={
                "controllerPort": 9878,
                "controllerDLegerSelfId": name,
                "controllerDLegerPeers": peers,
                **joins,
                **config,
            },
        ),
    )


def play(story: Story, **config: Any) -> None:
    """Tell a story to three controllers on a quiet network."""
    with tempfile.TemporaryDirectory() as logs:

        async def main(env: SimulatedEnvironment) -> None:
            await env.start([controller(name, **config) for name in CONTROLLERS], Path(logs))
            await story(ControllerCluster(env, Path(logs)))
            assert not env.panics(), env.panics()
            await env.stop()

        run_simulation(main, Seed(7), Trace(), regime=Regime.calm())
