"""The message client against a broker that is played by the test: what it sends, and what each failure means."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import RemotingServer
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, QueueRequest, SendAnswer, SendRequest
from system_under_test.rocketmq.nameserver.config import NameServerConfig
from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.rocketmq.nameserver.server import NameServer
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.storage.message import encode_message
from workloads.systems.rocketmq.errors import CODES

TOPIC = "T"
TIMEOUT_S = 3.0


class PlayedBroker:
    """Keeps queues in memory, counts what it is asked, and misbehaves as `mood` says."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.queues: dict[int, list[bytes]] = {}
        self.offsets: dict[tuple[str, int], int] = {}
        self.asked: list[int] = []
        self.mood: Callable[[RemotingCommand, Any], RemotingCommand | None] | None = None

    def handle(self, command: RemotingCommand, peer: Any) -> Any:
        self.asked.append(command.code)
        if self.mood is not None:
            return self.mood(command, peer)
        match command.code:
            case RequestCode.SEND_MESSAGE:
                send = SendRequest.decode(command)
                queue = self.queues.setdefault(send.queue_id, [])
                queue.append(send.body)
                return SendAnswer(message_id="id", queue_id=send.queue_id, queue_offset=len(queue) - 1).encode()
            case RequestCode.PULL_MESSAGE:
                return self._pull(PullRequest.decode(command))
            case RequestCode.QUERY_CONSUMER_OFFSET:
                query = QueueRequest.decode(command)
                offset = self.offsets.get((query.consumer_group, query.queue_id))
                if offset is None:
                    raise RemotingError(ResponseCode.QUERY_NOT_FOUND, "never committed")
                return RemotingCommand.response(ResponseCode.SUCCESS, {"offset": str(offset)})
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                update = QueueRequest.decode(command)
                self.offsets[update.consumer_group, update.queue_id] = update.commit_offset or 0
                return RemotingCommand.response(ResponseCode.SUCCESS)
            case RequestCode.GET_MAX_OFFSET:
                queue = self.queues.get(QueueRequest.decode(command).queue_id, [])
                return RemotingCommand.response(ResponseCode.SUCCESS, {"offset": str(len(queue))})
        raise AssertionError(command)

    def _pull(self, pull: PullRequest) -> RemotingCommand:
        queue = self.queues.get(pull.queue_id, [])
        end = min(len(queue), pull.queue_offset + pull.max_count)
        data = b"".join(
            encode_message(
                topic=pull.topic.encode(),
                queue_id=pull.queue_id,
                queue_offset=offset,
                physical_offset=offset * 1000,
                body=queue[offset],
                properties=b"",
                born_timestamp_ms=0,
                store_timestamp_ms=0,
                born_host=bytes(8),
                store_host=bytes(8),
            )
            for offset in range(pull.queue_offset, end)
        )
        code = ResponseCode.SUCCESS if data else ResponseCode.PULL_NOT_FOUND
        return PullAnswer(
            next_offset=max(end, pull.queue_offset), min_offset=0, max_offset=len(queue), data=data
        ).encode(code)


class Stage:
    """A NameServer and two played brokers in the simulator; b1 is master to begin with."""

    brokers: dict[str, PlayedBroker]
    nameservers: dict[str, NameServer]

    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self.client = MessageClient(environment.client_host("client"), ["c1:9876", "c2:9876"], TIMEOUT_S)

    def register(
        self,
        broker: str,
        broker_id: int,
        state_version: int,
        at: tuple[str, ...] = ("c1", "c2"),
        group: str = "broker-a",
    ) -> None:
        claim = Registration(
            cluster="c",
            broker_name=group,
            broker_id=broker_id,
            address=f"{broker}:10911",
            ha_address=f"{broker}:10912",
            version=DataVersion(state_version=state_version),
            topics={TOPIC: TopicConfig.of(TOPIC, 4)},
        )
        for name in at:
            self.nameservers[name].handle(claim.encode(), self)  # type: ignore[arg-type]


STAGE: dict[str, Any] = {}


async def play_nameserver(host: Any, _: object) -> None:
    server = NameServer(host, NameServerConfig())
    await server.start()
    STAGE[host.name] = server
    await asyncio.Event().wait()


async def play_broker(host: Any, _: object) -> None:
    broker = PlayedBroker(f"{host.name}:10911")
    await RemotingServer(host, broker.handle).start(10911)
    STAGE[host.name] = broker
    await asyncio.Event().wait()


