"""Delayed messages where one level is slow, as a story with known outcomes (scenarios of seed 002, delay 1).

A hundred messages of level 1 are due at once, as after consumers have failed in a storm. Each copy has to be replicated
over a link of 20 ms each way, so one after the other they take some four seconds; meanwhile a message of another level
is due, and one that names its time.

    who delivers         level 1         level 2        any time     order within level 1
    one for all levels   after 4 s       held up        on time      kept
    one a level          after 4 s       on time        on time      kept
    many a level         at once         on time        on time      given up
"""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.topic import TopicConfig
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.test_delayed_messages import LEVELS, send_later
from tests.rocketmq.scenarios.test_timed_messages import send_timed

OK = "SUCCESS"
STORM = [f"retry {number}" for number in range(100)]


async def seen_after(cluster: Cluster, topic: str, letter: str, from_s: float) -> str:
    """How many seconds from then on it has come out, in words."""

    async def is_there() -> bool:
        return letter in await cluster.read("b1", topic)

    await cluster.until(is_there, 20)
    return str(cluster.now_s - from_s)


async def storm_of_retries(cluster: Cluster) -> tuple[float, float, float]:
    """After how many seconds came out: the last of the storm, due after 5; level 1, due after 6; a time, after 6."""
    for topic in ("steady", "timed"):
        assert await cluster.make_topic("b1", TopicConfig.of(topic, 1)) == OK
    begun_s = cluster.now_s
    tasks = [cluster.begin(sent_later(cluster, 2, letter)) for letter in STORM]
    assert [await task for task in tasks] == [OK] * len(STORM)
    await cluster.sleep(begun_s + 4 - cluster.now_s)
    await cluster.slow_down(("b1", "b2"), delay_ms=20)
    await cluster.sleep(begun_s + 5 - cluster.now_s)
    last = cluster.begin(seen_after(cluster, TOPIC, STORM[-1], begun_s + 5))
    assert await send_later(cluster, "b1", 1, "steady", topic="steady") == [OK]
    assert await send_timed(cluster, "b1", "timed", topic="timed", TIMER_DELAY_MS=1_000) == OK
    sent_s = cluster.now_s
    steady = cluster.begin(seen_after(cluster, "steady", "steady", sent_s))
    timed = cluster.begin(seen_after(cluster, "timed", "timed", sent_s))
    return float(await last), float(await steady), float(await timed)


async def sent_later(cluster: Cluster, level: int, letter: str) -> str:
    return (await send_later(cluster, "b1", level, letter))[0]


@pytest.mark.parametrize(
    ("mode", "storm_takes_s", "steady_within_s"),
    [("SINGLE", (3.5, 6), (2.5, 6)), ("LEVEL", (3.5, 6), (0.9, 1.3)), ("ASYNC", (0, 0.5), (0.9, 1.3))],
)
def test_a_level_that_is_slow_holds_up_others_only_where_one_worker_serves_all(mode, storm_takes_s, steady_within_s):
    async def story(cluster: Cluster) -> None:
        last_s, steady_s, timed_s = await storm_of_retries(cluster)
        assert storm_takes_s[0] <= last_s < storm_takes_s[1]
        assert steady_within_s[0] <= steady_s < steady_within_s[1]
        assert 0.9 <= timed_s < 1.4, "any time is on time whatever levels do"
        letters = await cluster.read("b1")
        assert sorted(letters) == sorted(STORM), "nothing is lost, and nothing comes twice"
        assert letters == STORM or mode == "ASYNC"

    play(story, scheduleDeliveryMode=mode, timerPrecisionMs=100, slaveTimeout=10_000, **LEVELS)


def test_side_by_side_order_within_a_level_is_given_up_and_nothing_is_lost():
    """What is refused while too few are in sync is tried again by itself, each at its own pace."""

    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 1, *STORM) == [OK] * len(STORM)
        await cluster.kill("b2")
        await cluster.until_members(1)
        await cluster.sleep(2)
        assert await send_later(cluster, "b1", 1, "x") == ["IN_SYNC_REPLICAS_NOT_ENOUGH"]
        await cluster.boot("b2")

        async def all_are_there() -> bool:
            return set(STORM) <= set(await cluster.read("b1"))

        await cluster.until(all_are_there, 30)
        letters = [letter for letter in await cluster.read("b1") if letter in STORM]
        assert sorted(letters) == sorted(STORM)

    play(story, scheduleDeliveryMode="ASYNC", minInSyncReplicas=2, **LEVELS)
