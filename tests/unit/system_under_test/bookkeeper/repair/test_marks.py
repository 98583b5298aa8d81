"""Marks as they stand in the metadata store."""

from __future__ import annotations

import pytest

from system_under_test.bookkeeper.repair.marks import (
    MalformedMark,
    Mark,
    decode_mark,
    encode_mark,
    ledger_of,
    mark_key,
)


def test_a_mark_is_read_as_it_was_written() -> None:
    for mark in (Mark((), every_entry=True), Mark(("b1", "b2"), every_entry=False)):
        assert decode_mark(encode_mark(mark)) == mark
    assert ledger_of(mark_key(7)) == 7
    assert sorted([mark_key(10), mark_key(9)]) == [mark_key(9), mark_key(10)]


def test_a_mark_that_is_set_anew_keeps_what_was_known() -> None:
    old, new = Mark(("b1", "b3"), every_entry=True), Mark(("b2", "b3"), every_entry=False)
    assert old.with_more(new) == Mark(("b1", "b2", "b3"), every_entry=True)


@pytest.mark.parametrize(
    "value", ["", "[]", "{}", '{"bookies":[1],"everyEntry":true}', '{"bookies":[],"everyEntry":1}', '{"bookies":[]}']
)
def test_a_value_that_is_no_mark_is_refused(value: str) -> None:
    with pytest.raises(MalformedMark):
        decode_mark(value)


@pytest.mark.parametrize(
    "key", ["/ledgers/0000000001", "/underreplicated/", "/underreplicated/x", "/underreplicated/²"]
)
def test_a_key_that_is_no_marks_is_refused(key: str) -> None:
    with pytest.raises(MalformedMark):
        ledger_of(key)
