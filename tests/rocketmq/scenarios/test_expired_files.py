"""Files of the log that expire, as transcripts: what replicas hold afterwards, where others begin, who may join.

A file is kept for 20 s once it is full; brokers look each second. A letter takes 157 bytes of the log, and a file has
1,700: ten letters and a blank. b1 is the first master, of epoch 1.
"""

from __future__ import annotations

from typing import Any

from tests.rocketmq.scenarios.broker_cluster import Cluster, play

OK = "SUCCESS"
KEPT_S = 20
LETTERS = [f"{number:039d}" for number in range(40)]
EVERY_HOUR = ";".join(f"{hour:02}" for hour in range(24))
EXPIRING: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1700,
    "maxMessageSize": 1000,
    "fileReservedTimeMillis": KEPT_S * 1000,
    "deleteWhen": EVERY_HOUR,
    "cleanResourceInterval": 1000,
}


async def send(cluster: Cluster, node: str, letters: list[str]) -> None:
    assert await cluster.send(node, *letters) == [OK] * len(letters)


async def begins(cluster: Cluster, node: str, queue_offset: int, within_s: float = 2 * KEPT_S) -> None:
    """Until the queue begins there."""

    async def does() -> bool:
        return (await cluster.queue_range(node))[0] == queue_offset

    await cluster.until(does, within_s)


def test_8_an_empty_slave_begins_where_the_deleted_file_ended_and_is_told_the_epoch_left():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:10])
        assert (await cluster.log("b1")).max_offset == 1570
        await cluster.until_equal("b1", "b2")
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert (await cluster.log("b2")).epochs == {1: 0, 2: 1570}

        await send(cluster, "b2", LETTERS[10:15])
        full_s = cluster.now_s
        await begins(cluster, "b2", 10)
        assert KEPT_S <= cluster.now_s - full_s <= KEPT_S + 3
        assert (await cluster.log("b2")).epochs == {2: 1700}

        await cluster.add("b3")
        await cluster.until_members(2, 3)
        await cluster.until_equal("b2", "b3")
        assert (await cluster.log("b3")).epochs == {2: 1700}
        assert await cluster.queue_range("b3") == (10, 15)
        assert await cluster.read("b3", start=10) == LETTERS[10:15]
        assert cluster.reported("b3", "begun")[0]["at"] == 1700

    play(story, **EXPIRING)


def test_8_a_broker_that_comes_back_keeps_its_files_until_it_has_compared_its_log_with_its_masters():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:5])
        await cluster.until_equal("b1", "b2")
        await cluster.cut(("b1", "b2"))
        await cluster.until_members(1)
        await send(cluster, "b1", LETTERS[5:12])
        await cluster.sleep(KEPT_S / 2)  # it writes its checkpoint
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.boot("b1")
        await cluster.sleep(2 * KEPT_S)
        assert cluster.reported("b1", "deleted") == []
        await cluster.heal()
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == LETTERS[:5]

    play(story, unclean=True, **EXPIRING)


def test_8_whoever_asks_for_what_is_gone_is_sent_on_to_what_is_left():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:15])
        await begins(cluster, "b1", 10)
        client = cluster.client()
        pulled = await client.pull("letters", 0, 3, 32, "readers")
        assert (pulled.messages, pulled.next_offset) == ((), 10)
        assert [offset for offset, _ in (await client.pull("letters", 0, 10, 32, "readers")).messages] == [
            *range(10, 15)
        ]
        # A file goes whole, and the last one never.
        await cluster.sleep(2 * KEPT_S)
        assert await cluster.queue_range("b1") == (10, 15)

    play(story, **EXPIRING)


def test_a_queue_that_has_no_letter_left_goes_on_where_it_was_at_a_replica_that_began_behind_them():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "first", "second", topic="notes") == [OK, OK]
        await send(cluster, "b1", LETTERS[:15])
        await cluster.until_master("b1")
        await cluster.commit("b1", "readers", 2, topic="notes")

        async def notes_are_gone() -> bool:
            return await cluster.queue_range("b1", "notes") == (2, 2)

        await cluster.until(notes_are_gone, 2 * KEPT_S)
        await cluster.add("b2")
        await cluster.until_members(1, 2)
        assert await cluster.queue_range("b2", "notes") == (2, 2)
        await cluster.sleep(12)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.committed("b2", "readers", "notes") == 2
        assert await cluster.send("b2", "third", topic="notes") == [OK]
        assert await cluster.read("b2", "notes", start=2) == ["third"]

    play(story, brokers=1, topics={"letters": 1, "notes": 1}, **EXPIRING)


