"""Files of the log that expire between a configured master and its slaves: where slaves begin, and who is stuck."""

from __future__ import annotations

from system_under_test.rocketmq.topic import TopicConfig
from tests.rocketmq.scenarios.broker_cluster import Cluster
from tests.rocketmq.scenarios.classic_cluster import MASTER, SYNC_MASTER, play, slave
from tests.rocketmq.scenarios.test_expired_files import EXPIRING, LETTERS, OK, begins, send


def test_an_empty_slave_begins_where_its_masters_log_does_and_knows_queues_that_are_empty() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:10])
        assert await cluster.make_topic("b1", TopicConfig.of("cards", 1)) == OK
        assert await cluster.send("b1", *LETTERS[10:15], topic="cards") == [OK] * 5
        await begins(cluster, "b1", 10)
        await cluster.kill("b2")
        await cluster.wipe("b2")
        await cluster.boot("b2")
        await cluster.sleep(15)
        assert await cluster.queue_range("b2") == await cluster.queue_range("b1") == (10, 10)
        assert await cluster.read("b2", "cards") == LETTERS[10:15]
        (event,) = cluster.reported("b2", "begun")
        assert (event["at"], event["is_part"]) == (1700, False)
        await send(cluster, "b1", LETTERS[20:21])
        await cluster.sleep(2)
        assert await cluster.read("b2", start=10) == LETTERS[20:21]

    play(story, SYNC_MASTER, slave(1), **EXPIRING)


def test_a_slave_whose_place_has_expired_stays_as_it_is_until_a_human_decides() -> None:
    async def story(cluster: Cluster) -> None:
        await left_behind(cluster)
        assert cluster.reported("b2", "manual_repair_needed")
        assert await cluster.read("b2") == LETTERS[:5]
        assert not cluster.reported("b2", "truncated")

    play(story, MASTER, slave(1), **EXPIRING)


def test_a_slave_whose_place_has_expired_copies_what_is_left_anew_where_it_is_to() -> None:
    async def story(cluster: Cluster) -> None:
        await left_behind(cluster)
        assert [event["begin"] for event in cluster.reported("b2", "copied_anew")] == [1700]
        assert await cluster.read("b2", start=10) == LETTERS[10:15]
        await send(cluster, "b1", LETTERS[15:16])
        await cluster.sleep(2)
        assert await cluster.read("b2", start=10) == LETTERS[10:16]

    play(story, MASTER, slave(1), copyAnewWhenExpired=True, **EXPIRING)


async def left_behind(cluster: Cluster) -> None:
    """b2 has what its master deletes while b2 is away, and comes back."""
    await send(cluster, "b1", LETTERS[:5])
    await cluster.until_equal("b1", "b2")
    await cluster.kill("b2")
    await send(cluster, "b1", LETTERS[5:15])
    await begins(cluster, "b1", 10)
    await cluster.boot("b2")
    await cluster.sleep(10)


def test_a_slave_whose_master_begins_anew_before_what_the_slave_has_left_keeps_it_for_a_human() -> None:
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:15])
        await begins(cluster, "b2", 10)
        await cluster.kill("b1", "b2")
        await cluster.wipe("b1")
        await cluster.boot("b1")
        await cluster.sleep(5)
        await send(cluster, "b1", LETTERS[15:24])
        await cluster.boot("b2")
        await cluster.sleep(10)
        assert cluster.reported("b2", "manual_repair_needed")
        assert not cluster.reported("b2", "set_aside")
        assert await cluster.read("b2", start=10) == LETTERS[10:15]

    play(story, MASTER, slave(1), **EXPIRING)


def test_a_slave_that_is_too_slow_for_what_expires_is_parted_from_its_master_and_nobody_hangs() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.narrow_down(("b1", "b2"), bytes_per_s=20)
        await send(cluster, "b1", LETTERS)
        await begins(cluster, "b1", 30)
        await send(cluster, "b1", LETTERS[:1])
        await cluster.heal_links()
        await cluster.sleep(60)
        await send(cluster, "b1", LETTERS[1:2])
        await cluster.sleep(5)
        assert cluster.reported("b1", "follower_left_behind")
        start, end = await cluster.queue_range("b1")
        assert (await cluster.queue_range("b2"))[1] == end
        assert (await cluster.read("b2", start=start))[-1] == LETTERS[1]

    play(
        story, MASTER, slave(1), copyAnewWhenExpired=True, haTransferBatchSize=512, haTransferWindowSize=512, **EXPIRING
    )
