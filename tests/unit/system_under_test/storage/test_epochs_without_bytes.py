"""What a broker has to remember of epochs of which it holds no bytes, and of those of which it holds the rest."""

import pytest

from system_under_test.storage.epoch_file import EpochMap, agree_behind, is_before, taken_over, truncation_point


def test_an_epoch_without_bytes_at_the_beginning_of_the_log_is_not_forgotten_when_the_log_is_opened_again():
    held = EpochMap([(1, 0), (2, 0), (3, 342)])
    assert held.delete_prefix(0) == held
    wrote_alone = EpochMap([(1, 0)])
    assert truncation_point(wrote_alone, 1254, held.delete_prefix(0), 342) == 0


def test_logs_that_begin_at_different_offsets_are_compared_from_the_later_beginning():
    partial, whole = EpochMap([(1, 1700), (2, 2000)]), EpochMap([(1, 0), (2, 2000), (3, 2500)])
    assert truncation_point(partial.seen_from(1700), 2600, whole.seen_from(1700), 3000) == 2500


def test_a_partial_log_whose_epoch_ended_before_it_at_the_master_is_cut_whole():
    partial, whole = EpochMap([(1, 1700)]), EpochMap([(1, 0), (2, 1000)])
    assert truncation_point(partial.seen_from(1700), 2600, whole.seen_from(1700), 3000) == 1700


@pytest.mark.parametrize(
    ("own", "own_end", "is_it"),
    [
        ({1: 0}, 3000, True),
        ({1: 0, 2: 3000}, 4000, True),
        ({1: 0, 2: 3000}, 4096, False),
        ({1: 0}, 5000, True),
        ({1: 0, 3: 3000}, 3500, False),
        ({1: 0, 2: 2000, 3: 3000}, 3000, True),
        ({3: 0}, 0, False),
    ],
    ids=[
        "an older epoch",
        "the same epoch",
        "up to the very byte",
        "a longer log of an older epoch",
        "a newer epoch",
        "a newer epoch without bytes",
        "no bytes at all",
    ],
)
def test_a_log_that_ends_before_what_the_master_has_left_is_known_as_such(own, own_end, is_it):
    assert is_before(EpochMap(own.items()), own_end, EpochMap([(2, 4096), (4, 6000)])) == is_it


@pytest.mark.parametrize(
    ("own", "theirs", "point", "taken"),
    [
        ({1: 0, 2: 3000}, {2: 4096, 3: 6000}, 5000, {1: 0, 2: 3000}),
        ({1: 0, 2: 3000}, {2: 4096, 3: 6000}, 6000, {1: 0, 2: 3000, 3: 6000}),
        ({2: 4096}, {1: 0, 2: 3000, 3: 6000}, 6000, {1: 0, 2: 3000, 3: 6000}),
        ({1: 0, 2: 900}, {1: 0, 3: 900}, 900, {1: 0, 3: 900}),
        ({}, {2: 4096}, 0, {}),
    ],
)
def test_a_replica_keeps_what_it_knows_of_bytes_that_its_master_has_no_more(own, theirs, point, taken):
    result = taken_over(EpochMap(own.items()), EpochMap(theirs.items()), point)
    assert result == EpochMap(taken.items())


def test_logs_that_contradict_each_other_are_not_taken_for_ones_that_begin_later():
    own, theirs = EpochMap([(1, 100), (2, 300), (3, 500)]), EpochMap([(1, 200), (2, 500)])
    assert truncation_point(own, 700, theirs, 700) is None
    assert not agree_behind(200, own, theirs)
    assert agree_behind(200, own, EpochMap([(1, 200), (2, 300), (4, 600)]))
