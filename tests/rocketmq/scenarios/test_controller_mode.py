"""Controller mode, as transcripts: what becomes of logs, sets and roles when things go wrong.

M master, S slave, e epoch. b1 is the first master, of epoch 1. Letters stand for messages.
"""

from __future__ import annotations

from collections.abc import Awaitable

from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, Cluster, play

OK = "SUCCESS"
WAITED_IN_VAIN = "FLUSH_SLAVE_TIMEOUT"
REFUSED = "IN_SYNC_REPLICAS_NOT_ENOUGH"
NOT_MASTER = "NOT_MASTER"
DISK_LOSES = 2
"""The seed of a world in which a loss of power takes what b1 had not fsynced, as it need not."""


def test_1_an_unacknowledged_tail_is_cut_when_its_master_returns():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "x") == [WAITED_IN_VAIN]
        assert await cluster.read("b1") == ["a", "b"]
        dirty = await cluster.log("b1")

        await cluster.kill("b1")
        await cluster.heal()
        await cluster.until_master("b2")
        taken_over = await cluster.log("b2")
        assert taken_over.epochs == {1: 0, 2: taken_over.max_offset}
        assert taken_over.max_offset < dirty.max_offset

        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        assert await cluster.send("b2", "c") == [OK]
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == ["a", "b", "c"]

    play(story)


def test_2_what_a_power_loss_took_is_copied_back_under_its_own_epoch():
    letters = [f"letter {number}" for number in range(40)]

    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *letters) == [OK] * len(letters)
        acked = (await cluster.log("b1")).max_offset
        await cluster.power_off("b1")
        await cluster.until_master("b2")
        assert (await cluster.log("b2")).epochs == {1: 0, 2: acked}
        await cluster.isolate("b1")
        await cluster.boot("b1")
        await cluster.until(lambda: shorter_than(cluster, "b1", acked), 2)
        await cluster.heal()
        await cluster.until_members(1, 2)
        assert await cluster.send("b2", "one more") == [OK]
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == [*letters, "one more"]

    play(story, seed=DISK_LOSES)


def test_3_equal_logs_are_not_cut_however_many_epochs_they_have():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        assert await cluster.send("b2", "b") == [OK]
        await cluster.until_equal("b1", "b2")
        before = await cluster.log("b2")

        await cluster.kill("b2")
        await cluster.until_master("b1")
        after = await cluster.log("b1")
        assert after.epochs == {**before.epochs, 3: before.max_offset}
        await cluster.boot("b2")
        await cluster.until_equal("b1", "b2")
        assert (await cluster.log("b2")).max_offset == before.max_offset
        assert await cluster.read("b2") == ["a", "b"]

    play(story)


def test_4_a_tail_is_cut_at_the_first_of_the_epochs_it_missed():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.cut(("b1", "b2"), ("b1", "b3"))
        assert await cluster.send("b1", "x", "y") == [WAITED_IN_VAIN] * 2
        await cluster.kill("b1")
        await cluster.heal()
        await cluster.until_master("b2")
        await cluster.until_members(2, 3)
        assert await cluster.send("b2", "b") == [OK]
        await cluster.kill("b2")
        await cluster.until_master("b3")
        start = (await cluster.log("b3")).epochs
        assert sorted(start) == [1, 2, 3]

        await cluster.boot("b1", "b2")
        await cluster.until_members(1, 2, 3)
        await cluster.until_equal("b1", "b2", "b3")
        assert (await cluster.log("b1")).epochs == start
        assert await cluster.read("b1") == ["a", "b"]

    play(story, brokers=3)


def test_5_the_old_master_and_the_longer_slave_are_cut_where_the_new_epoch_begins():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.cut(("b1", "b3"))
        assert await cluster.send("b1", "x") == [WAITED_IN_VAIN]
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "y") == [WAITED_IN_VAIN]
        lengths = [(await cluster.log(node)).max_offset for node in ("b3", "b2", "b1")]
        assert lengths == sorted(set(lengths))

        # The controllers have to know that b2 is dead before they look for another master.
        await cluster.kill("b2")
        await cluster.sleep(0.1)
        await cluster.kill("b1")
        await cluster.heal()
        await cluster.until_master("b3")
        await cluster.boot("b1", "b2")
        await cluster.until_members(1, 2, 3)
        await cluster.until_equal("b1", "b2", "b3")
        assert (await cluster.log("b1")).epochs == {1: 0, 2: lengths[0]}
        assert await cluster.read("b2") == ["a"]

    play(story, brokers=3)


def test_6_an_epoch_that_the_new_master_never_had_is_cut_whole():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "x") == [WAITED_IN_VAIN]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        common = (await cluster.log("b2")).max_offset
        assert await cluster.send("b2", "y", "z") == [OK, OK]
        await cluster.kill("b2")
        await cluster.heal()
        await cluster.boot("b1")
        await cluster.until_master("b1")
        master = await cluster.log("b1")
        assert 2 not in master.epochs
        await cluster.boot("b2")
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b2") == ["a", "x"]
        assert common < master.max_offset

    play(story, unclean=True)


