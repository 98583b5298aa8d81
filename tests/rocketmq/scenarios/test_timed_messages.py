"""Messages due at any time come out then, whoever is master, also those due beyond the window of the wheel."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.message_protocol import SendRequest
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play

OK = "SUCCESS"
BEGIN_MS = 1_767_225_600_000
"""The wall clock when a story's environment begins."""
WHEEL = {"timerPrecisionMs": 100, "flushDiskType": "SYNC_FLUSH", "slaveSynchronizePeriod": 1_000}
SMALL = {**WHEEL, "timerWheelSlots": 80, "timerRollWindowSlot": 20}
"""What is due in more than two seconds rolls."""


async def send_timed(cluster: Cluster, node: str, letter: str, topic: str = TOPIC, **timer: object) -> str:
    properties = "".join(f"{name}\x01{value}\x02" for name, value in timer.items())
    request = SendRequest(topic=topic, queue_id=0, body=letter.encode(), born_timestamp_ms=0, properties=properties)
    return await cluster.ask(node, request.encode())


async def until_read(cluster: Cluster, node: str, *letters: str, within_s: float = 30) -> None:
    async def are_there() -> bool:
        return set(await cluster.read(node)) >= set(letters)

    await cluster.until(are_there, within_s)


@pytest.mark.parametrize("wheel", [WHEEL, SMALL], ids=["within the window", "rolling"])
def test_messages_come_out_when_they_are_due_and_not_before(wheel):
    async def story(cluster: Cluster) -> None:
        now_ms = BEGIN_MS + round(cluster.now_s * 1000)
        assert await send_timed(cluster, "b1", "at 7", TIMER_DELIVER_MS=now_ms + 7_000) == OK
        assert await send_timed(cluster, "b1", "in 4.55", TIMER_DELAY_MS=4_550) == OK
        assert await send_timed(cluster, "b1", "in 2", TIMER_DELAY_SEC=2) == OK
        assert await send_timed(cluster, "b1", "passed", TIMER_DELIVER_MS=now_ms - 1) == OK
        assert await send_timed(cluster, "b1", "no delay", TIMER_DELAY_SEC=0) == OK
        seen = ["passed", "no delay"]
        for letter, at_s in (("in 2", 2), ("in 4.55", 4.55), ("at 7", 7)):
            due_s = now_ms / 1000 - BEGIN_MS / 1000 + at_s
            await cluster.sleep(due_s - cluster.now_s - 0.02)
            assert await cluster.read("b1") == seen
            await cluster.sleep(0.35)
            seen.append(letter)
            assert await cluster.read("b1") == seen

    play(story, **wheel)


def test_where_replicas_are_far_away_slots_do_not_wait_for_each_other():
    letters = [f"letter {number}" for number in range(10)]

    async def story(cluster: Cluster) -> None:
        for number, letter in enumerate(letters):
            assert await send_timed(cluster, "b1", letter, TIMER_DELAY_MS=4_000 + 100 * number) == OK
        await cluster.slow_down(("b1", "b2"), ("b2", "b1"), delay_ms=1_000)
        await cluster.sleep(15)
        assert await cluster.read("b1") == letters

    play(story, **WHEEL)


def test_a_delay_beyond_the_longest_is_refused_and_so_are_all_where_the_wheel_is_off():
    async def story(cluster: Cluster) -> None:
        assert await send_timed(cluster, "b1", "a", TIMER_DELAY_SEC=61) == "MESSAGE_ILLEGAL"
        assert await send_timed(cluster, "b1", "b", TIMER_DELAY_SEC=60) == OK

    play(story, brokers=1, timerMaxDelaySec=60)

    async def off(cluster: Cluster) -> None:
        assert await send_timed(cluster, "b1", "a", TIMER_DELAY_SEC=1) == "SYSTEM_ERROR"
        assert await cluster.send("b1", "b") == [OK]

    play(off, brokers=1, timerWheelEnable=False)


@pytest.mark.parametrize("wheel", [WHEEL, SMALL], ids=["within the window", "rolling"])
def test_the_next_master_goes_on_where_the_last_one_was(wheel):
    async def story(cluster: Cluster) -> None:
        for letter, seconds in (("one", 1), ("nine", 9), ("thirty", 30)):
            assert await send_timed(cluster, "b1", letter, TIMER_DELAY_SEC=seconds) == OK
        await until_read(cluster, "b1", "one")
        await cluster.sleep(3)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert "rmq_sys_wheel_timer" not in await cluster.topics("b2")
        await until_read(cluster, "b2", "thirty", within_s=40)
        assert await cluster.read("b2") == ["one", "nine", "thirty"]
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        assert await send_timed(cluster, "b2", "more", TIMER_DELAY_SEC=1) == OK
        await until_read(cluster, "b2", "more")
        assert await cluster.read("b2") == ["one", "nine", "thirty", "more"]

    play(story, **wheel)


