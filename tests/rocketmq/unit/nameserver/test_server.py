"""A NameServer on the network: registrations come and go with connections and time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.config import NameServerConfig
from system_under_test.rocketmq.nameserver.registration import Registration, unregistration
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.nameserver.server import NameServer
from system_under_test.rocketmq.topic import TopicConfig

ADDRESS = "c1:9876"


async def run_nameserver(host: Any, _: object) -> None:
    await NameServer(host, NameServerConfig()).start()
    await asyncio.Event().wait()


def claim(broker: str, broker_id: int, state_version: int) -> Registration:
    return Registration(
        cluster="c",
        broker_name="broker-a",
        broker_id=broker_id,
        address=f"{broker}:10911",
        ha_address=f"{broker}:10912",
        version=DataVersion(state_version=state_version),
        topics={"T": TopicConfig.of("T", 4)},
    )


class Brokers:
    """Talks to the NameServer as brokers b1 and b2 and as a client would."""

    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self.remoting = {name: RemotingClient(environment.client_host(name)) for name in ("b1", "b2", "client")}

    async def say(self, name: str, command: RemotingCommand) -> RemotingCommand:
        return await self.remoting[name].invoke(ADDRESS, command, 3)

    async def route(self) -> dict[int, str] | None:
        answer = await self.say("client", RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}))
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        return dict(TopicRoute.decode(answer.body).groups[0].brokers)


def in_simulation(tmp_path: Path, body: Any) -> None:
    async def main(environment: SimulatedEnvironment) -> None:
        node = NodeSpec(name="c1", groups=(), program=PythonProgram(main=f"{__name__}:run_nameserver"))
        await environment.start([node], tmp_path)
        await environment.timeline.sleep(1)
        await body(Brokers(environment))
        assert not environment.panics()

    run_simulation(main, Seed(1729), Trace(), regime=Regime.calm())


def test_a_slave_that_registers_gets_its_masters_address(tmp_path):
    async def body(brokers: Brokers) -> None:
        alone = await brokers.say("b1", claim("b1", 0, 1).encode())
        assert (alone.code, alone.ext_fields) == (ResponseCode.SUCCESS, {})
        answer = await brokers.say("b2", claim("b2", 2, 1).encode())
        assert answer.ext_fields == {"masterAddr": "b1:10911", "haServerAddr": "b1:10912"}
        assert await brokers.route() == {0: "b1:10911", 2: "b2:10911"}

    in_simulation(tmp_path, body)


def test_a_master_of_an_older_version_is_refused_with_an_error(tmp_path):
    async def body(brokers: Brokers) -> None:
        await brokers.say("b2", claim("b2", 0, 2).encode())
        assert (await brokers.say("b1", claim("b1", 0, 1).encode())).code == ResponseCode.SYSTEM_ERROR
        assert await brokers.route() == {0: "b2:10911"}

    in_simulation(tmp_path, body)


def test_a_closed_connection_takes_its_broker_out_of_the_routes(tmp_path):
    async def body(brokers: Brokers) -> None:
        await brokers.say("b1", claim("b1", 0, 1).encode())
        await brokers.say("b2", claim("b2", 2, 1).encode())
        brokers.remoting["b1"].close()
        await brokers.environment.timeline.sleep(0.1)
        assert await brokers.route() == {2: "b2:10911"}

    in_simulation(tmp_path, body)


def test_a_broker_takes_leave(tmp_path):
    async def body(brokers: Brokers) -> None:
        await brokers.say("b1", claim("b1", 0, 1).encode())
        assert (await brokers.say("b1", unregistration(claim("b1", 0, 1)))).code == ResponseCode.SUCCESS
        assert await brokers.route() is None

    in_simulation(tmp_path, body)


def test_a_silent_broker_is_gone_after_120_seconds_and_one_scan(tmp_path):
    async def body(brokers: Brokers) -> None:
        await brokers.say("b1", claim("b1", 0, 1).encode())
        await brokers.environment.timeline.sleep(119)
        assert await brokers.route() == {0: "b1:10911"}
        await brokers.environment.timeline.sleep(6.5)
        assert await brokers.route() is None

    in_simulation(tmp_path, body)


def test_a_broker_learns_whether_it_has_to_register_its_topics_again(tmp_path):
    async def body(brokers: Brokers) -> None:
        def question(version: DataVersion, broker: str = "b1") -> RemotingCommand:
            fields = {"brokerAddr": f"{broker}:10911", "brokerName": "broker-a", "clusterName": "c", "brokerId": "0"}
            return RemotingCommand.request(322, fields, json.dumps(version.as_json()).encode())

        known, other = DataVersion(state_version=1), DataVersion(state_version=1, counter=2)
        answer = await brokers.say("b1", question(known))
        assert (answer.ext_fields, answer.body) == ({"changed": "true"}, b"")
        await brokers.say("b1", claim("b1", 0, 1).encode())
        answer = await brokers.say("b1", question(known))
        assert (answer.ext_fields, json.loads(answer.body)) == ({"changed": "false"}, known.as_json())
        assert (await brokers.say("b1", question(other))).ext_fields == {"changed": "true"}
        await brokers.environment.timeline.sleep(100)
        await brokers.say("b1", question(known))
        await brokers.environment.timeline.sleep(100)
        assert await brokers.route() == {0: "b1:10911"}, "the question is a sign of life"
        for wrong in (b"", b"[]", b'{"counter":"x"}'):
            command = RemotingCommand.request(322, {"brokerAddr": "b1:10911"}, wrong)
            assert (await brokers.say("b1", command)).code == ResponseCode.INVALID_PARAMETER

    in_simulation(tmp_path, body)


def test_clients_of_all_ages_get_routes_that_they_can_read(tmp_path):
    async def body(brokers: Brokers) -> None:
        await brokers.say("b1", claim("b1", 0, 1).encode_compressed())
        for version, fields, is_standard in (
            (400, {}, False),
            (400, {"acceptStandardJsonOnly": "true"}, True),
            (401, {}, True),
        ):
            command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T", **fields})
            command.version = version
            answer = await brokers.say("client", command)
            assert (b'"brokerAddrs":{"0":"b1:10911"}' in answer.body) == is_standard
            assert (b'"brokerAddrs":{0:"b1:10911"}' in answer.body) != is_standard
        everything = await brokers.say("client", RemotingCommand.request(206))
        assert json.loads(everything.body)["topicList"] == ["T"]
        clusters = await brokers.say("client", RemotingCommand.request(106))
        assert json.loads(clusters.body)["clusterAddrTable"] == {"c": ["broker-a"]}

    in_simulation(tmp_path, body)


def test_what_it_does_not_know_is_refused_not_ignored(tmp_path):
    async def body(brokers: Brokers) -> None:
        answer = await brokers.say("client", RemotingCommand.request(4711))
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        answer = await brokers.say("client", RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC))
        assert answer.code == ResponseCode.INVALID_PARAMETER

    in_simulation(tmp_path, body)
