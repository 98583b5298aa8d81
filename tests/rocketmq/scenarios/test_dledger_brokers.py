"""Brokers whose log a group of DLedger replicates: who is master, what may be sent and seen, where messages stand."""

from __future__ import annotations

from harness.system import NodeSpec
from system_under_test.dledger.client_message import AppendRequest
from system_under_test.dledger.entry import HEAD_BYTES
from system_under_test.dledger.wire import Addressed, encode_request
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.message_id import parse_message_id
from tests.rocketmq.scenarios.broker_cluster import GROUP, TOPIC
from tests.rocketmq.scenarios.deployed_cluster import Deployed, node, play

OK = "SUCCESS"
BROKERS = ("b1", "b2", "b3")
QUICK = {"heartBeatTimeIntervalMs": 200, "minVoteIntervalMs": 50, "maxVoteIntervalMs": 200, "maxPushTimeOutMs": 200}


def cluster_of(**settings: object) -> list[NodeSpec]:
    """A NameServer, and three brokers of one group."""
    config = {
        "brokerName": GROUP,
        "namesrvAddr": "c1:9876",
        "topics": {TOPIC: 1},
        "enableDLegerCommitLog": True,
        "dLegerGroup": GROUP,
        "dLegerPeers": ";".join(f"{broker}-{broker}:20911" for broker in BROKERS),
        "mappedFileSizeCommitLog": 4096,
        "maxMessageSize": 2048,
        "slaveReadEnable": True,
        "registerNameServerPeriod": 1000,
        "controllerRetryInterval": 100,
        **QUICK,
        **settings,
    }
    brokers = [node(name, "broker", {**config, "dLegerSelfId": name}) for name in BROKERS]
    return [node("c1", "nameserver", {}), *brokers]


async def master_of(cluster: Deployed, *among: str) -> str:
    """The broker to which NameServers lead, once it is one of these."""
    found: list[str] = []

    async def is_routed() -> bool:
        route = await cluster.route(TOPIC)
        if route is not None and route.master is not None:
            found[:] = [route.master.partition(":")[0]]
        return bool(found) and found[0] in (among or BROKERS)

    await cluster.until(is_routed, 30)
    return found[0]


def others(master: str) -> tuple[str, ...]:
    return tuple(broker for broker in BROKERS if broker != master)


def test_the_leader_is_master_with_id_0_and_followers_have_their_numbers() -> None:
    async def story(cluster: Deployed) -> None:
        master = await master_of(cluster)
        assert await cluster.send(master, "a", "b") == [OK, OK]
        for follower in others(master):
            assert await cluster.send(follower, "x") == ["NOT_MASTER"]
        for broker in BROKERS:
            await cluster.until_letters(broker, "a", "b")

        async def are_registered() -> bool:
            route = await cluster.route(TOPIC)
            numbers = {int(follower[1:]) + 1: f"{follower}:10911" for follower in others(master)}
            return route is not None and dict(route.brokers) == {0: f"{master}:10911", **numbers}

        await cluster.until(are_registered, 10)

    play(story, *cluster_of())


def test_another_broker_becomes_master_and_goes_on_where_each_queue_ended() -> None:
    async def story(cluster: Deployed) -> None:
        first = await master_of(cluster)
        assert await cluster.send(first, "a", "b") == [OK, OK]
        await cluster.kill(first)
        second = await master_of(cluster, *others(first))
        assert await cluster.send(second, "c") == [OK]
        await cluster.boot(first)
        for broker in BROKERS:
            await cluster.until_letters(broker, "a", "b", "c")
        assert await cluster.queue_range(first) == (0, 3)

    play(story, *cluster_of())


def test_what_no_majority_has_is_not_shown_and_makes_way_for_what_the_next_master_takes() -> None:
    async def story(cluster: Deployed) -> None:
        first = await master_of(cluster)
        assert await cluster.send(first, "a") == [OK]
        await cluster.cut(*((first, other) for other in ("c1", *others(first))))
        assert await cluster.send(first, "lost") == ["FLUSH_SLAVE_TIMEOUT"]
        assert await cluster.read(first) == ["a"]
        second = await master_of(cluster, *others(first))
        assert await cluster.send(second, "b") == [OK]
        assert await cluster.send(first, "x") == ["NOT_MASTER"]
        await cluster.heal()
        for broker in BROKERS:
            await cluster.until_letters(broker, "a", "b")

    play(story, *cluster_of())