def test_a_broker_that_was_down_when_messages_were_due_delivers_them_when_it_is_back():
    async def story(cluster: Cluster) -> None:
        for letter, seconds in (("two", 2), ("five", 5), ("far", 60)):
            assert await send_timed(cluster, "b1", letter, TIMER_DELAY_SEC=seconds) == OK
        await cluster.power_off("b1")
        await cluster.sleep(20)
        await cluster.boot("b1")
        await cluster.until_master("b1")
        await until_read(cluster, "b1", "two", "five")
        assert await cluster.read("b1") == ["two", "five"]
        await until_read(cluster, "b1", "far", within_s=60)

    play(story, brokers=1, **SMALL)


async def send_two(cluster: Cluster, node: str, at_ms: int) -> None:
    """Due at the same time, with keys of their own."""
    for letter in ("wanted", "unwanted"):
        assert await send_timed(cluster, node, letter, UNIQ_KEY=f"id-{letter}", TIMER_DELIVER_MS=at_ms) == OK


@pytest.mark.parametrize("wheel", [WHEEL, SMALL], ids=["within the window", "rolling"])
def test_a_timer_that_is_taken_back_before_it_is_due_does_not_come_out(wheel):
    async def story(cluster: Cluster) -> None:
        at_ms = BEGIN_MS + round(cluster.now_s * 1000) + 7_000
        await send_two(cluster, "b1", at_ms)
        await cluster.sleep(3)
        assert await send_timed(cluster, "b1", "", TIMER_DEL_UNIQKEY="id-unwanted", TIMER_DELIVER_MS=at_ms) == OK
        await cluster.sleep(20)
        assert await cluster.read("b1") == ["wanted"], "and neither does what took it back"

    play(story, **wheel)


def test_whoever_takes_a_timer_back_names_its_slot_and_its_key():
    async def story(cluster: Cluster) -> None:
        at_ms = BEGIN_MS + round(cluster.now_s * 1000) + 3_000
        await send_two(cluster, "b1", at_ms)
        for key, due_ms in (("id-unwanted", at_ms + 1_000), ("id-other", at_ms), ("", at_ms)):
            assert await send_timed(cluster, "b1", "", TIMER_DEL_UNIQKEY=key, TIMER_DELIVER_MS=due_ms) == OK
        assert await send_timed(cluster, "b1", "without a key", TIMER_DELIVER_MS=at_ms) == OK
        await cluster.sleep(6)
        assert sorted(await cluster.read("b1")) == ["unwanted", "wanted"]

    play(story, **WHEEL)


def test_a_timer_that_has_come_out_is_not_taken_back_any_more():
    async def story(cluster: Cluster) -> None:
        at_ms = BEGIN_MS + round(cluster.now_s * 1000) + 1_000
        await send_two(cluster, "b1", at_ms)
        await until_read(cluster, "b1", "wanted", "unwanted")
        back = {"TIMER_DEL_UNIQKEY": "id-unwanted", "TIMER_DELIVER_MS": at_ms}
        assert await send_timed(cluster, "b1", "", **back) == "MESSAGE_ILLEGAL"
        await cluster.sleep(3)
        assert await cluster.read("b1") == ["wanted", "unwanted"]

    play(story, **WHEEL)


@pytest.mark.parametrize("wheel", [WHEEL, SMALL], ids=["within the window", "rolling"])
def test_the_next_master_knows_what_was_taken_back(wheel):
    async def story(cluster: Cluster) -> None:
        at_ms = BEGIN_MS + round(cluster.now_s * 1000) + 9_000
        await send_two(cluster, "b1", at_ms)
        assert await send_timed(cluster, "b1", "", TIMER_DEL_UNIQKEY="id-unwanted", TIMER_DELIVER_MS=at_ms) == OK
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await until_read(cluster, "b2", "wanted")
        await cluster.sleep(5)
        assert await cluster.read("b2") == ["wanted"]

    play(story, **wheel)


def test_no_client_says_in_whose_place_its_message_stands():
    async def story(cluster: Cluster) -> None:
        assert await send_timed(cluster, "b1", "mine", TIMER_DELAY_SEC=20) == OK
        assert await send_timed(cluster, "b1", "theirs", TIMER_DELAY_SEC=20, TIMER_ROLLED_FROM=0) == OK
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await until_read(cluster, "b2", "mine", "theirs", within_s=40)

    play(story, **WHEEL)


@pytest.mark.parametrize("seconds", [300, -300])
def test_a_clock_that_was_wrong_delays_nothing_beyond_its_span_once_it_is_right_again(seconds):
    async def story(cluster: Cluster) -> None:
        await cluster.set_clock("b1", seconds)
        assert await send_timed(cluster, "b1", "a", TIMER_DELAY_SEC=8) == OK
        await cluster.sleep(2)
        await cluster.set_clock("b1", 0)
        assert await send_timed(cluster, "b1", "b", TIMER_DELAY_SEC=5) == OK
        await cluster.sleep(4.9)
        assert "b" not in await cluster.read("b1")
        await until_read(cluster, "b1", "a", "b", within_s=15)

    play(story, brokers=1, **WHEEL)
