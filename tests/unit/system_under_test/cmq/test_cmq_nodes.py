"""Nodes of CMQ together, on simulated hosts."""

from __future__ import annotations

import pytest

from system_under_test.cmq import wire
from system_under_test.cmq.wire import Code, Request
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from tests.unit.system_under_test.cmq.cmq_cluster import NODES, Cluster, play


def test_what_is_produced_is_given_out_until_it_is_acknowledged():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        assert await cluster.produce("q", b"a", b"b") == 0
        assert await cluster.produce("q", b"c") == 2
        pulled = await cluster.pull("q", most=2)
        assert (pulled.messages, pulled.left) == (((0, b"a"), (1, b"b")), 3)
        assert await cluster.ack("q", 1, 0) == (True, True)
        assert await cluster.ack("q", 1) == (False,)
        assert (await cluster.pull("q")).messages == ((2, b"c"),)
        assert (await cluster.pull("q")).messages == ()
        await cluster.sleep(1.1)
        assert (await cluster.pull("q")).messages == ((2, b"c"),)

    play(story)


def test_a_new_leader_gives_out_all_that_is_not_acknowledged():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        await cluster.produce("q", *[b"%d" % number for number in range(10)])
        await cluster.pull("q", most=8)
        await cluster.ack("q", 0, 3, 7)
        first = await cluster.leader()
        await cluster.environment.kill([first])
        others = tuple(node for node in NODES if node != first)
        pulled = await cluster.pull("q", among=others)
        assert [number for number, _ in pulled.messages] == [1, 2, 4, 5, 6, 8, 9]

    play(story)


def test_a_pull_waits_for_a_message_and_no_longer_than_it_said():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        leader = await cluster.leader()
        assert wire.decode_pulled((await cluster.ask(leader, wire.pull("q", 1, 300))).body).messages == ()
        host = cluster.environment.client_host("late")

        async def late() -> None:
            await cluster.sleep(0.5)
            await cluster.produce("q", b"late")

        producing = host.spawn(late(), "producer")
        assert wire.decode_pulled((await cluster.ask(leader, wire.pull("q", 1, 4_000))).body).messages == (
            (0, b"late"),
        )
        await producing

    play(story)


def test_all_restart_and_nothing_confirmed_is_gone_nor_anything_acknowledged_back():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q", "r")
        for number in range(40):
            await cluster.produce("q", b"%d" % number, b"x" * 100)
        for number in range(0, 80, 3):
            await cluster.ack("q", number)
        for _ in range(2):
            await cluster.environment.power_off(list(NODES))
            await cluster.environment.boot(list(NODES))
            left = await cluster.all_messages("q")
            assert sorted(left) == [number for number in range(80) if number % 3]
            assert all(body == (b"x" * 100 if number % 2 else b"%d" % (number // 2)) for number, body in left.items())

    play(story, snapshotEntries=20)
    play(story)


def test_what_no_node_does_is_refused():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        leader = await cluster.leader()
        follower = next(node for node in NODES if node != leader)
        for node, command, code, words in (
            (leader, wire.produce("unknown", [b"m"]), Code.UNKNOWN_QUEUE, "no such queue"),
            (leader, wire.pull("unknown", 1, 0), Code.UNKNOWN_QUEUE, "no such queue"),
            (leader, wire.produce("q", [b"m" * 257]), Code.TOO_LONG, "257 bytes, and at most 256"),
            (leader, wire.ack("q", [0]), Code.UNKNOWN_MESSAGE, "no message has"),
            (leader, wire.create("a/b"), Code.MALFORMED, "expected a queue's name"),
            (leader, RemotingCommand.request(Request.PULL, {"queue": "q", "most": "17"}), Code.MALFORMED, "1 to 16"),
            (leader, RemotingCommand.request(Request.ACK, {"queue": "q"}, b"1"), Code.MALFORMED, "numbers of 8 bytes"),
            (leader, wire.transfer(2, follower), Code.MALFORMED, "field 'group': expected 1 to 1, got 2"),
            (leader, wire.remove(1, "n9"), Code.UNFIT_CHANGE, "n9 is no member"),
            (leader, wire.add(1, "n9", "n9:9300"), Code.UNFIT_CHANGE, "no node answers at n9:9300"),
            (follower, wire.produce("q", [b"m"]), Code.NOT_LEADER, f"{follower} does not lead group 1"),
            (follower, wire.add(1, leader, f"{leader}:9300"), Code.NOT_LEADER, f"{follower} does not lead group 1"),
            (leader, RemotingCommand.request(63999), ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "does not know request"),
        ):
            answer = await cluster.ask(node, command)
            assert answer.code == code, answer.remark
            assert words in (answer.remark or "")
        hint = (await cluster.ask(follower, wire.produce("q", [b"m"]))).ext_fields
        assert hint == {"leader": leader, "leaderAddress": f"{leader}:9300"}
        assert (await cluster.ask(follower, wire.route("q"))).ext_fields == {"group": "1", **hint}
        assert (await cluster.pull("q")).left == 0

    play(story)


def test_more_queues_than_a_group_takes_are_refused():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q", "r", "q")
        answer = await cluster.ask(await cluster.leader(), wire.create("s"))
        assert answer.code == Code.TOO_MANY_QUEUES

    play(story, mostQueues=2)


@pytest.mark.parametrize("groups", [1, 3])
def test_leaders_are_spread_over_the_nodes(groups: int):
    async def story(cluster: Cluster) -> None:
        await cluster.sleep(6.0)
        leaders = [await cluster.leader(group) for group in range(1, groups + 1)]
        assert leaders == [NODES[group % 3] for group in range(1, groups + 1)]

    play(story, groups=groups, spread=True)
