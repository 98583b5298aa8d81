"""How far the log is confirmed."""

from hypothesis import given
from hypothesis import strategies as st

from system_under_test.rocketmq.broker.ha.confirm_offset import (
    acked_by,
    least_acked_offset,
    master_confirm_offset,
    slave_confirm_offset,
)


def test_the_slowest_member_decides():
    assert least_acked_offset((1, 2, 3), {1: 1000, 2: 900, 3: 950}) == 900


def test_acks_of_replicas_that_are_no_members_do_not_count():
    assert least_acked_offset((1, 2), {1: 1000, 2: 900, 3: 100}) == 900


def test_a_disconnected_member_leaves_it_unchanged():
    least = least_acked_offset((1, 2, 3), {1: 1000, 2: 1000})
    assert least is None
    assert master_confirm_offset(800, least) == 800


def test_a_member_that_comes_back_with_less_does_not_take_it_back():
    assert master_confirm_offset(800, least_acked_offset((1, 2), {1: 1000, 2: 300})) == 800


def test_a_slave_confirms_no_more_than_it_holds():
    assert slave_confirm_offset(500, header_confirm_offset=900, own_max_offset=700) == 700
    assert slave_confirm_offset(500, header_confirm_offset=600, own_max_offset=700) == 600


def test_a_slave_that_follows_a_master_behind_it_does_not_go_back():
    assert slave_confirm_offset(500, header_confirm_offset=0, own_max_offset=700) == 500


def test_acks_are_counted_over_distinct_members_the_master_included():
    acked = {1: 1000, 2: 900, 3: 400, 4: 1000}
    assert acked_by(1, (1, 2, 3), acked) == 1000
    assert acked_by(2, (1, 2, 3), acked) == 900
    assert acked_by(3, (1, 2, 3), acked) == 400
    assert acked_by(4, (1, 2, 3), acked) == -1


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), max_size=20))
def test_the_confirm_offset_never_goes_back(leasts):
    confirm = 0
    for least in leasts:
        moved = master_confirm_offset(confirm, least)
        assert moved >= confirm
        confirm = moved
