"""The key-value store alone."""

from __future__ import annotations

import pytest

from system_under_test.replicated import key_value
from system_under_test.replicated.key_value import KeyValueStore, MalformedCommand, Result


def test_compare_and_set_changes_only_what_is_as_expected():
    store = KeyValueStore()
    assert store.apply(key_value.compare_and_set("k", 1, 2)) == Result(succeeded=False, value=None)
    assert store.apply(key_value.compare_and_set("k", None, 1)) == Result(succeeded=True, value=None)
    assert store.apply(key_value.compare_and_set("k", 1, 2)) == Result(succeeded=True, value=1)
    assert store.get("k") == 2


def test_a_transaction_reads_what_it_appended_before_and_leaves_earlier_results_alone():
    store = KeyValueStore()
    first = store.apply(key_value.transaction([["r", "x", None], ["append", "x", 1], ["r", "x", None]]))
    store.apply(key_value.transaction([["append", "x", 2]]))
    assert first.value == [["r", "x", None], ["append", "x", 1], ["r", "x", [1]]]
    assert store.get("x") == [1, 2]


def test_a_guarded_transaction_happens_as_a_whole_or_not_at_all():
    store = KeyValueStore()
    store.apply(key_value.transaction([["add", "a", 3]]))
    moved = [["add", "a", -2], ["add", "b", 2]]
    assert store.apply(key_value.transaction(moved, guard=[["a", 2]])).value == [["add", "a", 1], ["add", "b", 2]]
    assert store.apply(key_value.transaction(moved, guard=[["a", 2]])) == Result(succeeded=False, value=None)
    assert (store.get("a"), store.get("b")) == (1, 2)


def test_only_a_transaction_of_reads_alone_may_pass_the_log_by():
    assert key_value.only_reads(key_value.transaction([["r", "x", None], ["r", "y", None]]))
    assert not key_value.only_reads(key_value.transaction([["r", "x", None], ["w", "y", 1]]))
    assert not key_value.only_reads(key_value.transaction([["r", "x", None]], guard=[["x", 0]]))


@pytest.mark.parametrize(
    "command",
    [
        b"",
        b"[]",
        b"{}",
        b"7",
        b'{"put":["k"]}',
        b'{"put":[1,2]}',
        b'{"cas":["k",1]}',
        b'{"txn":[["cas","k",1]]}',
        b'{"txn":[["add","k","1"]]}',
        b'{"guarded":[[["k",1.5]],[]]}',
        b'{"guarded":[[["k",1]],[["w","k"]]]}',
        b'{"guarded":[7,[]]}',
        b'{"txn":[["r","k"]]}',
        b'{"txn":7}',
        b'{"drop":[]}',
        b'{"put":["k",1],"cas":["k",1,2]}',
    ],
)
def test_what_could_not_be_applied_is_refused_before_it_is_proposed(command):
    with pytest.raises(MalformedCommand):
        key_value.check(command)


@pytest.mark.parametrize(
    "command",
    [
        key_value.put("k", [1, "two"]),
        key_value.compare_and_set("k", None, 1),
        key_value.transaction([["r", "k", None], ["append", "k", 1]]),
        key_value.transaction([["w", "k", 1], ["add", "k", -3]], guard=[["k", 0]]),
    ],
)
def test_what_clients_make_is_accepted(command):
    key_value.check(command)
    KeyValueStore().apply(command)