def on_stage(tmp_path: Any, body: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main(environment: SimulatedEnvironment) -> None:
        STAGE.clear()
        nodes = [
            NodeSpec(name=name, groups=(), program=PythonProgram(main=f"{__name__}:play_nameserver"))
            for name in ("c1", "c2")
        ]
        nodes += [
            NodeSpec(name=name, groups=(), program=PythonProgram(main=f"{__name__}:play_broker"))
            for name in ("b1", "b2")
        ]
        await environment.start(nodes, tmp_path)
        await environment.timeline.sleep(1)
        stage = Stage(environment)
        stage.nameservers = {name: STAGE[name] for name in ("c1", "c2")}
        stage.brokers = {name: STAGE[name] for name in ("b1", "b2")}
        stage.register("b1", 0, 1)
        stage.register("b2", 2, 1)
        await body(stage)
        assert not environment.panics()

    run_simulation(main, Seed(1729), Trace(), regime=Regime.calm())


async def failure(call: Coroutine[Any, Any, object]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await call
    error = caught.value
    assert CODES[error.code].definite == error.definite
    return error


def test_what_was_sent_is_pulled_in_order(tmp_path):
    async def body(stage: Stage) -> None:
        client = stage.client
        for index in range(5):
            sent = await client.send(TOPIC, 1, b"m%d" % index)
            assert (sent.queue_id, sent.queue_offset, sent.broker) == (1, index, "b1:10911")
        pulled = await client.pull(TOPIC, 1, 1, 3, "G")
        assert pulled.messages == ((1, b"m1"), (2, b"m2"), (3, b"m3"))
        assert (pulled.next_offset, pulled.min_offset, pulled.max_offset, pulled.broker) == (4, 0, 5, "b1:10911")
        assert await client.max_offset(TOPIC, 1) == 5
        at_the_end = await client.pull(TOPIC, 1, 5, 3, "G")
        assert (at_the_end.messages, at_the_end.next_offset) == ((), 5)
        stage.brokers["b2"].queues[1] = [b"of the replica"]
        assert (await client.pull(TOPIC, 1, 0, 3, "G", "b2:10911")).messages == ((0, b"of the replica"),)

    on_stage(tmp_path, body)


def test_consumer_offsets_are_kept_by_group(tmp_path):
    async def body(stage: Stage) -> None:
        assert await stage.client.query_offset("G", TOPIC, 1) is None
        await stage.client.update_offset("G", TOPIC, 1, 7)
        assert await stage.client.query_offset("G", TOPIC, 1) == 7
        assert await stage.client.query_offset("H", TOPIC, 1) is None

    on_stage(tmp_path, body)


@pytest.mark.parametrize(
    ("response_code", "error_code"),
    [
        (ResponseCode.FLUSH_DISK_TIMEOUT, "flush-disk-timeout"),
        (ResponseCode.FLUSH_SLAVE_TIMEOUT, "flush-slave-timeout"),
        (ResponseCode.SLAVE_NOT_AVAILABLE, "flush-slave-timeout"),
        (ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH, "in-sync-replicas-not-enough"),
        (ResponseCode.NOT_MASTER, "not-master"),
        (ResponseCode.SERVICE_NOT_AVAILABLE, "service-not-available"),
        (ResponseCode.NO_PERMISSION, "service-not-available"),
        (ResponseCode.SYSTEM_BUSY, "service-not-available"),
        (ResponseCode.MESSAGE_ILLEGAL, "message-illegal"),
        (ResponseCode.DISK_FULL, "disk-full"),
        (ResponseCode.SYSTEM_ERROR, "outcome-unknown"),
        (ResponseCode.PULL_NOT_FOUND, "outcome-unknown"),
        (7777, "outcome-unknown"),
    ],
)
def test_each_refusal_of_a_send_says_whether_it_may_have_happened(tmp_path, response_code, error_code):
    async def body(stage: Stage) -> None:
        broker = stage.brokers["b1"]
        answer = SendAnswer(message_id="id", queue_id=0, queue_offset=0)
        broker.mood = lambda command, peer: answer.encode(response_code, "because")
        error = await failure(stage.client.send(TOPIC, 0, b"m"))
        assert (error.code, error.node) == (error_code, "b1:10911")
        assert "because" in error.detail
        assert broker.asked == [RequestCode.SEND_MESSAGE]

    on_stage(tmp_path, body)


def test_rocketmqs_own_way_to_refuse_for_too_few_replicas_is_definite(tmp_path):
    async def body(stage: Stage) -> None:
        stage.brokers["b1"].mood = lambda command, peer: RemotingCommand.response(
            ResponseCode.SYSTEM_ERROR, remark="in-sync replicas not enough"
        )
        assert (await failure(stage.client.send(TOPIC, 0, b"m"))).code == "in-sync-replicas-not-enough"

    on_stage(tmp_path, body)


def test_a_success_without_an_offset_is_no_success(tmp_path):
    async def body(stage: Stage) -> None:
        stage.brokers["b1"].mood = lambda command, peer: RemotingCommand.response(ResponseCode.SUCCESS)
        assert (await failure(stage.client.send(TOPIC, 0, b"m"))).code == "outcome-unknown"
        stage.brokers["b1"].mood = lambda command, peer: PullAnswer(
            next_offset=1, min_offset=0, max_offset=1, data=b"no message"
        ).encode()
        assert (await failure(stage.client.pull(TOPIC, 0, 0, 1, "G"))).code == "outcome-unknown"

    on_stage(tmp_path, body)


def test_a_silent_broker_is_an_indefinite_timeout_within_the_bound(tmp_path):
    async def body(stage: Stage) -> None:
        stage.brokers["b1"].mood = lambda command, peer: None
        began_ns = stage.environment.timeline.now_ns()
        assert (await failure(stage.client.send(TOPIC, 0, b"m"))).code == "client-timeout"
        took_s = (stage.environment.timeline.now_ns() - began_ns) / 1e9
        assert TIMEOUT_S <= took_s < TIMEOUT_S + 0.01
        assert stage.brokers["b1"].asked == [RequestCode.SEND_MESSAGE]

    on_stage(tmp_path, body)


def test_a_connection_lost_after_sending_is_indefinite(tmp_path):
    async def body(stage: Stage) -> None:
        stage.brokers["b1"].mood = lambda command, peer: peer.close()
        assert (await failure(stage.client.send(TOPIC, 0, b"m"))).code == "connection-lost"
        assert stage.brokers["b1"].asked == [RequestCode.SEND_MESSAGE]

    on_stage(tmp_path, body)


def test_a_dead_broker_is_a_definite_failure_to_connect(tmp_path):
    async def body(stage: Stage) -> None:
        await stage.environment.kill(["b1"])
        assert (await failure(stage.client.send(TOPIC, 0, b"m"))).code == "connect-failed"

    on_stage(tmp_path, body)


def test_after_an_error_the_next_call_finds_the_new_master(tmp_path):
    async def body(stage: Stage) -> None:
        await stage.client.send(TOPIC, 0, b"before")
        stage.brokers["b1"].mood = lambda command, peer: RemotingCommand.response(ResponseCode.NOT_MASTER)
        stage.register("b2", 0, 2)
        assert (await failure(stage.client.send(TOPIC, 0, b"refused"))).node == "b1:10911"
        assert (await stage.client.send(TOPIC, 0, b"after")).broker == "b2:10911"

    on_stage(tmp_path, body)


def test_a_nameserver_that_shows_a_deposed_master_is_not_asked_for_ever(tmp_path):
    async def body(stage: Stage) -> None:
        stage.brokers["b1"].mood = lambda command, peer: RemotingCommand.response(ResponseCode.NOT_MASTER)
        stage.register("b2", 0, 2, at=("c2",))
        found: list[str] = []
        for _ in range(2):
            with contextlib.suppress(ClientError):
                found.append((await stage.client.send(TOPIC, 0, b"m")).broker)
        assert found[-1] == "b2:10911"

    on_stage(tmp_path, body)


def test_a_route_is_found_while_any_nameserver_answers(tmp_path):
    async def body(stage: Stage) -> None:
        await stage.environment.pause(["c1"])
        for _ in range(4):
            stage.client._routes.clear()
            await stage.client.send(TOPIC, 0, b"m")
        await stage.environment.kill(["c2"])
        stage.client._routes.clear()
        error = await failure(stage.client.send(TOPIC, 0, b"m"))
        assert (error.code, error.definite) == ("no-route", True)
        assert "c1:9876" in error.detail
        assert "c2:9876" in error.detail

    on_stage(tmp_path, body)


def test_an_unknown_topic_and_a_group_without_master_have_no_route(tmp_path):
    async def body(stage: Stage) -> None:
        assert (await failure(stage.client.send("unheard of", 0, b"m"))).code == "no-route"
        await stage.environment.timeline.sleep(1)
        stage.register("b1", 1, 1)
        error = await failure(stage.client.send(TOPIC, 0, b"m"))
        assert (error.code, error.detail) == ("no-route", "broker-a has no master")
        stage.register("b1", 0, 1)
        assert (await stage.client.send(TOPIC, 0, b"m")).broker == "b1:10911"

    on_stage(tmp_path, body)


def test_a_route_without_the_group_is_not_kept(tmp_path):
    async def body(stage: Stage) -> None:
        stage.register("b2", 0, 1, group="broker-b")
        error = await failure(stage.client.send(TOPIC, 0, b"m", broker_name="broker-c"))
        assert (error.code, error.detail) == ("no-route", f"{TOPIC} lies on [broker-a, broker-b]: name one of them")
        stage.register("b2", 0, 1, group="broker-c")
        assert (await stage.client.send(TOPIC, 0, b"m", broker_name="broker-c")).broker == "b2:10911"

    on_stage(tmp_path, body)
