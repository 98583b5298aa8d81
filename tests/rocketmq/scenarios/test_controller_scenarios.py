"""The controller's side of controller mode, with brokers that only send requests: who is refused, who is elected.

The numbers are those of the scenarios. b1, b2, b3 have the ids 1, 2, 3; b1 is the first master, of epoch 1.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from system_under_test.rocketmq.controller.protocol import ReplicaInfo, SyncStateSet
from tests.rocketmq.scenarios.controller_cluster import (
    CLUSTER,
    CONTROLLERS,
    GROUP,
    ControllerCluster,
    ScriptedBroker,
    play,
)


def state(info: ReplicaInfo) -> tuple[int | None, int, tuple[int, ...]]:
    """(master, master epoch, SyncStateSet)."""
    return info.master_id, info.master_epoch, info.sync_state_set.members


def becomes(broker: ScriptedBroker, master: int | None):
    async def holds() -> bool:
        return (await broker.info()).master_id == master

    return holds


def test_13_a_member_that_counts_as_dead_may_stay_when_another_one_leaves():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        now = (await b1.info()).sync_state_set
        b2.fall_silent()
        b3.die()
        await cluster.pass_s(20.0)
        left = await b1.insist(lambda: b1.client.alter_sync_state_set(GROUP, 1, 1, (1, 2), now.epoch))
        assert (left.members, left.epoch) == ((1, 2), now.epoch + 1)

    play(story)


def test_13_what_was_withdrawn_takes_no_effect_however_late_it_comes():
    async def story(cluster: ControllerCluster) -> None:
        b1, _, _ = await cluster.three()
        now = (await b1.info()).sync_state_set
        withdrawn = await b1.client.withdraw_alter(GROUP, 1, 1, now)
        assert (withdrawn.members, withdrawn.epoch) == (now.members, now.epoch + 1)
        late = await b1.refusal(lambda: b1.client.alter_sync_state_set(GROUP, 1, 1, (1, 2), now.epoch))
        assert late == "CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH"
        again = await b1.refusal(lambda: b1.client.withdraw_alter(GROUP, 1, 1, now))
        assert again == "CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH"
        changing = SyncStateSet.of((1, 2), withdrawn.epoch)
        other = await b1.refusal(lambda: b1.client.withdraw_alter(GROUP, 1, 1, changing))
        assert other == "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED", "whoever withdraws changes nothing"

    play(story)


def test_13_what_is_withdrawn_leaves_a_member_that_came_back_as_a_learner_alone():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        b2.is_learner = True
        await cluster.pass_s(1.5)
        withdrawn = await b1.client.withdraw_alter(GROUP, 1, 1, (await b1.info()).sync_state_set)
        assert withdrawn.members == (1, 2, 3)
        left = await b1.insist(lambda: b1.client.alter_sync_state_set(GROUP, 1, 1, (1, 3), withdrawn.epoch))
        assert left.members == (1, 3)

    play(story)


def test_a_broker_hears_that_another_process_of_it_registered_last():
    async def story(cluster: ControllerCluster) -> None:
        b1, _, _ = await cluster.three()
        active = await b1.client.find_active()
        assert await b1.client.heartbeat(active, b1.report())
        former = replace(b1.report(), incarnation="an earlier process, whose request came late")
        await b1.client.register_broker(former)
        assert not await b1.client.heartbeat(active, b1.report())
        await b1.client.register_broker(b1.report())
        assert await b1.client.heartbeat(active, b1.report())

    play(story)


def test_13_an_alter_that_is_not_the_masters_or_not_up_to_date_is_refused():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        now = await b1.info()
        assert state(now) == (1, 1, (1, 2, 3))
        epoch = now.sync_state_set.epoch

        async def alter(by: ScriptedBroker, master_epoch: int, members: tuple[int, ...], set_epoch: int) -> str:
            return await by.refusal(
                lambda: by.client.alter_sync_state_set(GROUP, by.broker_id, master_epoch, members, set_epoch)
            )

        assert await alter(b1, 1, (1, 2, 3), epoch) == "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED", "the same set"
        assert await alter(b2, 1, (1, 2), epoch) == "CONTROLLER_INVALID_MASTER", "from a slave"
        assert await alter(b1, 0, (1, 2), epoch) == "CONTROLLER_FENCED_MASTER_EPOCH", "an older master epoch"
        assert await alter(b1, 1, (1, 2), epoch - 1) == "CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH", "a stale set epoch"
        assert await alter(b1, 1, (1, 9), epoch) == "CONTROLLER_INVALID_REPLICAS", "an unknown member"
        assert await alter(b1, 1, (2, 3), epoch) == "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED", "without the master"

        b3.die()
        await cluster.pass_s(0.1)
        b2.is_learner = True
        await cluster.pass_s(1.5)
        assert await alter(b1, 1, (1, 2), epoch) == "CONTROLLER_INVALID_REPLICAS", "with a learner"
        b2.is_learner = False
        await cluster.pass_s(1.5)
        assert state(await b1.info()) == (1, 1, (1, 2, 3)), "nothing came of any of these"

        assert await alter(b1, 1, (1, 2), epoch) == "SUCCESS", "the dead one leaves"
        epoch += 1
        assert await alter(b1, 1, (1, 2, 3), epoch) == "CONTROLLER_BROKER_NOT_ALIVE", "with a dead newcomer"
        assert state(await b1.info()) == (1, 1, (1, 2))

        await cluster.pass_s(1.5)
        await b1.insist(lambda: b1.client.designate_master(CLUSTER, GROUP, 2))
        assert state(await b1.info()) == (2, 2, (2,))
        assert await alter(b1, 1, (1,), epoch) == "CONTROLLER_INVALID_MASTER", "from a deposed master"
        assert await alter(b2, 2, (1, 2), epoch + 1) == "SUCCESS"

    play(story)


def test_14_no_broker_outside_the_set_is_elected_until_its_last_member_is_back():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        await b1.alter(1)
        b1.die()
        await cluster.until(becomes(b2, None), 2)
        await cluster.pass_s(20)
        assert state(await b2.info()) == (None, 2, (1,)), "no master, and the set is kept"
        assert await b2.refusal(b2.elect) == "CONTROLLER_ELECT_MASTER_FAILED"
        await b1.start()
        await cluster.until(becomes(b2, 1), 6)
        assert state(await b2.info()) == (1, 3, (1,))

    play(story)


def test_14_with_unclean_election_an_outsider_is_elected_where_no_member_lives():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        await b1.alter(1)
        b2.offset, b3.offset = 100, 200
        await cluster.pass_s(1.5)
        b1.die()
        await cluster.until(becomes(b2, 3), 2)
        assert state(await b2.info()) == (3, 2, (3,)), "the longer of the two"

    play(story, enableElectUncleanMaster=True)


def test_14_with_unclean_election_a_living_member_goes_before_a_longer_outsider():
    async def story(cluster: ControllerCluster) -> None:
        b1, _, b3 = await cluster.three()
        await b1.alter(1, 2)
        b3.offset, b3.priority = 1_000, 1
        await cluster.pass_s(1.5)
        b1.die()
        await cluster.until(becomes(b3, 2), 2)

    play(story, enableElectUncleanMaster=True)


def test_14_after_the_whole_group_restarted_a_broker_outside_the_last_set_is_not_elected():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        await b1.insist(lambda: b1.client.designate_master(CLUSTER, GROUP, 2))
        for broker in (b1, b2, b3):
            broker.die()
        await cluster.pass_s(12)
        await b1.start()
        assert await b1.refusal(b1.elect) == "CONTROLLER_ELECT_MASTER_FAILED"
        await cluster.pass_s(12)
        assert (await b1.info()).master_id in (None, 2)
        assert (await b1.info()).sync_state_set.members == (2,)
        await b2.start()
        await cluster.until(becomes(b1, 2), 6)

    play(story)


def test_14_the_newest_epoch_then_the_longest_log_then_the_priority_decide():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b2.master_epoch, b2.offset = 1, 100
        b3.master_epoch, b3.offset = 1, 200
        await cluster.pass_s(1.5)
        b1.die()
        await cluster.until(becomes(b2, 3), 2)
        await b1.start()
        await cluster.pass_s(1.5)
        await b3.alter(1, 2, 3)
        b1.master_epoch, b1.offset = 1, 900
        b2.master_epoch, b2.offset = 2, 300
        await cluster.pass_s(1.5)
        b3.die()
        await cluster.until(becomes(b2, 2), 2)
        await b3.start()
        await cluster.pass_s(1.5)
        await b2.alter(1, 2, 3)
        for broker in (b1, b3):
            broker.master_epoch, broker.offset = 3, 500
        b1.priority, b3.priority = 7, 5
        await cluster.pass_s(1.5)
        b2.die()
        await cluster.until(becomes(b1, 3), 2)

    play(story)


def test_15_of_three_that_register_at_once_one_becomes_master_and_ids_are_distinct():
    async def story(cluster: ControllerCluster) -> None:
        brokers = [ScriptedBroker(cluster.env, number) for number in (1, 2, 3)]
        async with asyncio.TaskGroup() as group:
            for broker in brokers:
                group.create_task(broker.start())
        assert sorted(broker.broker_id for broker in brokers) == [1, 2, 3]
        answers = [await broker.refusal(broker.elect) for broker in brokers]
        assert answers == ["SUCCESS", "CONTROLLER_MASTER_STILL_EXIST", "CONTROLLER_MASTER_STILL_EXIST"]
        winner = brokers[0].broker_id
        assert state(await brokers[1].info()) == (winner, 1, (winner,))

    play(story)


def test_15_a_learner_that_comes_first_waits():
    async def story(cluster: ControllerCluster) -> None:
        learner = ScriptedBroker(cluster.env, 1)
        learner.is_learner = True
        await learner.start()
        assert await learner.refusal(learner.elect) == "CONTROLLER_ELECT_MASTER_FAILED"
        second = await cluster.broker(2)
        await second.elect()
        assert state(await learner.info()) == (2, 1, (2,))
        assert await second.refusal(lambda: second.alter(1, 2)) == "CONTROLLER_INVALID_REPLICAS"

    play(story)


def test_15_neither_a_learner_nor_a_broker_that_never_reported_can_be_designated_the_first_master():
    async def story(cluster: ControllerCluster) -> None:
        learner = ScriptedBroker(cluster.env, 1)
        learner.is_learner = True
        await learner.start()
        silent = ScriptedBroker(cluster.env, 2)
        await silent.client.apply_broker_id(CLUSTER, GROUP, 2, "code of b2")
        for broker_id in (1, 2):
            for ask in (silent.client.designate_master, silent.client.elect_master):
                refused = await silent.refusal(lambda ask=ask, broker_id=broker_id: ask(CLUSTER, GROUP, broker_id))
                assert refused == "CONTROLLER_ELECT_MASTER_FAILED"
        assert await silent.refusal(lambda: silent.client.elect_master(CLUSTER, GROUP, None)) == (
            "CONTROLLER_ELECT_MASTER_FAILED"
        )
        assert state(await learner.info()) == (None, 0, ())
        third = await cluster.broker(3)
        await third.insist(lambda: third.client.designate_master(CLUSTER, GROUP, 3))
        assert state(await learner.info()) == (3, 1, (3,))
        assert await third.refusal(lambda: third.client.designate_master(CLUSTER, GROUP, 1)) == (
            "CONTROLLER_ELECT_MASTER_FAILED"
        ), "a learner is never master, also not by an administrator's wish"

    play(story)


def test_an_administrator_designates_a_member_while_the_master_lives_and_nobody_else():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        await b1.alter(1, 2)
        admin = b3.client
        assert await b3.refusal(lambda: admin.elect_master(CLUSTER, GROUP, None)) == "CONTROLLER_MASTER_STILL_EXIST"
        assert await b3.refusal(lambda: admin.designate_master(CLUSTER, GROUP, 1)) == "CONTROLLER_MASTER_STILL_EXIST"
        assert await b3.refusal(lambda: admin.designate_master(CLUSTER, GROUP, 3)) == "CONTROLLER_ELECT_MASTER_FAILED"
        assert await b3.refusal(lambda: admin.designate_master(CLUSTER, GROUP, 9)) == (
            "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED"
        )
        assert await b3.refusal(lambda: admin.designate_master("elsewhere", GROUP, 2)) == (
            "CONTROLLER_BROKER_METADATA_NOT_EXIST"
        )
        b2.fall_silent()
        await cluster.pass_s(12)
        assert await b3.refusal(lambda: admin.designate_master(CLUSTER, GROUP, 2)) == "CONTROLLER_ELECT_MASTER_FAILED"
        await b2.start()
        assert state(await b3.insist(lambda: admin.designate_master(CLUSTER, GROUP, 2))) == (2, 2, (2,))

    play(story)


def test_an_administrator_asks_about_several_groups_at_once():
    async def story(cluster: ControllerCluster) -> None:
        await cluster.three()
        other = await cluster.broker(4)
        await other.insist(lambda: other.client.apply_broker_id(CLUSTER, "broker-b", 1, "code of another"))
        groups = await other.insist(lambda: other.client.sync_state_data([GROUP, "broker-b", "unknown"]))
        assert {name: state(group.info) for name, group in groups.items()} == {
            GROUP: (1, 1, (1, 2, 3)),
            "broker-b": (None, 0, ()),
        }

    play(story)


def test_a_changed_setting_holds_at_once_and_after_a_loss_of_power():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        for name in CONTROLLERS:
            await b1.client.update_config(f"{name}:9878", {"brokerHeartbeatTimeout": "2500"})
        b1.fall_silent()
        assert await cluster.until(becomes(b2, 2), 9) < 8, "not after ten seconds any more"
        await b1.client.update_config("c1:9878", {"scanInactiveMasterInterval": "200"})
        await cluster.env.power_off(CONTROLLERS)
        await cluster.env.boot(CONTROLLERS)
        await cluster.pass_s(3)
        b1.client.close()
        b1.client = b1._new_client()
        kept = await b1.client.get_config("c1:9878")
        assert (kept["brokerHeartbeatTimeout"], kept["scanInactiveMasterInterval"]) == ("2500", "200")
        assert (await b1.client.get_config("c2:9878"))["scanInactiveMasterInterval"] == "5000"

    play(story)


def test_15_an_id_is_given_once_and_asking_again_with_the_same_check_code_changes_nothing():
    async def story(cluster: ControllerCluster) -> None:
        b1 = await cluster.broker(1)
        ask = b1.client.apply_broker_id
        assert await b1.refusal(lambda: ask(CLUSTER, GROUP, 1, "code of b1")) == "SUCCESS"
        assert await b1.refusal(lambda: ask(CLUSTER, GROUP, 1, "another code")) == "CONTROLLER_BROKER_ID_INVALID"
        assert await b1.refusal(lambda: ask(CLUSTER, GROUP, 3, "code of b3")) == "CONTROLLER_BROKER_ID_INVALID"
        assert await b1.client.get_next_broker_id(CLUSTER, GROUP) == 2

    play(story)


def test_16_living_members_are_notified_of_an_election():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.die()
        await cluster.until(becomes(b3, 2), 2)
        await cluster.pass_s(0.5)
        for broker in (b2, b3):
            assert state(broker.notices[-1]) == (2, 2, (2,))
            assert broker.notices[-1].master_address == "b2:10911"

    play(story)


def test_16_with_notices_off_no_broker_is_notified_and_getreplicainfo_is_still_right():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.die()
        await cluster.until(becomes(b3, 2), 2)
        await cluster.pass_s(10)
        assert [broker.notices for broker in (b1, b2, b3)] == [[], [], []]

    play(story, notifyBrokerRoleChanged=False)


def test_16_a_master_that_falls_silent_is_replaced_after_its_ten_seconds_and_one_scan():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        b1.fall_silent()
        assert await cluster.until(becomes(b2, 2), 16.5) > 9

    play(story)


def test_17_without_a_majority_nothing_is_answered_and_after_it_is_back_the_store_holds_everything():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        before = await b1.info()
        active = await b1.client.find_active()
        survivor = active.partition(":")[0]
        dead = [name for name in CONTROLLERS if name != survivor]
        await cluster.env.kill(dead)
        b1.die()
        await cluster.pass_s(3)
        assert not (await b2.client.metadata(active)).is_active, "a leader without a majority steps down"
        assert await b2.answer_of(active) == "not-leader"
        await cluster.env.kill([survivor])
        await cluster.pass_s(1)
        await cluster.env.boot(CONTROLLERS)
        await cluster.until(becomes(b2, 2), 20)
        after = await b2.info()
        assert after.sync_state_set == SyncStateSet(members=(2,), epoch=before.sync_state_set.epoch + 1)
        assert after.master_epoch == before.master_epoch + 1

    play(story)


def test_17_a_controller_cut_off_as_leader_answers_nothing_from_what_it_remembers():
    async def story(cluster: ControllerCluster) -> None:
        b1, _, _ = await cluster.three()
        old = (await b1.client.find_active()).partition(":")[0]
        others = [name for name in CONTROLLERS if name != old]
        pairs = [(old, other) for other in others]
        await cluster.cut_between(pairs)
        witness = ScriptedBroker(cluster.env, 9)
        answers = []
        for _ in range(40):
            answers.append(await witness.answer_of(f"{old}:9878"))
            await cluster.pass_s(0.1)
        assert "SUCCESS" not in answers
        b1.client.active = None
        assert state(await b1.info()) == (1, 1, (1, 2, 3)), "the others answer, from the same state"

    play(story)


def test_18_a_master_that_gives_up_waits_for_fresh_reports_and_loses_to_the_longer_log():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.offset = b2.offset = b3.offset = 850
        await cluster.pass_s(1.5)
        # Until b1 loses power the slaves copy on to 1000, but no heartbeat says so yet; b1 is back with 900.
        b1.fall_silent()
        b1.offset, b2.offset, b3.offset = 900, 1000, 1000
        info = await b1.start()
        assert info.master_id == 1, "it lives again, so it is still the master"

        def give_up():
            return b1.client.give_up_mastership(CLUSTER, GROUP, 1, 1)

        assert await b1.refusal(give_up) == "CONTROLLER_ELECT_MASTER_FAILED", "no broker has reported since"
        assert state(await b1.info()) == (1, 1, (1, 2, 3))
        await cluster.pass_s(2.5)
        elected = await b1.insist(give_up)
        assert state(elected) == (2, 2, (2,)), "1000 wins over 900"
        assert await b1.refusal(give_up) == "CONTROLLER_INVALID_MASTER", "only once"

    play(story)


def test_18_a_master_that_gives_up_and_still_has_the_longest_log_is_elected_under_a_new_epoch():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.offset, b2.offset, b3.offset = 1000, 900, 900
        for broker in (b3, b2, b1):
            broker.die()
            await cluster.pass_s(0.1)
        await b1.start()

        def give_up():
            return b1.client.give_up_mastership(CLUSTER, GROUP, 1, 1)

        assert await b1.refusal(give_up) == "CONTROLLER_ELECT_MASTER_FAILED", "the others may have lost a channel only"
        await cluster.pass_s(10)
        assert state(await b1.insist(give_up)) == (1, 2, (1,))

    play(story)


def test_18_what_a_former_life_reported_counts_for_nothing():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.offset = b2.offset = b3.offset = 1000
        await cluster.pass_s(1.5)
        b2.fall_silent()
        b2.offset, b3.offset = 0, 500
        await b2.start()
        await cluster.pass_s(1.5)
        b1.die()
        await cluster.until(becomes(b3, 3), 2)

    play(story)


async def restart_controllers(cluster: ControllerCluster) -> None:
    """All at once: what they have heard is gone."""
    await cluster.env.power_off(CONTROLLERS)
    await cluster.env.boot(CONTROLLERS)


def test_18_controllers_that_have_just_started_pass_nobody_over_who_was_never_away():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.offset = b2.offset = b3.offset = 1000
        b1.die()
        for broker in (b2, b3):
            broker.fall_silent()
        await restart_controllers(cluster)
        b1.offset = 900
        assert (await b1.start()).master_id == 1, "it is the only one that was heard of"

        def give_up():
            return b1.client.give_up_mastership(CLUSTER, GROUP, 1, 1)

        assert await b1.refusal(give_up) == "CONTROLLER_ELECT_MASTER_FAILED"
        assert await b1.refusal(b1.elect) == "CONTROLLER_MASTER_STILL_EXIST"
        await cluster.pass_s(8)
        assert await b1.refusal(give_up) == "CONTROLLER_ELECT_MASTER_FAILED"
        b2.speak_again()
        await cluster.pass_s(3.5)
        assert state(await b1.insist(give_up)) == (2, 2, (2,)), "b3 is silent for the whole time-out now, b2 is not"

    play(story)


def test_14_controllers_that_have_just_started_elect_nobody_until_all_in_sync_were_heard_of():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.offset, b2.offset, b3.offset = 1000, 900, 1000
        b1.die()
        b3.fall_silent()
        await restart_controllers(cluster)
        await b2.insist(lambda: b2.client.register_broker(b2.report()))
        assert await b2.refusal(b2.elect) == "CONTROLLER_ELECT_MASTER_FAILED", "b1 may live"
        cleaning = await b2.refusal(lambda: b2.client.clean_broker_data(CLUSTER, GROUP, [3]))
        assert cleaning == "CONTROLLER_INVALID_CLEAN_BROKER_METADATA", "b3 may live, too"
        await cluster.pass_s(8)
        assert state(await b2.info()) == (1, 1, (1, 2, 3))
        b3.speak_again()
        await cluster.until(becomes(b2, 3), 10)

    play(story)


def test_14_with_unclean_election_a_member_that_was_not_heard_of_yet_goes_before_an_outsider():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        await b1.alter(1)
        b1.die()
        await restart_controllers(cluster)
        await cluster.pass_s(8)
        assert state(await b2.info()) == (1, 1, (1,))
        await b1.start()
        await cluster.pass_s(20)
        assert state(await b2.info()) == (1, 1, (1,))

    play(story, enableElectUncleanMaster=True)


def test_18_a_report_from_before_the_birth_counts_for_none_after_it_whatever_the_controllers_former_life_counted():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        b1.offset = b2.offset = b3.offset = 850
        await cluster.pass_s(30)
        b1.die()
        for broker in (b2, b3):
            broker.fall_silent()
        await restart_controllers(cluster)
        active = await b2.insist(b2.client.find_active)
        for broker in (b2, b3):
            await broker.insist(lambda broker=broker: broker.client.heartbeat(active, broker.report()))
        b1.offset, b2.offset, b3.offset = 900, 1000, 1000
        await b1.start()
        refused = await b1.refusal(lambda: b1.client.give_up_mastership(CLUSTER, GROUP, 1, 1))
        assert refused == "CONTROLLER_ELECT_MASTER_FAILED", "what b2 and b3 have said is older than this life of b1"

    play(story)


def test_an_administrator_sees_members_and_liveness_and_changes_what_may_change():
    async def story(cluster: ControllerCluster) -> None:
        b1, b2, b3 = await cluster.three()
        await b1.alter(1, 2)
        b3.die()
        await cluster.pass_s(0.1)
        group = (await b1.client.sync_state_data([GROUP, "unknown"]))[GROUP]
        assert state(group.info) == (1, 1, (1, 2))
        assert [(replica.broker_id, replica.is_alive) for replica in group.in_sync] == [(1, True), (2, True)]
        assert [(replica.broker_id, replica.is_alive) for replica in group.not_in_sync] == [(3, False)]

        active = await b1.client.find_active()
        await b1.client.update_config(active, {"enableElectUncleanMaster": "true"})
        assert (await b1.client.get_config(active))["enableElectUncleanMaster"] == "true"

        assert await b2.refusal(lambda: b2.client.clean_broker_data(CLUSTER, GROUP, [2])) == (
            "CONTROLLER_INVALID_CLEAN_BROKER_METADATA"
        )
        await b2.client.clean_broker_data(CLUSTER, GROUP, [3])
        assert (await b1.client.sync_state_data([GROUP]))[GROUP].not_in_sync == ()

    play(story)
