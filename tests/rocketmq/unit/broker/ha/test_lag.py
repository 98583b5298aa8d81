"""Since when a slave has not been caught up."""

from system_under_test.rocketmq.broker.ha.lag import MAX_NOTES, CaughtUp

SECOND = 10**9


def test_a_slave_under_steady_load_that_is_always_half_a_second_behind_stays_caught_up():
    caught_up = CaughtUp(0)
    for tick in range(1, 1000):
        now_ns = tick * SECOND // 10
        caught_up.note(tick * 100, now_ns)
        if tick > 5:
            caught_up.acked((tick - 5) * 100)
        assert now_ns - caught_up.caught_up_ns <= 0.5 * SECOND


def test_a_slave_gigabytes_behind_that_acks_batch_after_batch_is_not_caught_up():
    caught_up = CaughtUp(0)
    for second in range(1, 61):
        caught_up.note(10**10, second * SECOND)
        caught_up.acked(second * 32 * 1024)
    assert caught_up.caught_up_ns == 0


def test_an_idle_slave_is_as_caught_up_as_its_last_heartbeat():
    caught_up = CaughtUp(0)
    for heartbeat in range(1, 100):
        now_ns = heartbeat * 5 * SECOND
        caught_up.note(1000, now_ns)
        caught_up.acked(1000)
        assert caught_up.caught_up_ns == now_ns


def test_an_ack_proves_only_what_it_reaches():
    caught_up = CaughtUp(0)
    caught_up.note(100, 1 * SECOND)
    caught_up.note(200, 2 * SECOND)
    caught_up.note(300, 3 * SECOND)
    caught_up.acked(299)
    assert caught_up.caught_up_ns == 2 * SECOND


def test_with_more_notes_than_are_kept_the_time_reported_is_never_too_late():
    caught_up = CaughtUp(0)
    total = MAX_NOTES * 8
    for n in range(1, total + 1):
        caught_up.note(n, n)
    for acked in (1, MAX_NOTES, total // 2, total - 1):
        caught_up.acked(acked)
        assert caught_up.caught_up_ns <= acked
    assert caught_up.caught_up_ns > total // 2 - MAX_NOTES
    caught_up.acked(total)
    assert caught_up.caught_up_ns == total