def test_a_replica_that_began_at_the_last_file_joins_once_the_rest_has_expired():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:25])
        sent_s = cluster.now_s
        await cluster.add("b2")

        async def follows() -> bool:
            return (await cluster.log("b2")).max_offset == (await cluster.log("b1")).max_offset

        await cluster.until(follows, 10)
        assert await cluster.queue_range("b2") == (20, 25)
        assert await cluster.members() == (1,)
        # A reader that comes to it for what only it lacks is not sent on.
        pulled = await cluster.client().pull("letters", 0, 3, 32, "readers", "b2:10911")
        assert (pulled.messages, pulled.next_offset) == ((), 3)

        await cluster.until_members(1, 2)
        assert cluster.now_s - sent_s > KEPT_S
        assert await cluster.queue_range("b1") == (20, 25)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2", start=20) == LETTERS[20:25]

    play(story, brokers=1, syncFromLastFile=True, **EXPIRING)


async def away_until_its_place_has_expired(cluster: Cluster) -> None:
    await send(cluster, "b1", LETTERS[:3])
    await cluster.until_equal("b1", "b2")
    # Its checkpoint has to know that they are confirmed.
    await cluster.sleep(4)
    await cluster.kill("b2")
    await cluster.until_members(1)
    await send(cluster, "b1", LETTERS[3:15])
    await begins(cluster, "b1", 10)
    await cluster.boot("b2")


def test_a_slave_whose_place_has_expired_waits_for_manual_repair_and_says_so():
    async def story(cluster: Cluster) -> None:
        await away_until_its_place_has_expired(cluster)
        await cluster.sleep(30)
        assert await cluster.members() == (1,)
        (event,) = cluster.reported("b2", "manual_repair_needed")
        assert "the master has deleted all before 1700" in event["reason"]
        states = [event["state"] for event in cluster.reported("b2", "ha_state")]
        assert states[-2:] == ["HANDSHAKE", "SUSPEND"]
        assert await cluster.read("b2") == LETTERS[:3]

    play(story, **EXPIRING)


def test_a_slave_whose_place_has_expired_copies_anew_where_it_may():
    async def story(cluster: Cluster) -> None:
        await away_until_its_place_has_expired(cluster)
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")
        assert await cluster.queue_range("b2") == (10, 15)
        assert [event["begin"] for event in cluster.reported("b2", "copied_anew")] == [1700]
        await send(cluster, "b1", LETTERS[15:16])

    play(story, copyAnewWhenExpired=True, **EXPIRING)


def test_replicas_that_deleted_different_files_understand_each_other():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "b1", LETTERS[:25])
        await cluster.until_equal("b1", "b2")
        await cluster.kill("b2")
        await cluster.until_members(1)
        await begins(cluster, "b1", 20)
        # b2 was down: its files are as young as they were.
        await cluster.boot("b2")
        await cluster.until_members(1, 2)
        assert await cluster.queue_range("b2") == (0, 25)
        assert (await cluster.log("b2")).epochs == {1: 0}
        await send(cluster, "b1", LETTERS[25:27])
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        await send(cluster, "b2", LETTERS[27:28])
        await begins(cluster, "b2", 20)
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1", start=20) == LETTERS[20:28]

    play(story, **EXPIRING)


def test_states_of_a_connection_are_told_at_both_ends():
    async def story(cluster: Cluster) -> None:
        states = [event["state"] for event in cluster.reported("b2", "ha_state")]
        assert states[-2:] == ["HANDSHAKE", "TRANSFER"]
        assert [event["state"] for event in cluster.reported("b1", "ha_state")][:2] == ["HANDSHAKE", "TRANSFER"]
        await cluster.kill("b2")
        await cluster.until_members(1)
        last = cluster.reported("b1", "ha_state")[-1]
        assert (last["slave"], last["state"]) == (2, "SHUTDOWN")

    play(story)
