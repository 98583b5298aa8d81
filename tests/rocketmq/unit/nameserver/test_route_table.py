"""The routes that a NameServer makes of brokers' registrations."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace

import pytest

from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.compression import MAX_BODY_BYTES
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.nameserver.route_table import RouteTable
from system_under_test.rocketmq.topic import TopicConfig

SECOND = 10**9
PEER_1, PEER_2, PEER_3 = object(), object(), object()


def claim(address: str, broker_id: int, state_version: int, **changes: object) -> Registration:
    registration = Registration(
        cluster="c",
        broker_name="broker-a",
        broker_id=broker_id,
        address=address,
        ha_address=f"{address}-ha",
        version=DataVersion(state_version=state_version),
        topics={"T": TopicConfig.of("T", 4)},
    )
    return replace(registration, **changes)


def brokers(table: RouteTable, topic: str = "T") -> dict[int, str] | None:
    route = table.route(topic)
    return dict(route.groups[0].brokers) if route else None


@pytest.fixture
def table() -> RouteTable:
    return RouteTable(expiry_s=120)


def test_a_route_shows_the_master_as_0_and_slaves_under_their_own_ids(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b3", 3, 1), PEER_3, 0)
    table.register(claim("b2", 2, 1), PEER_2, 0)
    route = table.route("T")
    assert list(route.groups[0].brokers.items()) == [(0, "b1"), (2, "b2"), (3, "b3")]
    assert route.groups[0].write_queues == 4
    assert table.route("unheard of") is None


def test_once_a_master_has_registered_only_its_topics_count(table):
    table.register(claim("b2", 2, 1, topics={"stray": TopicConfig.of("stray", 1)}), PEER_2, 0)
    assert brokers(table, "stray") == {2: "b2"}
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b2", 2, 1, topics={"stray": TopicConfig.of("stray", 1)}), PEER_2, 0)
    assert table.route("stray") is None
    assert brokers(table) == {0: "b1", 2: "b2"}
    table.register(claim("b1", 0, 1, topics={"U": TopicConfig.of("U", 2)}), PEER_1, 1)
    assert table.route("T") is None
    assert brokers(table, "U") == {0: "b1", 2: "b2"}


@pytest.mark.parametrize("first", ["older", "newer"])
def test_of_two_masters_the_one_with_the_larger_state_version_stays(table, first):
    older, newer = claim("b1", 0, 1), claim("b2", 0, 2)
    if first == "older":
        assert table.register(older, PEER_1, 0)
        assert table.register(newer, PEER_2, 1)
    else:
        assert table.register(newer, PEER_2, 0)
        assert not table.register(older, PEER_1, 1)
    assert brokers(table) == {0: "b2"}


def test_a_deposed_master_that_registers_as_a_slave_is_moved(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b2", 2, 1), PEER_2, 0)
    table.register(claim("b2", 0, 2), PEER_2, 1)
    assert brokers(table) == {0: "b2"}
    table.register(claim("b1", 1, 2), PEER_1, 2)
    assert brokers(table) == {0: "b2", 1: "b1"}


def test_a_master_that_registers_as_a_slave_before_its_successor_leaves_no_master(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b1", 1, 1), PEER_1, 1)
    assert brokers(table) == {1: "b1"}
    assert table.route("T").groups[0].master is None


def test_a_stale_claim_of_a_broker_takes_its_own_better_record_away(table):
    table.register(claim("b2", 0, 2), PEER_2, 0)
    table.register(claim("b1", 1, 1), PEER_1, 0)
    assert not table.register(claim("b1", 0, 1), PEER_1, 1)
    assert brokers(table) == {0: "b2"}


def test_a_silent_broker_expires_and_a_registration_or_heartbeat_keeps_it(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b2", 2, 1), PEER_2, 0)
    table.register(claim("b3", 3, 1), PEER_3, 0)
    table.register(claim("b1", 0, 1), PEER_1, 100 * SECOND)
    table.heartbeat("b2", 100 * SECOND)
    assert table.expire(120 * SECOND - 1) == []
    assert table.expire(120 * SECOND) == ["b3"]
    assert brokers(table) == {0: "b1", 2: "b2"}


def test_a_broker_may_ask_for_an_expiry_of_its_own(table):
    table.register(claim("b1", 0, 1, expiry_ms=10_000), PEER_1, 0)
    assert table.expire(10 * SECOND) == ["b1"]


def test_topics_stay_while_any_broker_of_the_group_is_known(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b2", 2, 1), PEER_2, 0)
    table.unregister("b1")
    assert brokers(table) == {2: "b2"}
    table.unregister("b2")
    assert table.route("T") is None
    table.register(claim("b2", 2, 1), PEER_2, 1)
    assert brokers(table) == {2: "b2"}


def test_a_closed_connection_takes_only_brokers_that_registered_over_it_last(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b2", 2, 1), PEER_2, 0)
    table.register(claim("b1", 0, 1), PEER_3, 1)
    assert table.disconnected(PEER_1) == []
    assert table.disconnected(PEER_2) == ["b2"]
    assert brokers(table) == {0: "b1"}
    assert table.disconnected(PEER_3) == ["b1"]


def test_an_encoded_route_is_never_stale(table):
    def seen() -> dict[int, str]:
        return dict(TopicRoute.decode(table.encoded_route("T")).groups[0].brokers)

    table.register(claim("b1", 0, 1), PEER_1, 0)
    assert seen() == {0: "b1"}
    table.register(claim("b2", 2, 1), PEER_2, 0)
    assert seen() == {0: "b1", 2: "b2"}
    table.register(claim("b2", 0, 2), PEER_2, 1)
    assert seen() == {0: "b2"}
    table.expire(1000 * SECOND)
    assert table.encoded_route("T") is None


def test_a_route_travels_as_the_public_clients_expect_it(table):
    table.register(claim("b1:10911", 0, 1), PEER_1, 0)
    table.register(claim("b2:10911", 2, 1), PEER_2, 0)
    body = table.encoded_route("T")
    assert body == (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"b1:10911","2":"b2:10911"},"brokerName":"broker-a","cluster":"c",'
        b'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
        b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    )
    assert TopicRoute.decode(body) == table.route("T")


def test_a_route_shows_what_each_broker_group_says_of_the_topic(table):
    wide = TopicConfig(name="T", read_queues=8, write_queues=6, permission=4, system_flag=1)
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(
        claim("b9", 0, 1, broker_name="broker-b", topics={"T": wide, "U": TopicConfig.of("U", 1)}), PEER_2, 0
    )
    first, second = table.route("T").groups
    assert (first.broker_name, first.read_queues, first.write_queues, first.permission) == ("broker-a", 4, 4, 6)
    assert (second.broker_name, second.read_queues, second.write_queues, second.permission) == ("broker-b", 8, 6, 4)
    assert [group.broker_name for group in table.route("U").groups] == ["broker-b"]
    assert TopicRoute.decode(table.encoded_route("T")) == table.route("T")
    assert table.topics() == ["T", "U"]


def test_a_topic_that_is_forgotten_stays_so_until_a_master_registers_it_again(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    assert table.encoded_route("T") is not None
    table.forget_topic("T")
    assert (table.encoded_route("T"), table.topics()) == (None, [])
    table.register(claim("b1", 0, 1), PEER_1, 1)
    assert brokers(table) == {0: "b1"}


def test_a_changed_topic_is_shown_at_once(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    assert TopicRoute.decode(table.encoded_route("T")).groups[0].write_queues == 4
    table.register(claim("b1", 0, 1, topics={"T": TopicConfig.of("T", 9)}), PEER_1, 1)
    assert TopicRoute.decode(table.encoded_route("T")).groups[0].write_queues == 9


def test_cluster_info_lists_all_groups(table):
    table.register(claim("b1", 0, 1), PEER_1, 0)
    table.register(claim("b9", 0, 1, broker_name="broker-b"), PEER_2, 0)
    info = json.loads(table.encoded_cluster_info())
    assert info["clusterAddrTable"] == {"c": ["broker-a", "broker-b"]}
    assert info["brokerAddrTable"]["broker-b"]["brokerAddrs"] == {"0": "b9"}


def test_a_registration_survives_the_wire():
    registration = claim("b1:10911", 0, 7, expiry_ms=10_000)
    command = RemotingCommand.decode(registration.encode().encode()[4:])
    assert Registration.decode(command) == registration


def unchecked(registration: Registration) -> dict[str, str]:
    return {name: value for name, value in registration.encode().ext_fields.items() if name != "bodyCrc32"}


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"topicConfigSerializeWrapper":{"dataVersion":1}}'])
def test_a_garbled_registration_is_refused(body):
    command = RemotingCommand.request(103, unchecked(claim("b1", 0, 1)), body)
    with pytest.raises(RemotingError, match="not a registration"):
        Registration.decode(command)


def test_a_body_that_was_harmed_on_its_way_is_refused():
    command = claim("b1", 0, 1).encode()
    command.body = command.body.replace(b"4", b"5")
    with pytest.raises(RemotingError, match="crc32 not match"):
        Registration.decode(command)


def test_a_compressed_registration_is_the_same_one():
    registration = claim(
        "b1:10911", 0, 7, topics={f"T{number}": TopicConfig.of(f"T{number}", 4) for number in range(99)}
    )
    command = RemotingCommand.decode(registration.encode_compressed().encode()[4:])
    assert Registration.decode(command) == registration
    assert len(command.body) < len(registration.encode().body) / 10


JAVA_BODY = zlib.compress(
    bytes.fromhex("0000002e")
    + b'{"counter":3,"stateVersion":0,"timestamp":170}'
    + bytes.fromhex("00000001 00000032")
    + b'orders 8 16 6 SINGLE_TAG {"+message.type":"DELAY"}'
    + bytes.fromhex("00000002")
    + b"[]"
    + bytes.fromhex("00000000")
)


def test_a_body_that_a_java_broker_has_compressed_is_understood():
    command = RemotingCommand.request(103, {**unchecked(claim("b1", 0, 1)), "compressed": "true"}, JAVA_BODY)
    registration = Registration.decode(command)
    assert registration.version == DataVersion(counter=3, timestamp_ms=170)
    assert registration.topics == {"orders": TopicConfig(name="orders", read_queues=8, write_queues=16)}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not compressed",
        JAVA_BODY[:-5],
        zlib.compress(b""),
        zlib.compress(bytes.fromhex("7fffffff")),
        zlib.compress(bytes.fromhex("00000002") + b"{}"),
        zlib.compress(bytes(MAX_BODY_BYTES + 1), 1),
    ],
    ids=["nothing", "text", "cut", "empty", "overstated", "no version", "a bomb"],
)
def test_what_is_no_compressed_registration_is_refused(body):
    command = RemotingCommand.request(103, {**unchecked(claim("b1", 0, 1)), "compressed": "true"}, body)
    with pytest.raises(RemotingError, match="not a registration"):
        Registration.decode(command)


def test_registrations_of_old_brokers_are_understood():
    topic = '{"perm":6,"readQueueNums":4,"topicName":"T","writeQueueNums":4}'
    alone = f'{{"dataVersion":{{"counter":1,"timestamp":5}},"topicConfigTable":{{"T":{topic}}}}}'
    for body in (alone, f'{{"filterServerList":[],"topicConfigSerializeWrapper":{alone}}}'):
        registration = Registration.decode(RemotingCommand.request(103, unchecked(claim("b1", 0, 1)), body.encode()))
        assert registration.version == DataVersion(counter=1, timestamp_ms=5)
        assert registration.topics == {"T": TopicConfig.of("T", 4)}
    nothing = Registration.decode(RemotingCommand.request(103, unchecked(claim("b1", 0, 1))))
    assert (nothing.version, nothing.topics) == (DataVersion(), {})


def test_old_clients_get_ids_of_brokers_as_numbers(table):
    table.register(claim('b1":1', 0, 1, broker_name='"7":'), PEER_1, 0)
    table.register(claim("b2:1", 2, 1, broker_name='"7":'), PEER_2, 0)
    body = table.route("T").encode_for_old_clients()
    assert b'"brokerAddrs":{0:"b1\\":1",2:"b2:1"}' in body
    assert re.sub(rb"([{,])([0-9]+):", rb'\1"\2":', body) == table.encoded_route("T")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"queueDatas":[]}', b'{"queueDatas":[],"brokerDatas":7}'])
def test_a_garbled_route_is_refused(body):
    with pytest.raises(ValueError):  # noqa: PT011 - the reason differs with what is wrong
        TopicRoute.decode(body)