def test_6_a_tail_of_the_first_epoch_is_cut_whole_by_masters_that_hold_nothing_of_it_even_after_a_restart():
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"), ("b1", "b3"))
        assert await cluster.send("b1", "x") == [WAITED_IN_VAIN]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.until_members(2, 3)
        assert await cluster.send("b2", "a") == [OK]
        assert (await cluster.log("b2")).epochs == {1: 0, 2: 0}
        await cluster.kill("b2")
        await cluster.until_master("b3")
        await cluster.boot("b2")
        await cluster.until_members(2, 3)
        await cluster.kill("b3")
        await cluster.until_master("b2")
        assert sorted((await cluster.log("b2")).epochs) == [1, 2, 3, 4]
        await cluster.heal()
        await cluster.boot("b1", "b3")
        await cluster.until_members(1, 2, 3)
        await cluster.until_equal("b1", "b2", "b3")
        assert await cluster.read("b1") == ["a"]

    play(story, brokers=3)


def test_9_sends_wait_for_a_dead_member_until_the_controller_has_confirmed_that_it_left():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        assert await cluster.send("b1", "a") == [OK]
        assert await cluster.members() == (1,)

    play(story, minInSyncReplicas=1)


def test_9_with_two_in_sync_replicas_asked_for_nothing_is_written_to_one():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        await cluster.until_members(1)
        before = await cluster.log("b1")
        assert await cluster.send("b1", "a") == [REFUSED]
        assert await cluster.log("b1") == before

    play(story, minInSyncReplicas=2)


def test_9_a_send_that_waits_while_the_set_becomes_too_small_is_not_acknowledged_and_not_refused():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        # b1 does not know yet: it writes, and waits. Then the set is {b1}.
        assert await cluster.send("b1", "a", "b") == [WAITED_IN_VAIN, REFUSED]
        assert await cluster.members() == (1,)
        await cluster.boot("b2")
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b2") == ["a"]

    play(story, minInSyncReplicas=2)


def test_9_a_send_that_waits_is_acknowledged_once_enough_are_in_sync_again():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        waiting = cluster.begin(first_of(cluster.send("b1", "a")))
        await cluster.until_members(1)
        assert not waiting.done()
        await cluster.boot("b2")
        assert await waiting == OK
        assert await cluster.members() == (1, 2)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2") == ["a"]

    play(story, minInSyncReplicas=2, slaveTimeout=9_000)


def test_9_without_a_majority_of_controllers_sends_go_on_waiting():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("c1", "c2", "c3")
        await cluster.kill("b2")
        assert await cluster.send("b1", *"abcdef") == [WAITED_IN_VAIN] * 6
        assert await cluster.read("b1") == []
        await cluster.boot("c1", "c2", "c3")
        await cluster.until_members(1)
        assert await cluster.send("b1", "g") == [OK]
        assert await cluster.read("b1") == list("abcdefg")

    play(story, minInSyncReplicas=1)


def test_10_two_of_two_acked_and_the_master_killed_loses_nothing():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *"abc") == [OK] * 3
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2") == list("abc")

    play(story, allAckInSyncStateSet=False, inSyncReplicas=2)


def test_10_two_of_three_acked_and_the_current_slave_elected_loses_nothing():
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", *"abc") == [OK] * 3
        await cluster.sleep(2)
        # Both are in the set; heartbeats have reported which one is behind.
        assert await cluster.members() == (1, 2, 3)
        await cluster.kill("b1")
        await cluster.until_master("b3")
        assert await cluster.read("b3") == list("abc")

    play(story, brokers=3, allAckInSyncStateSet=False, inSyncReplicas=2)


def test_10_two_of_three_acked_and_the_lagging_slave_elected_may_lose_what_was_acknowledged_and_read_by_nobody():
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", *"abc") == [OK] * 3
        assert await cluster.read("b1") == []
        assert await cluster.members() == (1, 2, 3)
        await cluster.kill("b3")
        await cluster.sleep(0.1)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2") == []
        await cluster.heal()
        await cluster.boot("b1", "b3")
        await cluster.until_equal("b1", "b2", "b3")

    play(story, brokers=3, allAckInSyncStateSet=False, inSyncReplicas=2)


def test_10_with_one_ack_a_message_may_be_lost_but_no_consumer_has_read_it():
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "a") == [OK]
        assert await cluster.read("b1") == []
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2") == []

    play(story, allAckInSyncStateSet=False, inSyncReplicas=1)