def test_more_than_may_wait_are_refused_for_certain() -> None:
    async def story(cluster: Deployed) -> None:
        master = await master_of(cluster)
        await cluster.cut(*((master, other) for other in others(master)))
        assert await cluster.send(master, "a") == ["FLUSH_SLAVE_TIMEOUT"]
        assert await cluster.send(master, "b") == ["SYSTEM_BUSY"]
        await cluster.heal()

    waits = {"slaveTimeout": 50, "maxWaitAckTimeMs": 60_000, "heartBeatTimeIntervalMs": 600}
    play(story, *cluster_of(maxPendingRequestsNum=1, **waits))


def test_a_message_stands_48_bytes_behind_its_entrys_position() -> None:
    async def story(cluster: Deployed) -> None:
        await master_of(cluster)
        client = cluster.client()
        first, second = [await client.send(TOPIC, 0, letter) for letter in (b"a", b"b")]
        client.close()
        at = [parse_message_id(sent.message_id)[1] for sent in (first, second)]
        # Before the first one stands the leader's own entry, which is empty.
        assert at[0] == 2 * HEAD_BYTES
        assert (at[1] - at[0]) > HEAD_BYTES

    play(story, *cluster_of())


def test_all_is_there_after_every_broker_was_without_power() -> None:
    async def story(cluster: Deployed) -> None:
        master = await master_of(cluster)
        letters = [f"letter {number}" for number in range(40)]
        assert set(await cluster.send(master, *letters)) == {OK}
        await cluster.power_off(*BROKERS)
        await cluster.boot(*BROKERS)
        assert await cluster.publish("after")
        for broker in BROKERS:
            await cluster.until_letters(broker, *letters, "after")

    play(story, *cluster_of(ackDurable=True))


def test_an_emptied_broker_gets_all_of_the_log_and_its_queues() -> None:
    async def story(cluster: Deployed) -> None:
        master = await master_of(cluster)
        assert set(await cluster.send(master, *"abcdef")) == {OK}
        emptied = others(master)[0]
        await cluster.kill(emptied)
        await cluster.wipe(emptied)
        await cluster.boot(emptied)
        await cluster.until_letters(emptied, *"abcdef")

    play(story, *cluster_of())


def test_the_preferred_broker_becomes_master_again() -> None:
    async def story(cluster: Deployed) -> None:
        assert await master_of(cluster, "b2") == "b2"
        assert await cluster.send("b2", "a") == [OK]
        await cluster.kill("b2")
        other = await master_of(cluster, "b1", "b3")
        assert await cluster.send(other, "b") == [OK]
        await cluster.boot("b2")
        assert await master_of(cluster, "b2") == "b2"
        assert await cluster.publish("c") == "b2"
        for broker in BROKERS:
            await cluster.until_letters(broker, *"abc")

    play(story, *cluster_of(preferredLeaderIds="b2"))


def test_only_the_broker_appends() -> None:
    async def story(cluster: Deployed) -> None:
        master = await master_of(cluster)
        code, body = encode_request(Addressed(group=GROUP, to=master, request=AppendRequest((b"no message",))))
        answer = await cluster.answer(f"{master}:20911", RemotingCommand.request(code, body=body))
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    play(story, *cluster_of())


def test_followers_have_what_is_kept_beside_the_log() -> None:
    async def story(cluster: Deployed) -> None:
        master = await master_of(cluster)
        assert await cluster.send(master, *"abc") == [OK] * 3
        await cluster.commit(master, "readers", 2)
        follower = others(master)[0]

        async def is_copied() -> bool:
            return await cluster.committed(follower, "readers") == 2

        await cluster.until(is_copied, 30)

    play(story, *cluster_of(slaveSynchronizePeriod=500))
