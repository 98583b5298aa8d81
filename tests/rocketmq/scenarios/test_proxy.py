"""The proxy in front of a cluster in the simulator, asked by a client that speaks gRPC."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from system_under_test.grpc.errors import GrpcError, Status
from system_under_test.rocketmq.proxy.v2 import (
    ClientType,
    Code,
    Digest,
    DigestType,
    GetOffsetRequest,
    GetOffsetResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MessageType,
    Permission,
    Publishing,
    PullMessageRequest,
    PullMessageResponse,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    QueryOffsetResponse,
    QueryRouteRequest,
    QueryRouteResponse,
    RecallMessageRequest,
    RecallMessageResponse,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    Subscription,
    TelemetryCommand,
    Timestamp,
    UpdateOffsetRequest,
    UpdateOffsetResponse,
    UserMessage,
)
from tests.rocketmq.scenarios.broker_cluster import GROUP, TOPIC, Cluster, play
from tests.rocketmq.scenarios.proxy_calls import NAMED, letter, queue, reached_by

READERS = Resource(name="readers")


async def send(cluster: Cluster, proxy: str, *messages: UserMessage) -> SendMessageResponse:
    return await cluster.call(proxy, "SendMessage", SendMessageRequest(messages=list(messages)), SendMessageResponse)


async def pull(cluster: Cluster, proxy: str, offset: int) -> list[PullMessageResponse]:
    request = PullMessageRequest(group=READERS, message_queue=queue(), offset=offset, batch_size=32)
    return await cluster.calls(proxy, "PullMessage", request, PullMessageResponse)


@pytest.mark.parametrize("mode", ["local", "cluster"])
def test_what_is_sent_through_a_proxy_is_read_through_it(mode: str) -> None:
    async def story(cluster: Cluster) -> None:
        proxy = "b1" if mode == "local" else "p1"
        route = await cluster.call(
            proxy, "QueryRoute", QueryRouteRequest(topic=NAMED, endpoints=reached_by(proxy)), QueryRouteResponse
        )
        assert route.status.code == Code.OK
        assert [(each.broker.name, each.id, each.permission) for each in route.message_queues] == [
            (GROUP, 0, Permission.READ_WRITE)
        ]
        assert route.message_queues[0].broker.endpoints == reached_by(proxy)

        sent = await send(cluster, proxy, letter("a", tag="t", keys=["k1", "k2"]), letter("b"))
        assert sent.status.code == Code.OK
        assert [(entry.status.code, entry.message_id) for entry in sent.entries] == [(20000, "id-a"), (20000, "id-b")]
        assert sorted(entry.offset for entry in sent.entries) == [0, 1]

        status, *messages, end = await pull(cluster, proxy, 0)
        assert status.status.code == Code.OK and end.next_offset == 2
        told = {each.message.body: each.message.system_properties for each in messages}
        assert (told[b"a"].tag, told[b"a"].keys, told[b"a"].message_id) == ("t", ["k1", "k2"], "id-a")
        assert (told[b"b"].tag, told[b"b"].keys, told[b"b"].queue_offset) == (None, [], sent.entries[1].offset)
        assert told[b"a"].body_digest == Digest(type=DigestType.CRC32, checksum="E8B7BE43")
        assert [each.status.code for each in (await pull(cluster, proxy, 2))[:1]] == [Code.MESSAGE_NOT_FOUND]

        commit = UpdateOffsetRequest(group=READERS, message_queue=queue(), offset=1)
        assert (await cluster.call(proxy, "UpdateOffset", commit, UpdateOffsetResponse)).status.code == Code.OK
        asked = GetOffsetRequest(group=READERS, message_queue=queue())
        assert (await cluster.call(proxy, "GetOffset", asked, GetOffsetResponse)).offset == 1
        for policy, offset in ((QueryOffsetPolicy.BEGINNING, 0), (QueryOffsetPolicy.END, 2)):
            place = QueryOffsetRequest(message_queue=queue(), query_offset_policy=policy)
            assert (await cluster.call(proxy, "QueryOffset", place, QueryOffsetResponse)).offset == offset

    if mode == "local":
        play(story, enableProxy=True)
    else:
        play(story, proxies=["p1"])


def test_a_proxy_follows_a_change_of_master() -> None:
    async def story(cluster: Cluster) -> None:
        assert (await send(cluster, "p1", letter("a"))).status.code == Code.OK
        await cluster.kill("b1")
        lost = (await send(cluster, "p1", letter("b"))).status
        assert lost.code in (Code.HA_NOT_AVAILABLE, Code.INTERNAL_ERROR, Code.PROXY_TIMEOUT)
        await cluster.until_master("b2")
        await cluster.sleep(5)
        assert (await send(cluster, "p1", letter("c"))).status.code == Code.OK
        assert [each.message.body for each in (await pull(cluster, "p1", 0))[1:-1]] == [b"a", b"c"]

    play(story, proxies=["p1"])


def test_a_proxy_that_dies_takes_nothing_with_it() -> None:
    async def story(cluster: Cluster) -> None:
        assert (await send(cluster, "p1", letter("a"))).status.code == Code.OK
        await cluster.kill("p1")
        assert (await send(cluster, "p2", letter("b"))).status.code == Code.OK
        await cluster.boot("p1")
        await cluster.sleep(1)
        assert [each.message.body for each in (await pull(cluster, "p1", 0))[1:-1]] == [b"a", b"b"]

    play(story, proxies=["p1", "p2"])


def test_clients_are_told_their_settings() -> None:
    async def story(cluster: Cluster) -> None:
        stream = await cluster.grpc.open(
            "p1:8081", "/apache.rocketmq.v2.MessagingService/Telemetry", {"x-mq-client-id": "c"}
        )
        producer = Settings(client_type=ClientType.PRODUCER, publishing=Publishing(topics=[NAMED]))
        await stream.send(TelemetryCommand(settings=producer).encode())
        told = TelemetryCommand.decode(await stream.receive())
        assert told.status.code == Code.OK
        assert (told.settings.publishing.max_body_size, told.settings.publishing.validate_message_type) == (2**22, True)
        assert told.settings.backoff_policy.exponential_backoff.initial.nanos == 10_000_000

        consumer = Settings(subscription=Subscription(group=READERS, fifo=True))
        await stream.send(TelemetryCommand(settings=consumer).encode())
        told = TelemetryCommand.decode(await stream.receive())
        assert (told.settings.subscription.fifo, told.settings.subscription.receive_batch_size) == (True, 32)
        assert told.settings.backoff_policy.customized_backoff.next[0].seconds == 10

        await stream.send(TelemetryCommand(settings=Settings()).encode())
        assert TelemetryCommand.decode(await stream.receive()).status.code == Code.UNRECOGNIZED_CLIENT_TYPE
        stream.end()

        assigned = QueryAssignmentRequest(topic=NAMED, group=READERS, endpoints=reached_by("p1"))
        queues = await cluster.call("p1", "QueryAssignment", assigned, QueryAssignmentResponse, "c")
        assert [each.message_queue.id for each in queues.assignments] == [0]
        queues = await cluster.call("p1", "QueryAssignment", assigned, QueryAssignmentResponse, "another")
        assert [each.message_queue.id for each in queues.assignments] == [-1]

        for group, code in (
            ("readers", Code.OK),
            ("", Code.ILLEGAL_CONSUMER_GROUP),
            ("!", Code.ILLEGAL_CONSUMER_GROUP),
        ):
            beat = HeartbeatRequest(client_type=ClientType.PUSH_CONSUMER, group=Resource(name=group))
            assert (await cluster.call("p1", "Heartbeat", beat, HeartbeatResponse)).status.code == code
        beat = HeartbeatRequest(client_type=ClientType.PRODUCER)
        assert (
            await cluster.call("p1", "Heartbeat", beat, HeartbeatResponse, "")
        ).status.code == Code.CLIENT_ID_REQUIRED

    play(story, proxies=["p1"])


REFUSED = {
    "no topic": (UserMessage(body=b"x"), Code.ILLEGAL_TOPIC),
    "a strange topic": (UserMessage(topic=Resource(name="a b"), body=b"x"), Code.ILLEGAL_TOPIC),
    "a topic of the system": (UserMessage(topic=Resource(name="TBW102"), body=b"x"), Code.ILLEGAL_TOPIC),
    "an unknown topic": (
        UserMessage(topic=Resource(name="none"), body=b"x", system_properties=letter("x").system_properties),
        Code.TOPIC_NOT_FOUND,
    ),
    "no body": (letter(""), Code.MESSAGE_BODY_EMPTY),
    "no id": (letter("x", message_id=""), Code.ILLEGAL_MESSAGE_ID),
    "a blank tag": (letter("x", tag=" "), Code.ILLEGAL_MESSAGE_TAG),
    "two tags": (letter("x", tag="a||b"), Code.ILLEGAL_MESSAGE_TAG),
    "a key of two words": (letter("x", keys=["a b"]), Code.ILLEGAL_MESSAGE_KEY),
    "a control character": (letter("x", keys=["a\x01b"]), Code.ILLEGAL_MESSAGE_KEY),
    "a wrong checksum": (
        letter("x", body_digest=Digest(type=DigestType.CRC32, checksum="0")),
        Code.MESSAGE_CORRUPTED,
    ),
    "a group and a due time": (
        letter("x", message_group="g", delivery_timestamp=Timestamp(seconds=1)),
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
    ),
    "a group in a normal message": (letter("x", message_group="g"), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    "a reserved property": (
        UserMessage(
            topic=NAMED, body=b"x", system_properties=letter("x").system_properties, user_properties={"DELAY": "3"}
        ),
        Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
    ),
    "a property that ends another": (
        UserMessage(
            topic=NAMED,
            body=b"x",
            system_properties=letter("x").system_properties,
            user_properties={"a": "b\x02DELAY\x013"},
        ),
        Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
    ),
}


def test_what_cannot_be_sent_is_refused_with_its_code() -> None:
    async def story(cluster: Cluster) -> None:
        for what, (message, code) in REFUSED.items():
            assert (await send(cluster, "p1", message)).status.code == code, what
        assert (await send(cluster, "p1")).status.code == Code.BAD_REQUEST
        both = await send(cluster, "p1", letter("good"), letter(""))
        assert both.status.code == Code.MULTIPLE_RESULTS
        assert [entry.status.code for entry in both.entries] == [Code.OK, Code.MESSAGE_BODY_EMPTY]
        assert await cluster.read("b1") == ["good"]
        with pytest.raises(GrpcError) as failure:
            await cluster.grpc.call("p1:8081", "/apache.rocketmq.v2.MessagingService/SendMessage", b"\x0b", 5.0)
        assert failure.value.status == Status.INVALID_ARGUMENT

    play(story, proxies=["p1"])


def test_messages_of_one_group_go_to_one_queue_in_order() -> None:
    async def story(cluster: Cluster) -> None:
        letters = [letter(word, message_group="g", message_type=MessageType.FIFO) for word in "abc"]
        sent = await send(cluster, "p1", *letters)
        assert [entry.offset for entry in sent.entries] == [0, 1, 2]
        assert await cluster.read("b1", TOPIC) == ["a", "b", "c"]
        messages = (await pull(cluster, "p1", 0))[1:-1]
        assert [each.message.system_properties.message_group for each in messages] == ["g"] * 3
        assert {each.message.system_properties.message_type for each in messages} == {MessageType.FIFO}

    play(story, proxies=["p1"])


def test_each_of_two_clients_gets_everything_where_each_keeps_its_own_offsets() -> None:
    async def story(cluster: Cluster) -> None:
        assert (await send(cluster, "p1", *map(letter, "abc"))).status.code == Code.OK
        where = QueryOffsetRequest(message_queue=queue(), query_offset_policy=QueryOffsetPolicy.BEGINNING)
        for proxy in ("p1", "p2"):
            offset = (await cluster.call(proxy, "QueryOffset", where, QueryOffsetResponse)).offset
            got: list[bytes] = []
            while len(got) < 3:
                request = PullMessageRequest(group=READERS, message_queue=queue(), offset=offset, batch_size=2)
                answers = await cluster.calls(proxy, "PullMessage", request, PullMessageResponse)
                got += [answer.message.body for answer in answers if answer.message is not None]
                offset = answers[-1].next_offset
            assert sorted(got) == [b"a", b"b", b"c"]
        asked = GetOffsetRequest(group=READERS, message_queue=queue())
        committed = await cluster.call("p1", "GetOffset", asked, GetOffsetResponse)
        assert committed.offset == 0, "what one has read is the group's business only if it says so"

    play(story, proxies=["p1", "p2"])


def test_a_delayed_message_is_taken_back_by_its_handle_and_others_come_out() -> None:
    async def story(cluster: Cluster) -> None:
        at_s = 1_767_225_600 + int(cluster.now_s) + 3
        later = {"message_type": MessageType.DELAY, "delivery_timestamp": Timestamp(seconds=at_s)}
        sent = await send(cluster, "p1", letter("unwanted", **later), letter("wanted", **later), letter("plain"))
        unwanted, wanted, plain = (entry.recall_handle for entry in sent.entries)
        assert urlsafe_b64decode(unwanted) == f"v1 {TOPIC} {GROUP} {at_s * 1000} id-unwanted".encode()
        assert wanted and not plain

        async def recall(handle: str, topic: str = TOPIC) -> RecallMessageResponse:
            request = RecallMessageRequest(topic=Resource(name=topic), recall_handle=handle)
            return await cluster.call("p2", "RecallMessage", request, RecallMessageResponse)

        recalled = await recall(unwanted)
        assert (recalled.status.code, recalled.message_id) == (Code.OK, "id-unwanted")
        control = urlsafe_b64encode(f"v1 {TOPIC} {GROUP} {at_s * 1000} a\x02b".encode()).decode()
        for handle in ("", "v1", "!", control):
            assert (await recall(handle)).status.code == Code.BAD_REQUEST
        assert (await recall(wanted, "other")).status.code == Code.BAD_REQUEST
        await cluster.sleep(6)
        assert sorted(await cluster.read("b1")) == ["plain", "wanted"]
        assert (await recall(wanted)).status.code == Code.BAD_REQUEST, "it has come out"

    play(story, proxies=["p1", "p2"])
