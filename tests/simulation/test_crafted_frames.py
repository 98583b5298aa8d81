"""Frames that are made to end a node, each by itself: the nodes live on and serve.

What is drawn at random is in test_malformed_input_to_nodes.py; here stands what randomness hardly finds.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pytest

from system_under_test.raft import message as raft
from system_under_test.remoting.codes import RequestCode
from system_under_test.rocketmq.broker.ha import wire
from system_under_test.rocketmq.controller.protocol import SyncStateSet
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.registration import Registration
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, GROUP, Cluster, play

LONG = "é" * 4_000_000
"""8 MB as it comes in, 24 MB as a frame goes out, where such a letter is an escape of six bytes."""
NAMESERVERS = tuple(f"{name}:9876" for name in CONTROLLERS)
CONTROLLER_PORTS = tuple(f"{name}:9878" for name in CONTROLLERS)
RAFT_GROUP = 0
RAFT_PORTS = tuple(f"{name}:9879" for name in CONTROLLERS)
BROKERS = ("b1:10911", "b2:10911")


def raw(fields: dict[str, str], code: int, body: bytes = b"", **header: object) -> bytes:
    """A request whose header is UTF-8 without escapes."""
    text = json.dumps(
        {"code": code, "opaque": 1, "flag": 0, "extFields": fields, **header}, ensure_ascii=False
    ).encode()
    return struct.pack(">II", 4 + len(text) + len(body), len(text)) + text + body


def nested(depth: int) -> bytes:
    header = b'{"code":105,"opaque":1,"flag":0,"extFields":{"topic":%b}}' % (b"[" * depth + b"]" * depth)
    return struct.pack(">II", 4 + len(header), len(header)) + header


def registration(name: str) -> bytes:
    return (
        Registration(
            cluster="c",
            broker_name=name,
            broker_id=0,
            address=name[:9],
            ha_address="h:1",
            version=DataVersion(state_version=1),
            topics={},
        )
        .encode()
        .encode()
    )


def notice(epoch: int, master_id: str | None, address: str | None, members: tuple[int, ...] = (1, 2)) -> bytes:
    fields = {"masterEpoch": str(epoch), "syncStateSetEpoch": "1"}
    fields |= {} if master_id is None else {"masterBrokerId": master_id}
    fields |= {} if address is None else {"masterAddress": address}
    return raw(fields, RequestCode.NOTIFY_BROKER_ROLE_CHANGED, SyncStateSet.of(members, 7).to_body())


def controller(code: int, body: bytes = b"", **fields: str) -> bytes:
    return raw({"brokerName": GROUP, "clusterName": "DefaultCluster", **fields}, code, body)


def forged(*messages: raft.Message) -> tuple[bytes, ...]:
    """Each over a connection of its own, which a length beyond all bounds ends."""
    return tuple(
        raft.encode_greeting(raft.Greeting(message.sender, f"{message.sender}:9879"))
        + raft.encode(RAFT_GROUP, message)
        + b"\xff" * 4
        for message in messages
    )


GARBAGE = (
    b"garbage",
    b"E{}",
    b"K",
    b"K[]",
    b'E{"event":"MasterElected"}',
    b'E{"event":"MasterElected","group":[],"master":1}',
)
CRAFTED: dict[str, tuple[tuple[str, ...], Callable[[], tuple[bytes, ...]]]] = {
    "an answer longer than a frame": (
        (*NAMESERVERS, *CONTROLLER_PORTS, *BROKERS),
        lambda: (
            *(
                frame
                for long in (LONG, LONG[:400_000])
                for frame in (
                    raw({"topic": long}, RequestCode.GET_ROUTEINFO_BY_TOPIC),
                    raw({"topic": long, "queueId": "0"}, RequestCode.GET_MAX_OFFSET),
                    raw({"brokerName": long}, RequestCode.CONTROLLER_GET_REPLICA_INFO),
                    raw({"brokerName": "g", "brokerId": long}, RequestCode.CONTROLLER_ELECT_MASTER),
                    raw({"key": long}, RequestCode.KEY_VALUE_GET),
                )
            ),
            raw({}, RequestCode.KEY_VALUE_PUT, json.dumps({"put": ["k", LONG]}, ensure_ascii=False).encode()),
            raw({"key": "k"}, RequestCode.KEY_VALUE_GET),
        ),
    ),
    "more brokers than an answer has room for": (
        NAMESERVERS,
        lambda: (
            *(registration(f"{number:09d}" + "a" * 900_000) for number in range(20)),
            raw({}, RequestCode.GET_BROKER_CLUSTER_INFO),
        ),
    ),
    "brackets": (
        (*NAMESERVERS, *CONTROLLER_PORTS, *BROKERS),
        lambda: tuple(nested(depth) for depth in (60, 300, *range(900, 1000, 3), 5_000, 1_000_000)),
    ),
    "a notice without an address": (BROKERS, lambda: (notice(9, "2", None), notice(10, "1", None))),
    "a notice with an address that is none": (
        BROKERS,
        lambda: tuple(
            notice(epoch, "3", text) for epoch, text in enumerate(("x", "", ":", "x:y", "b1:99999", "b1:٣"), 9)
        ),
    ),
    "a notice beyond all epochs": (
        BROKERS,
        lambda: tuple(
            notice(epoch, id, f"b{id}:10911") for id in ("1", "2") for epoch in (-1, 2**31, 2**40, 2**63, 10**19)
        ),
    ),
    "a notice of ids that are none": (
        BROKERS,
        lambda: tuple(notice(9, id, "b1:10911", (int(id),)) for id in ("0", "-1", str(2**63), str(10**19))),
    ),
    "a registration with an address that is none": (
        CONTROLLER_PORTS,
        lambda: tuple(
            controller(RequestCode.CONTROLLER_REGISTER_BROKER, brokerId="1", brokerAddress=text, incarnation="x")
            for text in ("x", ":", "x:y", LONG)
        ),
    ),
    "ids beyond all numbers": (
        CONTROLLER_PORTS,
        lambda: tuple(
            controller(
                code, appliedBrokerId=number, brokerId=number, registerCheckCode="x", brokerAddress="x:1", epoch=number
            )
            for code in (
                RequestCode.CONTROLLER_APPLY_BROKER_ID,
                RequestCode.CONTROLLER_REGISTER_BROKER,
                RequestCode.BROKER_HEARTBEAT,
                RequestCode.CONTROLLER_ELECT_MASTER,
            )
            for number in (str(2**63), str(10**19), "-1")
        ),
    ),
    "settings that are none": (
        CONTROLLER_PORTS,
        lambda: tuple(
            raw({}, RequestCode.UPDATE_CONTROLLER_CONFIG, body)
            for body in (
                b"",
                b"\\",
                b"\xff\xfe",
                b"a=\\u12",
                b"a=\\ud800",
                b"=\n:",
                b"\\\n" * 20_000,
                b"x" * 10_000_000,
                b"enableElectUncleanMaster",
                b"controllerApplyTimeout=" + b"9" * 60_000,
                b"controllerApplyTimeout=-1",
                b"electMasterMaxRetryCount=\\u0663",
                b"configStorePath=/etc/passwd",
                b"controllerDLegerPeers=x",
                LONG[:20_000].encode() + b"=1",
            )
        ),
    ),
    "members that are none": (
        CONTROLLER_PORTS,
        lambda: tuple(
            raw({"controllerId": node, "controllerAddress": at}, code)
            for code in (
                RequestCode.CONTROLLER_ADD_MEMBER,
                RequestCode.CONTROLLER_REMOVE_MEMBER,
                RequestCode.CONTROLLER_TRANSFER_LEADERSHIP,
            )
            for node, at in (
                ("", ""),
                ("c9", ""),
                ("c9", "x"),
                ("c9", "x:0"),
                ("c9", "a:1;b:2"),
                ("c9", "x:٣"),
                ("c;9", "x:1"),
                ("é", "x:1"),
                (LONG[:400_000], "x:1"),
                ("c9", LONG[:400_000] + ":1"),
                ("c1\n", "c1:9879"),
                *((f"c{number}", f"nowhere{number}:1") for number in range(9, 40)),
            )
        ),
    ),
    "questions and wishes of administrators that make no sense": (
        (*CONTROLLER_PORTS, *BROKERS),
        lambda: (
            *(
                raw({}, code, body)
                for code in (
                    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
                    RequestCode.CONTROLLER_GET_METADATA_INFO,
                    RequestCode.GET_CONTROLLER_CONFIG,
                    RequestCode.GET_BROKER_EPOCH_CACHE,
                    RequestCode.GET_BROKER_RUNTIME_INFO,
                )
                for body in (b"", b"{}", b"[1]", b"[" * 100_000, b'["\\ud800"]', LONG[:400_000].encode())
            ),
            raw({}, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, json.dumps([GROUP] * 20_000).encode()),
            *(
                controller(RequestCode.CLEAN_BROKER_DATA, brokerControllerIdsToClean=ids, isCleanLivingBroker=living)
                for ids in (";", "x", "-1", "1;" + "9" * 5_000, "9", "1;" * 100_000, LONG[:400_000])
                for living in ("true", "false", LONG[:1_000])
            ),
            *(
                controller(RequestCode.CONTROLLER_ELECT_MASTER, brokerId=number, designateElect="true")
                for number in ("", "-1", "0", "9", str(2**63), "9" * 5_000)
            ),
        ),
    ),
    "entries of Raft that nobody wrote": (
        RAFT_PORTS,
        lambda: forged(
            *(raft.Append("c2", "c1", 2**40, 1, 0, 0, 2**40, (raft.Entry(1, 2**40, data),)) for data in GARBAGE)
        ),
    ),
    "places of Raft's log that are nowhere": (
        RAFT_PORTS,
        lambda: forged(
            *(
                message
                for sender in CONTROLLERS
                for term in (0, 1, 2, 2**62)
                for place in (0, 1, 2**63, 2**64 - 1)
                for message in (
                    raft.AppendAccepted(sender, "", term, place, place),
                    raft.AppendRefused(sender, "", term, place, place, place, place),
                    raft.Append(sender, "", term, place, place, place, place, ()),
                    raft.PreVoteRequest(sender, "", term, place, place),
                    raft.VoteRequest(sender, "", term, place, place),
                    raft.VoteReply(sender, "", term, True),
                    raft.PreVoteReply(sender, "", term, True),
                    raft.SnapshotChunk(sender, "", term, place, place, place, place, b"x"),
                    raft.ChunkTaken(sender, "", term, place, place, place),
                    raft.TimeoutNow(sender, "", term),
                )
            )
        ),
    ),
    "acks and handshakes of slaves that are none": (
        ("b1:10912", "b2:10912"),
        lambda: (
            wire.encode_slave_handshake(wire.SlaveHandshake(False, False, 2**63 - 1)),
            wire.encode_ack(0),
            wire.encode_ack(2**63 - 1),
        ),
    ),
}
"""By name: where frames are sent to, and what makes them; together they have hundreds of megabytes."""


@pytest.mark.parametrize("name", CRAFTED)
def test_frames_that_are_made_for_it_end_no_node(name):
    addresses, made = CRAFTED[name]
    messages = made()

    async def story(cluster: Cluster) -> None:
        for address in addresses:
            await cluster.feed(address, *messages)
        await cluster.sleep(5)
        assert cluster.dead() == {}
        assert "SUCCESS" in [*await cluster.send("b1", "a"), *await cluster.send("b2", "a")]

    play(story)


FORGED_EPOCH = 9
END = -1
"""Stands for the end of the slave's log."""
FORGED_STREAMS: dict[str, tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int, int, int, bytes], ...]]] = {
    "an end of the log before its beginning": (((1, 0), (8, -(2**63))), ()),
    "epochs below zero": (((-7, -9), (-1, -1), (1, 0)), ()),
    "epochs beyond the end": (((1, 0), (9, 2**63 - 1)), ((END, 9, 2**63 - 1, 0, b"x"),)),
    "an epoch that starts before the one before": (((1, 0), (2, 0)), ((END, 9, -5, 0, b"x"), (END, 9, 0, 0, b"x"))),
    "an epoch that starts behind its bytes": (((1, 0),), ((END, 9, 2**40, 0, b"x"),)),
    "no epoch at all": ((), ((0, -1, 0, 0, b""), (0, 9, 0, 2**63 - 1, b"x" * 300))),
    "a confirm offset below zero": (((1, 0),), ((END, 9, END, -(2**63), b""),)),
    "a body beyond all bounds": (((1, 0),), ((END, 9, END, 0, b"x" * 70_000),)),
}


@pytest.mark.parametrize("name", FORGED_STREAMS)
def test_a_master_that_speaks_nonsense_ends_no_slave(name):
    """The bytes of its log are believed, as every slave believes its master's; all that frames them is not."""
    entries, transfers = FORGED_STREAMS[name]

    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == ["SUCCESS"] * 2
        await cluster.until_equal("b1", "b2")
        end = (await cluster.log("b2")).max_offset
        messages = [wire.encode_master_handshake(2**62, FORGED_EPOCH, entries)]
        for offset, epoch, start, confirmed, body in transfers:
            at, begun = (end if place == END else place for place in (offset, start))
            messages.append(wire.encode_transfer(at, epoch, begun, confirmed, body))
        followed = await cluster.play_master(messages)
        await cluster.feed("b2:10911", notice(FORGED_EPOCH, "3", "client:10911"))
        await cluster.sleep(5)
        assert followed()
        assert cluster.dead() == {}

    play(story)