def test_11_neither_of_two_groups_has_read_a_tail_that_is_cut():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.until_equal("b1", "b2")
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "x") == [WAITED_IN_VAIN]
        for node, group in (("b1", "auditors"), ("b2", "printers")):
            assert await cluster.read(node, group=group) == ["a"]
        await cluster.kill("b1")
        await cluster.heal()
        await cluster.until_master("b2")
        for group in ("auditors", "printers"):
            assert await cluster.read("b2", group=group) == ["a"]
            await cluster.commit("b2", group, 1)
        await cluster.boot("b1")
        await cluster.until_equal("b1", "b2")
        assert await cluster.send("b2", "b") == [OK]
        for group in ("auditors", "printers"):
            assert await cluster.read("b2", start=1, group=group) == ["b"]
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == ["a", "b"]

    play(story)


def test_12_a_slave_that_disconnects_leaves_at_once_and_is_back_when_it_has_caught_up():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2")
        await cluster.until_members(1, within_s=1)
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.boot("b2")
        await cluster.until_members(1, 2, within_s=5)
        await cluster.until_equal("b1", "b2")

    play(story)


async def a_newcomer_that_is_not_heard_keeps_nobody_in_the_set(cluster: Cluster) -> None:
    await cluster.cut(*(("b4", controller) for controller in CONTROLLERS))
    await cluster.slow_down(("b4", "b1"), delay_ms=30_000)
    await cluster.until_members(1, 2, 3, within_s=60)
    await cluster.heal_links()
    await cluster.until_equal("b1", "b4", within_s=90)
    await cluster.sleep(10)
    await cluster.kill("b3")
    await cluster.until_members(1, 2, within_s=2)
    assert await cluster.send("b1", "a") == [OK]
    await cluster.heal()
    await cluster.until_members(1, 2, 4)


def test_12_a_newcomer_that_the_controllers_do_not_hear_keeps_nobody_in_the_set():
    play(a_newcomer_that_is_not_heard_keeps_nobody_in_the_set, brokers=4)


def test_12_a_slave_that_hears_nothing_for_fifteen_seconds_leaves():
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"))
        cut_s = cluster.now_s
        assert await cluster.send("b1", "a") == [WAITED_IN_VAIN]
        await cluster.until_members(1)
        assert 10 < cluster.now_s - cut_s < 21

    play(story)


def test_12_an_idle_slave_stays():
    async def story(cluster: Cluster) -> None:
        epoch = (await cluster.replicas()).sync_state_set.epoch
        await cluster.sleep(60)
        replicas = await cluster.replicas()
        assert replicas.sync_state_set.members == (1, 2)
        assert replicas.sync_state_set.epoch == epoch

    play(story)


def test_12_a_slave_under_steady_load_that_is_always_half_a_second_behind_stays():
    async def story(cluster: Cluster) -> None:
        epoch = (await cluster.replicas()).sync_state_set.epoch
        await cluster.slow_down(("b1", "b2"), delay_ms=500)
        ends_s = cluster.now_s + 40
        sending = [cluster.begin(cluster.send_steadily("b1", every_s=0.1, until_s=ends_s)) for _ in range(2)]
        behind = 0
        while cluster.now_s < ends_s:
            logs = [await cluster.log(node) for node in ("b1", "b2")]
            behind += logs[1].max_offset < logs[0].max_offset
            await cluster.sleep(1)
        assert behind > 30
        assert [await one for one in sending] == [OK, OK]
        replicas = await cluster.replicas()
        assert (replicas.sync_state_set.members, replicas.sync_state_set.epoch) == ((1, 2), epoch)

    play(story, allAckInSyncStateSet=False, inSyncReplicas=1)


def test_12_a_slave_far_behind_that_acknowledges_batch_after_batch_leaves():
    async def story(cluster: Cluster) -> None:
        await cluster.narrow_down(("b1", "b2"), bytes_per_s=4_000)
        cut_s = cluster.now_s
        assert await cluster.send("b1", *["x" * 10_000] * 20) == [OK] * 20
        before = (await cluster.log("b2")).max_offset
        await cluster.until_members(1, within_s=25)
        assert 10 < cluster.now_s - cut_s < 25
        after = await cluster.log("b2")
        assert before < after.max_offset < (await cluster.log("b1")).max_offset

        await cluster.heal_links()
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")

    play(story, allAckInSyncStateSet=False, inSyncReplicas=1, haTransferBatchSize=1024)


def test_12_a_learner_copies_everything_and_is_never_waited_for_or_elected():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.until_equal("b1", "b2", "b3")
        await cluster.cut(("b1", "b3"))
        assert await cluster.send("b1", "b") == [OK]
        await cluster.heal()
        await cluster.kill("b1", "b2")
        await cluster.sleep(30)
        assert await cluster.members() != (3,)
        assert await cluster.send("b3", "c") == [NOT_MASTER]

    play(story, brokers=3, learners=("b3",))


