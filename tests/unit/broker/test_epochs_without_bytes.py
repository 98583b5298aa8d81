"""What a broker has to remember of epochs of which it holds no bytes."""

from system_under_test.rocketmq.broker.ha.slave_client import _from
from system_under_test.storage.epoch_file import EpochMap, truncation_point


def test_an_epoch_without_bytes_at_the_beginning_of_the_log_is_not_forgotten_when_the_log_is_opened_again():
    held = EpochMap([(1, 0), (2, 0), (3, 342)])
    assert held.delete_prefix(0) == held
    wrote_alone = EpochMap([(1, 0)])
    assert truncation_point(wrote_alone, 1254, held.delete_prefix(0), 342) == 0


def test_logs_that_begin_at_different_offsets_are_compared_from_the_later_beginning():
    partial, whole = EpochMap([(1, 1700), (2, 2000)]), EpochMap([(1, 0), (2, 2000), (3, 2500)])
    assert truncation_point(_from(1700, partial), 2600, _from(1700, whole), 3000) == 2500


def test_a_partial_log_whose_epoch_ended_before_it_at_the_master_is_cut_whole():
    partial, whole = EpochMap([(1, 1700)]), EpochMap([(1, 0), (2, 1000)])
    assert truncation_point(_from(1700, partial), 2600, _from(1700, whole), 3000) == 1700
