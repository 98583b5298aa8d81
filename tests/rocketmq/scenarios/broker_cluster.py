"""A small cluster in the simulator, with verbs that let a scenario read like its description.

Controllers c1 c2 c3 (with NameServers), brokers b1 … of one group with one queue. The world is calm: whatever goes
wrong is what the story makes go wrong. All times are simulated; every wait is bounded.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from harness.environments.environment import Link
from harness.environments.impairment import NarrowLink, SlowLink
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.grpc.client import GrpcClient
from system_under_test.grpc.protobuf import Message
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.controller.protocol import ReplicaInfo
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, QueueRequest, SendRequest
from system_under_test.rocketmq.nameserver.route import GroupRoute, TopicRoute
from system_under_test.rocketmq.proxy.v2 import SERVICE
from system_under_test.rocketmq.topic import TopicConfig, topics_from_json
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host
from system_under_test.storage.message import decode_message

CONTROLLERS = ("c1", "c2", "c3")
GROUP = "broker-a"
TOPIC = "letters"

M = TypeVar("M", bound=Message)
T = TypeVar("T")


@dataclass(frozen=True)
class Log:
    """What one replica says of its log (request 1007)."""

    epochs: dict[int, int]
    max_offset: int
    confirm_offset: int

    @property
    def shape(self) -> tuple[object, ...]:
        """The same for equal logs: of epochs with one start a slave learns only the newest, and epoch 0 means none."""
        newest = {start: epoch for epoch, start in self.epochs.items() if epoch}
        return newest, self.max_offset, self.confirm_offset


class Cluster:
    def __init__(
        self, environment: SimulatedEnvironment, brokers: Sequence[str], late: Callable[[str], Awaitable[None]]
    ) -> None:
        self.add = late
        """Start a broker that was not there from the beginning."""
        self.brokers = tuple(brokers)
        self._environment = environment
        self._impaired: list[tuple[list[Link], SlowLink | NarrowLink]] = []
        self._host = environment.client_host("client")
        self._remoting = RemotingClient(self._host, 1.0)
        self.grpc = GrpcClient(self._host, 5.0)
        self._controllers = ControllerClient(self._host, [f"{name}:9878" for name in CONTROLLERS], 2.0)

    @property
    def now_s(self) -> float:
        return self._environment.timeline.now_ns() / 1e9

    def host(self, name: str) -> Host:
        """Of a client of this name."""
        return self._environment.client_host(name)

    # the nemesis

    async def kill(self, *nodes: str) -> None:
        assert (await self._environment.kill(nodes)).happened

    async def power_off(self, *nodes: str) -> None:
        assert (await self._environment.power_off(nodes)).happened
        # No connection is reset when the power goes: without new ones the next question would wait in vain.
        self._remoting.close()
        self._remoting = RemotingClient(self._host, 1.0)

    async def stop_cleanly(self, node: str) -> None:
        process = self._environment._nodes[node].machine.process
        assert process is not None and process.root is not None
        process.root.cancel()
        await self.until(self._is_down(node), 10)

    async def wipe(self, node: str) -> None:
        """Of a node that is down: it gets an empty disk."""
        self._environment.disk_of(node).put_back({})

    async def upgrade(self, *nodes: str) -> None:
        """They start as what they are to become."""
        assert (await self._environment.upgrade(nodes)).happened

    async def boot(self, *nodes: str) -> None:
        assert (await self._environment.boot(nodes)).happened

    async def cut(self, *pairs: tuple[str, str]) -> None:
        """Both directions of each pair."""
        links = [Link(a, b) for pair in pairs for a, b in (pair, pair[::-1])]
        assert (await self._environment.cut(links)).happened

    async def slow_down(self, *pairs: tuple[str, str], delay_ms: float) -> None:
        """Both directions of each pair."""
        await self._impair(pairs, SlowLink(delay_ms=delay_ms, jitter_ms=0))

    async def narrow_down(self, *pairs: tuple[str, str], bytes_per_s: int) -> None:
        """Both directions of each pair."""
        await self._impair(pairs, NarrowLink(bytes_per_s=bytes_per_s))

    async def heal_links(self) -> None:
        """Of what slows them down."""
        for links, impairment in self._impaired:
            assert (await self._environment.relieve_links(links, impairment)).happened
        self._impaired.clear()

    async def _impair(self, pairs: Sequence[tuple[str, str]], impairment: SlowLink | NarrowLink) -> None:
        links = [Link(a, b) for pair in pairs for a, b in (pair, pair[::-1])]
        assert (await self._environment.impair_links(links, impairment)).happened
        self._impaired.append((links, impairment))

    async def isolate(self, node: str) -> None:
        """From all nodes; clients still reach it."""
        await self.cut(*((node, other) for other in (*CONTROLLERS, *self.brokers) if other != node))

    async def set_clock(self, node: str, seconds: float) -> None:
        """So far from the truth."""
        assert (await self._environment.set_clock(node, offset_s=seconds, rate=1.0)).happened

    async def heal(self) -> None:
        assert (await self._environment.heal()).happened

    # clients

    async def send(self, node: str, *letters: str, topic: str = TOPIC) -> list[str]:
        """Ask this broker, one letter after the other; the response codes' names, or `lost` for no answer."""
        return [await self._send(node, letter, topic) for letter in letters]

    async def send_steadily(self, node: str, *, every_s: float, until_s: float) -> str:
        """The first answer that is no success, if there is any."""
        while self.now_s < until_s:
            answer = await self._send(node, "x" * 100, TOPIC)
            if answer != ResponseCode.SUCCESS.name:
                return answer
            await self.sleep(every_s)
        return ResponseCode.SUCCESS.name

    async def read(self, node: str, topic: str = TOPIC, start: int = 0, group: str = "readers") -> list[str]:
        """All letters that this replica shows, the first of which has the queue offset `start`."""
        request = PullRequest(topic=topic, queue_id=0, queue_offset=start, max_count=1000, consumer_group=group)
        answer = await self._remoting.invoke(f"{node}:10911", request.encode(), 5.0)
        if answer.code != ResponseCode.SUCCESS:
            return []
        data, letters, position = PullAnswer.decode(answer).data, [], 0
        while position < len(data):
            message = decode_message(data, position)
            assert message.queue_offset == start + len(letters)
            letters.append(message.body.decode())
            position += message.size
        return letters

    async def commit(self, node: str, group: str, offset: int, topic: str = TOPIC) -> None:
        request = QueueRequest(topic=topic, queue_id=0, consumer_group=group, commit_offset=offset)
        answer = await self._remoting.invoke(f"{node}:10911", request.encode(RequestCode.UPDATE_CONSUMER_OFFSET), 5.0)
        assert answer.code == ResponseCode.SUCCESS

    async def log(self, node: str) -> Log:
        command = RemotingCommand.request(RequestCode.GET_BROKER_EPOCH_CACHE)
        body = json.loads((await self._remoting.invoke(f"{node}:10911", command, 5.0)).body)
        return Log(
            epochs={entry["epoch"]: entry["startOffset"] for entry in body["epochList"]},
            max_offset=body["maxOffset"],
            confirm_offset=body["confirmOffset"],
        )

    async def ask(self, node: str, command: RemotingCommand) -> str:
        """The name of the response code."""
        return ResponseCode((await self.answer(f"{node}:10911", command)).code).name

    async def answer(self, address: str, command: RemotingCommand) -> RemotingCommand:
        return await self._remoting.invoke(address, command, 5.0)

    def client(self, default_topic: str | None = None, **options: Any) -> MessageClient:
        return MessageClient(
            self._host, [f"{name}:9876" for name in CONTROLLERS], default_topic=default_topic, **options
        )

    async def make_topic(self, node: str, topic: TopicConfig) -> str:
        return await self.ask(node, RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, topic.as_fields()))

    async def delete_topic(self, node: str, name: str) -> str:
        return await self.ask(node, RemotingCommand.request(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": name}))

    async def queue_range(self, node: str, topic: str = TOPIC) -> tuple[int, int]:
        """The queue offsets that this replica shows, its end left out."""
        request = PullRequest(topic=topic, queue_id=0, queue_offset=0, max_count=1, consumer_group="readers")
        answer = PullAnswer.decode(await self.answer(f"{node}:10911", request.encode()))
        return answer.min_offset, answer.max_offset

    async def topics(self, node: str) -> dict[str, TopicConfig]:
        """As this replica lists them."""
        answer = await self.answer(f"{node}:10911", RemotingCommand.request(RequestCode.GET_ALL_TOPIC_CONFIG))
        return topics_from_json(json.loads(answer.body)["topicConfigTable"])

    async def route(self, topic: str, nameserver: str = "c1") -> GroupRoute | None:
        command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        answer = await self.answer(f"{nameserver}:9876", command)
        return None if answer.code == ResponseCode.TOPIC_NOT_EXIST else TopicRoute.decode(answer.body).groups[0]

    async def committed(self, node: str, group: str, topic: str = TOPIC) -> int | None:
        request = QueueRequest(topic=topic, queue_id=0, consumer_group=group, is_zero_if_unknown=False)
        answer = await self.answer(f"{node}:10911", request.encode(RequestCode.QUERY_CONSUMER_OFFSET))
        return None if answer.code == ResponseCode.QUERY_NOT_FOUND else int(answer.ext_fields["offset"])

    async def knock(self, node: str, *messages: bytes) -> bool:
        """Write to the HA port; whether the broker then closes the connection within a minute."""
        connection = await self._host.network.connect(f"{node}:10912", 5.0)
        for message in messages:
            connection.write(message)
        try:
            await self._host.clock.within(60, connection.read_exactly(1 << 20))
        except ConnectionClosed:
            return True
        except TimeoutError:
            return False
        return False

    async def converse(self, address: str, frame: bytes) -> bytes:
        """Write a frame of remoting, length and all, over a connection of its own, and read the one that answers it:
        a broker may tell a new member of a group first that the members have changed."""
        connection = await self._host.network.connect(address, 5.0)
        connection.write(frame)
        while True:
            length = await self._host.clock.within(5.0, connection.read_exactly(4))
            answer = length + await connection.read_exactly(int.from_bytes(length, "big"))
            if RemotingCommand.decode(answer[4:]).is_response:
                break
        connection.close()
        return answer

    async def feed(self, address: str, *messages: bytes) -> None:
        """Write each, over a new connection whenever the node has closed one, and give the node time to answer."""
        connection = None
        for message in messages:
            with suppress(ConnectFailed, ConnectionClosed):
                if connection is None or connection.closed:
                    connection = await self._host.network.connect(address, 5.0)
                connection.write(message)
                await connection.drain()
            await self.sleep(0.5)
        if connection is not None:
            connection.close()

    async def play_master(self, messages: Sequence[bytes]) -> Callable[[], bool]:
        """Answer each slave's handshake at the client's own HA port with these; whether there was one."""
        followers: list[str] = []

        async def accept(connection: Connection) -> None:
            followers.append(connection.remote)
            with suppress(ConnectionClosed):
                for message in messages:
                    connection.write(message)
                await connection.read_exactly(1 << 20)

        await self._host.network.listen(10912, accept)
        return lambda: bool(followers)

    def reported(self, node: str, event: str) -> list[dict[str, Any]]:
        """All events of this name that the node has reported."""
        events = [json.loads(line) for line in self._environment.events()[node]]
        return [each for each in events if each["event"] == event]

    async def until_said(self, node: str, event: str, within_s: float = 30) -> None:
        async def is_said() -> bool:
            return bool(self.reported(node, event))

        await self.until(is_said, within_s)

    def file(self, node: str, path: str) -> bytes:
        """What is on the node's disk under this path."""
        return self._environment.disk_of(node).image()[path]

    def dead(self) -> dict[str, str]:
        """The last words of the nodes that died of themselves."""
        return {node: words.splitlines()[-1] for node, words in self._environment.panics().items()}

    # clients that speak gRPC

    async def call(self, proxy: str, method: str, request: Message, answer: type[M], client_id: str = "client-1") -> M:
        """The one answer of a method of version 2."""
        return (await self.calls(proxy, method, request, answer, client_id))[0]

    async def calls(
        self, proxy: str, method: str, request: Message, answer: type[M], client_id: str = "client-1"
    ) -> list[M]:
        """All answers of a method of version 2."""
        metadata = {"x-mq-client-id": client_id}
        datas = await self.grpc.call_for_all(f"{proxy}:8081", SERVICE + method, request.encode(), 60.0, metadata)
        return [answer.decode(data) for data in datas]

    # what the controllers say

    async def replicas(self) -> ReplicaInfo:
        return await self._controllers.get_replica_info(GROUP)

    async def master(self) -> str | None:
        address = (await self.replicas()).master_address
        return None if address is None else address.partition(":")[0]

    async def active_controller(self) -> str:
        return (await self._controllers.look_for_active()).partition(":")[0]

    async def members(self) -> tuple[int, ...]:
        return (await self.replicas()).sync_state_set.members

    def begin(self, question: Coroutine[Any, Any, str]) -> asyncio.Task[str]:
        """Ask, and go on."""
        return asyncio.get_running_loop().create_task(question)

    # waiting

    async def sleep(self, seconds: float) -> None:
        await self._environment.timeline.sleep(seconds)

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        """Raises TimeoutError."""
        return await self._host.clock.within(seconds, awaitable)

    async def until(self, what: Callable[[], Awaitable[bool]], within_s: float) -> None:
        """Look every 50 ms until it is so; a question that gets no answer is a no."""
        end_s = self.now_s + within_s
        while self.now_s < end_s:
            try:
                if await what():
                    return
            except (ClientError, ConnectFailed, ConnectionClosed, TimeoutError):
                self._environment.timeline.now_ns()
            await self.sleep(0.05)
        raise AssertionError(f"not so within {within_s} s")

    async def until_master(self, node: str, within_s: float = 30) -> None:
        """The controllers have it as master, and the broker is one."""

        async def is_master() -> bool:
            if await self.master() != node:
                return False
            newest = max((await self.log(node)).epochs, default=0)
            return newest == (await self.replicas()).master_epoch and await self._takes_sends(node)

        await self.until(is_master, within_s)

    async def until_members(self, *members: int, within_s: float = 30) -> None:
        async def are_members() -> bool:
            return await self.members() == members

        await self.until(are_members, within_s)

    async def until_equal(self, *nodes: str, within_s: float = 30) -> None:
        """The replicas have the same epochs and length, and show the same letters, up to the very end."""

        async def are_equal() -> bool:
            logs = [await self.log(node) for node in nodes]
            if any(log.shape != logs[0].shape for log in logs) or logs[0].confirm_offset != logs[0].max_offset:
                return False
            letters = [await self.read(node) for node in nodes]
            return all(each == letters[0] for each in letters)

        await self.until(are_equal, within_s)

    async def _takes_sends(self, node: str) -> bool:
        request = SendRequest(topic="no such topic", queue_id=0, body=b"", born_timestamp_ms=0)
        answer = await self._remoting.invoke(f"{node}:10911", request.encode(), 5.0)
        return answer.code != ResponseCode.NOT_MASTER

    async def _send(self, node: str, letter: str, topic: str) -> str:
        request = SendRequest(topic=topic, queue_id=0, body=letter.encode(), born_timestamp_ms=0)
        try:
            answer = await self._remoting.invoke(f"{node}:10911", request.encode(), 10.0)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return "lost"
        return ResponseCode(answer.code).name

    def _is_down(self, node: str) -> Callable[[], Awaitable[bool]]:
        async def is_down() -> bool:
            return node not in self._environment.running()

        return is_down


def play(
    story: Callable[[Cluster], Coroutine[Any, Any, None]],
    *,
    brokers: int = 2,
    unclean: bool = False,
    notices: bool = True,
    mutant: str | None = None,
    learners: Sequence[str] = (),
    become_learners: Sequence[str] = (),
    proxies: Sequence[str] = (),
    of_proxies: Mapping[str, object] = MappingProxyType({}),
    seed: int = 1,
    **settings: object,
) -> None:
    """Run a story on a fresh cluster whose b1 is master and whose set is whole. `settings` are the brokers',
    `of_proxies` the proxies', by seed's name; allAckInSyncStateSet is on unless it is given."""
    names = [f"b{number}" for number in range(1, brokers + 1)]
    planted = {} if mutant is None else {"mutant": mutant}
    of_controllers = {"enableElectUncleanMaster": unclean, "notifyBrokerRoleChanged": notices, **planted}
    controllers = [_controller(name, of_controllers) for name in CONTROLLERS]

    def broker(name: str) -> NodeSpec:
        config = {
            "namesrvAddr": ";".join(f"{controller}:9876" for controller in CONTROLLERS),
            "enableControllerMode": True,
            "controllerAddr": ";".join(f"{controller}:9878" for controller in CONTROLLERS),
            "allAckInSyncStateSet": True,
            "topics": {TOPIC: 1},
            "mappedFileSizeCommitLog": 64 * 1024,
            "maxMessageSize": 16 * 1024,
            "asyncLearner": name in learners,
            "slaveReadEnable": True,
            **settings,
            **planted,
        }
        program = PythonProgram(main="system_under_test.rocketmq.node:broker", config=config)
        learner = replace(program, config={**config, "asyncLearner": True}) if name in become_learners else None
        return NodeSpec(name=name, groups=("brokers",), program=program, upgraded=learner)

    async def whole(environment: SimulatedEnvironment) -> None:
        async def late(name: str) -> None:
            await environment.start([broker(name)], Path(logs))

        cluster = Cluster(environment, names, late)
        await environment.start(controllers, Path(logs))
        for name in names:
            # One after the other, so that b1 has id 1 and is master of epoch 1.
            await environment.start([broker(name)], Path(logs))
            await cluster.until_master("b1")
            await cluster.sleep(2)
        await environment.start([_proxy(name, {**of_proxies, **planted}) for name in proxies], Path(logs))
        await cluster.until_members(*(n for n, name in enumerate(names, 1) if name not in learners))
        # Controllers judge silence only after they have listened for a while.
        await cluster.sleep(12)
        await story(cluster)
        await environment.stop()
        assert not environment.panics()

    with tempfile.TemporaryDirectory() as logs:
        run_simulation(whole, Seed(seed), Trace(), regime=Regime.calm())


def _controller(name: str, settings: Mapping[str, object]) -> NodeSpec:
    """Within a NameServer; `settings` beside those that name it and its peers."""
    config = {
        "enableControllerInNamesrv": True,
        "controllerPort": 9878,
        "controllerDLegerPeers": ";".join(f"{peer}-{peer}:9879" for peer in CONTROLLERS),
        "controllerDLegerSelfId": name,
        "raftHeartbeatInterval": 500,
        **settings,
    }
    program = PythonProgram(main="system_under_test.rocketmq.node:nameserver", config=config)
    return NodeSpec(name=name, groups=("controllers",), program=program)


def _proxy(name: str, settings: Mapping[str, object]) -> NodeSpec:
    config = {"namesrvAddr": ";".join(f"{controller}:9876" for controller in CONTROLLERS), **settings}
    return NodeSpec(
        name=name,
        groups=("proxies",),
        program=PythonProgram(main="system_under_test.rocketmq.node:proxy", config=config),
    )
