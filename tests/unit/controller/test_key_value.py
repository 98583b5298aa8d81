"""The key-value store alone."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.controller import key_value
from system_under_test.rocketmq.controller.key_value import KeyValueStore, MalformedCommand, Result


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
        b'{"txn":[["w","k",1]]}',
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
    ],
)
def test_what_clients_make_is_accepted(command):
    key_value.check(command)
    KeyValueStore().apply(command)