def test_12_a_master_that_comes_back_as_a_learner_hands_over_to_who_is_in_sync():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.upgrade("b1")
        await cluster.until(lambda: is_master_one_of(cluster, "b2", "b3"), 30)
        master = str(await cluster.master())
        await cluster.until_members(2, 3)
        assert await cluster.send(master, "b") == [OK]
        await cluster.until_equal("b1", "b2", "b3")
        assert await cluster.read(master) == ["a", "b"]

    play(story, brokers=3, minInSyncReplicas=2, become_learners=("b1",))


def test_12_who_alone_is_in_sync_and_comes_back_as_a_learner_is_master_until_another_is():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.kill("b2", "b3")
        await cluster.until_members(1)
        assert await cluster.send("b1", "b") == [OK]
        await cluster.kill("b1")
        await cluster.sleep(20)
        await cluster.upgrade("b1")
        await cluster.until_master("b1")
        assert await cluster.send("b1", "c") == [OK]
        await cluster.boot("b2", "b3")
        await cluster.until(lambda: is_master_one_of(cluster, "b2", "b3"), 40)
        await cluster.until_members(2, 3)
        await cluster.until_equal("b1", "b2", "b3")
        assert await cluster.read(str(await cluster.master())) == ["a", "b", "c"]

    play(story, brokers=3, become_learners=("b1",))


async def is_master_one_of(cluster: Cluster, *nodes: str) -> bool:
    return await cluster.master() in nodes


def test_16_without_role_notices_roles_are_right_within_one_poll():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b1")
        killed_s = cluster.now_s
        await cluster.until_master("b2")
        assert cluster.now_s - killed_s < 6.5
        assert await cluster.send("b2", "a") == [OK]

    play(story, notices=False)


def test_16_a_master_cut_off_from_all_others_learns_by_its_poll_that_it_was_deposed():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.isolate("b1")
        await cluster.until_master("b2")
        assert await cluster.send("b1", "x") == [WAITED_IN_VAIN]
        assert await cluster.read("b1") == ["a"]
        await cluster.heal()
        await cluster.until_members(1, 2, 3)
        assert await cluster.send("b1", "y") == [NOT_MASTER]
        assert await cluster.send("b2", "b") == [OK]
        await cluster.until_equal("b1", "b2", "b3")
        assert await cluster.read("b1") == ["a", "b"]

    play(story, brokers=3, minInSyncReplicas=2)


def test_17_without_a_majority_of_controllers_sends_go_on_and_a_killed_master_is_replaced_after_it_is_back():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("c1", "c2")
        assert await cluster.send("b1", "a") == [OK]
        await cluster.kill("b1")
        await cluster.sleep(30)
        assert await cluster.send("b2", "x") == [NOT_MASTER]
        await cluster.boot("c1", "c2")
        await cluster.until_master("b2")
        await cluster.until_members(2, 3)
        assert await cluster.send("b2", "b") == [OK]
        assert await cluster.read("b2") == ["a", "b"]

    play(story, brokers=3)


def test_17_brokers_find_the_active_controller_again_within_one_period():
    async def story(cluster: Cluster) -> None:
        first = await cluster.active_controller()
        await cluster.cut(*((first, other) for other in ("c1", "c2", "c3", "b1", "b2") if other != first))
        cut_s = cluster.now_s
        assert [event for event in cluster.reported("b1", "active_controller") if event["time"] > cut_s * 1e9] == []

        async def has_found_another() -> bool:
            events = cluster.reported("b1", "active_controller")
            return bool(events) and events[-1]["address"].partition(":")[0] != first

        # At most a period, and three seconds for the silent one.
        await cluster.until(has_found_another, 14)

    play(story, syncBrokerMetadataPeriod=1_000_000)


def test_18_a_master_back_after_a_clean_stop_goes_on_in_its_epoch_without_a_new_entry():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.kill("b2")
        await cluster.until_members(1)
        before = await cluster.log("b1")
        await cluster.stop_cleanly("b1")
        await cluster.boot("b1")
        await cluster.until_master("b1")
        assert await cluster.log("b1") == before
        assert await cluster.send("b1", "b") == [OK]

    play(story)


def test_18_a_master_back_after_a_power_loss_gives_its_mastership_up_to_the_longer_log():
    letters = [f"letter {number}" for number in range(40)]

    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *letters) == [OK] * len(letters)
        acked = (await cluster.log("b1")).max_offset
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.until(lambda: shorter_than(cluster, "b1", acked), 2)
        await cluster.until_master("b2")
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == letters

    play(story, seed=DISK_LOSES)


async def first_of(answers: Awaitable[list[str]]) -> str:
    return (await answers)[0]


async def shorter_than(cluster: Cluster, node: str, offset: int) -> bool:
    return (await cluster.log(node)).max_offset < offset
