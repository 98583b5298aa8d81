"""Masters and slaves without controllers: who waits for whom, what is shown, what becomes of logs that part."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.client.consumer.config import Mode
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster
from tests.rocketmq.scenarios.classic_cluster import MASTER, SYNC_MASTER, play, slave
from tests.rocketmq.scenarios.group_member import Member, until_got

OK = "SUCCESS"
SYNC_FLUSH = {"flushDiskType": "SYNC_FLUSH"}


def test_a_master_alone_takes_and_shows_messages_and_has_them_after_a_kill() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        assert await cluster.read("b1") == ["a", "b"]
        await cluster.kill("b1")
        await cluster.boot("b1")
        await cluster.sleep(2)
        assert await cluster.read("b1") == ["a", "b"]
        assert await cluster.send("b1", "c") == [OK]

    play(story, MASTER)


def test_slaves_copy_their_master_and_are_listed_by_their_ids() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.until_equal("b1", "b2", "b3")
        route = await cluster.route(TOPIC)
        assert route is not None
        assert dict(route.brokers) == {0: "b1:10911", 1: "b2:10911", 5: "b3:10911"}
        assert await cluster.send("b2", "x") == ["NOT_MASTER"]

    play(story, MASTER, slave(1), slave(5))


def test_a_slave_is_read_while_its_master_is_away_and_nobody_is_promoted() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.until_equal("b1", "b2")
        await cluster.kill("b1")
        await cluster.sleep(200)
        assert await cluster.read("b2") == ["a"]
        assert await cluster.send("b2", "x") == ["NOT_MASTER"]
        route = await cluster.route(TOPIC)
        assert route is not None
        assert dict(route.brokers) == {1: "b2:10911"}
        await cluster.boot("b1")
        await cluster.sleep(5)
        assert await cluster.send("b1", "b") == [OK]
        await cluster.until_equal("b1", "b2")

    play(story, MASTER, slave(1))


def test_name_servers_that_start_while_the_master_is_away_lead_to_its_slave() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b1", "c1")
        await cluster.boot("c1")
        await cluster.sleep(35)
        route = await cluster.route(TOPIC)
        assert route is not None
        assert dict(route.brokers) == {1: "b2:10911"}

    play(story, MASTER, slave(1))


def test_dual_write_answers_that_no_slave_is_there_and_keeps_the_message() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.kill("b2")
        await cluster.sleep(1)
        assert await cluster.send("b1", "b") == ["SLAVE_NOT_AVAILABLE"]
        assert await cluster.read("b1") == ["a"]
        # Consumers go on with what is durable, which it is a while later.
        await cluster.sleep(15)
        assert await cluster.read("b1") == ["a", "b"]
        await cluster.boot("b2")
        await cluster.sleep(5)
        assert await cluster.send("b1", "c") == [OK]
        assert await cluster.read("b2") == ["a", "b", "c"]

    play(story, SYNC_MASTER, slave(1))


def test_dual_write_waits_for_a_slave_that_is_silent_and_shows_nothing_meanwhile() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "b") == ["FLUSH_SLAVE_TIMEOUT"]
        assert await cluster.read("b1") == ["a"]
        await cluster.heal()
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == ["a", "b"]

    play(story, SYNC_MASTER, slave(1))


def test_a_slave_that_is_far_behind_is_neither_waited_for_nor_does_it_hide_what_is_durable() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        letters = [f"{number} {'x' * 4000}" for number in range(5)]
        assert await cluster.send("b1", *letters) == ["SLAVE_NOT_AVAILABLE"] * 5
        await cluster.sleep(15)
        assert await cluster.read("b1") == letters
        await cluster.boot("b2")
        await cluster.sleep(3)
        assert await cluster.send("b1", "near") == [OK]
        assert await cluster.send("b1", "y" * 9000) == ["SLAVE_NOT_AVAILABLE"]
        await cluster.sleep(1)
        assert await cluster.send("b1", "z") == [OK]

    play(story, SYNC_MASTER, slave(1), haMaxGapNotInSync=8192)


def test_one_of_two_slaves_is_enough_for_dual_write() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        assert await cluster.read("b3") == ["a", "b"]

    play(story, SYNC_MASTER, slave(1), slave(2))


def test_an_asynchronous_master_does_not_wait_for_its_slave() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "a") == [OK]
        assert await cluster.read("b1") == ["a"]

    play(story, MASTER, slave(1))


@pytest.mark.parametrize("role", [MASTER, SYNC_MASTER], ids=["asynchronous", "dual write"])
def test_under_synchronous_flush_no_slave_is_ahead_of_a_master_that_lost_its_power(role: dict[str, object]) -> None:
    async def story(cluster: Cluster) -> None:
        letters = [f"letter {number}" for number in range(30)]
        assert await cluster.send("b1", *letters) == [OK] * 30
        await cluster.power_off("b1")
        on_slave = (await cluster.log("b2")).max_offset
        await cluster.boot("b1")
        await cluster.sleep(5)
        assert on_slave <= (await cluster.log("b1")).max_offset
        assert await cluster.read("b1") == letters
        await cluster.until_equal("b1", "b2")

    play(story, role, slave(1), **SYNC_FLUSH)


def test_a_slave_ahead_of_its_master_sets_the_surplus_aside_and_follows_again() -> None:
    """The master loses what it had not flushed, with this seed all of it; its slave had it already."""

    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.sleep(15)
        assert await cluster.send("b1", "b", "c") == [OK, OK]
        assert await cluster.read("b2") == ["a", "b", "c"]
        surplus_end = (await cluster.log("b2")).max_offset
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.sleep(3)
        assert await cluster.send("b1", "d") == [OK]
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b2") == ["a", "d"]
        (kept,) = cluster.reported("b2", "set_aside")
        assert kept["end"] == surplus_end
        assert b"b" in cluster.file("b2", str(kept["path"]))

    play(story, MASTER, slave(1), seed=2)


def test_a_member_consumes_what_it_had_pulled_and_the_master_has_not_lost() -> None:
    """The master loses what it had not flushed; in order, what a member has pulled waits for what is before it."""

    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.sleep(15)
        member = Member(cluster, "m1", mode=Mode.ORDERLY)
        member.takes_s = 20
        await cluster.until(lambda: member.has(0), 20)
        assert await cluster.send("b1", "c") == [OK]
        await until_got(cluster, ["a"], member)
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.sleep(3)
        assert await cluster.read("b1") == ["a", "b"]
        member.takes_s = 0
        await cluster.sleep(90)
        assert "b" in member.got
        assert await cluster.committed("b1", "readers") == 2

    play(story, MASTER, seed=2)


def test_a_slave_whose_master_lost_its_disk_keeps_what_it_has_for_a_human() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        assert await cluster.read("b2") == ["a", "b"]
        await cluster.kill("b1")
        await cluster.wipe("b1")
        await cluster.boot("b1")
        await cluster.sleep(5)
        letters = [f"another letter {number}" for number in range(20)]
        assert OK not in await cluster.send("b1", *letters)
        assert (await cluster.log("b1")).max_offset > (await cluster.log("b2")).max_offset
        await cluster.sleep(60)
        assert await cluster.read("b2") == ["a", "b"]
        assert cluster.reported("b2", "manual_repair_needed")

    play(story, SYNC_MASTER, slave(1))


def test_an_empty_slave_copies_all_that_its_master_has() -> None:
    async def story(cluster: Cluster) -> None:
        letters = [f"{number} {'x' * 4000}" for number in range(40)]
        assert await cluster.send("b1", *letters) == [OK] * 40
        await cluster.kill("b2")
        await cluster.wipe("b2")
        await cluster.boot("b2")
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b2") == letters

    play(story, MASTER, slave(1))


def test_where_so_configured_an_empty_slave_begins_at_the_last_file() -> None:
    async def story(cluster: Cluster) -> None:
        letters = [f"{number} {'x' * 4000}" for number in range(40)]
        assert await cluster.send("b1", *letters) == [OK] * 40
        await cluster.kill("b2")
        await cluster.wipe("b2")
        await cluster.boot("b2")
        await cluster.sleep(10)
        assert (await cluster.log("b2")).max_offset == (await cluster.log("b1")).max_offset
        first = 40 - len(await cluster.read("b2", start=32))
        assert first == 32

    play(story, MASTER, slave(1), syncFromLastFile=True)


def test_a_slave_copies_topics_and_offsets_of_its_master() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.commit("b1", "readers", 2)
        await cluster.sleep(15)
        assert await cluster.committed("b2", "readers") == 2

    play(story, MASTER, slave(1))
