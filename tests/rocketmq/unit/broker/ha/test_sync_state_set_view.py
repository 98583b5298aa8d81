"""Which replicas leave the SyncStateSet, which join, and which must ack meanwhile."""

from system_under_test.rocketmq.broker.ha.sync_state_set import (
    SetView,
    SlaveProgress,
    alter_refused,
    begin_alter,
    controller_says,
    wanted_members,
)
from system_under_test.rocketmq.controller.protocol import SyncStateSet

SECOND = 10**9


def view(*members, epoch=1):
    return SetView(confirmed=SyncStateSet.of(members, epoch))


def slave(acked, *, caught_up_s=100.0, electable=True):
    return SlaveProgress(acked_offset=acked, caught_up_ns=int(caught_up_s * SECOND), electable=electable)


def wanted(current, slaves, *, confirm=1000, epoch_start=0, now_s=100.0, last_newcomer=0):
    return wanted_members(
        current,
        slaves,
        own_id=1,
        confirm_offset=confirm,
        epoch_start_offset=epoch_start,
        now_ns=int(now_s * SECOND),
        max_time_not_caught_up_ns=15 * SECOND,
        last_newcomer=last_newcomer,
    )


def test_nothing_is_proposed_while_all_members_keep_up():
    assert wanted(view(1, 2, 3), {2: slave(1000), 3: slave(400)}) is None


def test_a_disconnected_slave_leaves():
    assert wanted(view(1, 2, 3), {2: slave(1000)}) == (1, 2)


def test_a_slave_that_was_not_caught_up_for_longer_than_the_limit_leaves():
    late = {2: slave(1000), 3: slave(1000, caught_up_s=84.9)}
    assert wanted(view(1, 2, 3), late) == (1, 2)
    in_time = {2: slave(1000), 3: slave(1000, caught_up_s=85.0)}
    assert wanted(view(1, 2, 3), in_time) is None


def test_a_slave_joins_at_the_confirm_offset_and_not_below():
    assert wanted(view(1, 2), {2: slave(1000), 3: slave(999)}) is None
    assert wanted(view(1, 2), {2: slave(1000), 3: slave(1000)}) == (1, 2, 3)


def test_a_slave_joins_only_when_it_has_reached_the_current_epoch():
    assert wanted(view(1), {2: slave(1000)}, epoch_start=1001) is None
    assert wanted(view(1), {2: slave(1001)}, epoch_start=1001) == (1, 2)


def test_a_learner_or_a_partial_slave_never_joins():
    assert wanted(view(1), {2: slave(1000, electable=False)}) is None


def test_a_member_that_came_back_as_a_learner_or_with_a_part_of_the_log_leaves():
    assert wanted(view(1, 2, 3), {2: slave(1000, electable=False), 3: slave(1000)}) == (1, 3)


def test_who_has_to_leave_does_not_wait_for_a_newcomer():
    assert wanted(view(1, 2, 3), {2: slave(1000), 4: slave(1000)}) == (1, 2)


def test_newcomers_join_one_by_one_and_none_is_kept_out_by_another_that_is_refused():
    slaves = {2: slave(1000), 3: slave(1000), 4: slave(1000), 5: slave(1000)}
    assert wanted(view(1, 2), slaves) == (1, 2, 3)
    assert wanted(view(1, 2), slaves, last_newcomer=3) == (1, 2, 4)
    assert wanted(view(1, 2), slaves, last_newcomer=5) == (1, 2, 3)


def test_the_master_never_leaves_its_own_set():
    assert wanted(view(1, 2), {}) == (1,)


def test_every_proposed_member_must_ack_before_the_controller_has_answered():
    assert begin_alter(view(1, 2), (1, 2, 3)).must_ack == (1, 2, 3)


def test_a_leaver_must_ack_until_the_controller_has_confirmed():
    altering = begin_alter(view(1, 2, 3), (1, 2))
    assert altering.must_ack == (1, 2, 3)
    assert altering.members == (1, 2, 3)
    assert controller_says(altering, SyncStateSet.of((1, 2), 2)).must_ack == (1, 2)


def test_one_alter_at_a_time():
    altering = begin_alter(view(1, 2), (1, 2, 3))
    assert wanted(altering, {2: slave(1000), 3: slave(1000)}) is None


def test_a_refused_alter_leaves_the_set_as_it_was():
    assert alter_refused(begin_alter(view(1, 2), (1, 2, 3))) == view(1, 2)


def test_a_lost_reply_is_resolved_by_what_the_controller_holds_afterwards():
    altering = begin_alter(view(1, 2, epoch=5), (1, 2, 3))
    assert controller_says(altering, SyncStateSet.of((1, 2, 3), 6)) == view(1, 2, 3, epoch=6)


def test_a_set_that_is_unchanged_says_nothing_of_a_proposal_that_may_be_under_way():
    altering = begin_alter(view(1, 2, epoch=5), (1, 2, 3))
    assert controller_says(altering, SyncStateSet.of((1, 2), 5)) is altering
    assert altering.must_ack == (1, 2, 3)
    assert controller_says(altering, SyncStateSet.of((1, 2), 6)) == view(1, 2, epoch=6), "it was withdrawn"


def test_a_late_answer_from_before_changes_nothing():
    current = view(1, 2, epoch=6)
    assert controller_says(current, SyncStateSet.of((1, 2, 3), 5)) is current
