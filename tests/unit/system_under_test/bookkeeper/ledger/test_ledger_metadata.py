"""A ledger's metadata and where they place entries."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system_under_test.bookkeeper.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    MalformedMetadata,
    Placement,
    Quorums,
    decode_metadata,
    encode_metadata,
    key_of,
)
from system_under_test.bookkeeper.ledger.placement import (
    NotEnoughBookies,
    bookies_of,
    first_ensemble,
    windows,
    write_set,
)
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import metadata_of


@pytest.mark.parametrize(
    ("placement", "places"),
    [
        (Placement.FRAGMENT, {1: "123", 2: "234", 3: "341", 4: "412", 5: "123"}),
        (Placement.ENTRY, {1: "234", 2: "341", 3: "412", 4: "123", 5: "234"}),
    ],
)
def test_write_sets_go_round_the_ensemble(placement: Placement, places: dict[int, str]) -> None:
    metadata = metadata_of("4/3/2", placement=placement)
    fragment = Fragment(1, ("1", "2", "3", "4"), 0)
    assert {entry: "".join(write_set(metadata, fragment, entry)) for entry in places} == places
    assert set(windows(metadata, fragment)) == {write_set(metadata, fragment, entry) for entry in places}


def test_an_entry_is_where_its_fragment_says() -> None:
    metadata = metadata_of("2/1/1").with_ensemble(Fragment(3, ("b3", "b4"), 30))
    assert [bookies_of(metadata, entry)[0] for entry in range(6)] == ["b1", "b2", "b1", "b3", "b4", "b3"]


def test_an_ensemble_from_the_same_entry_on_takes_the_place_of_the_last_one() -> None:
    metadata = metadata_of("2/1/1").with_ensemble(Fragment(3, ("b3", "b4"), 30))
    changed = metadata.with_ensemble(Fragment(3, ("b3", "b5"), 30))
    assert [(each.first_entry, each.ensemble) for each in changed.fragments] == [(0, ("b1", "b2")), (3, ("b3", "b5"))]


@pytest.mark.parametrize("writable", [3, 0])
def test_with_fewer_writable_bookies_than_an_ensemble_has_nothing_is_created(writable: int) -> None:
    quorums = Quorums(ensemble=4, write=3, ack=2)
    names = [f"b{number}" for number in range(writable)]
    with pytest.raises(NotEnoughBookies, match=f"{writable} bookies are writable, and an ensemble has 4"):
        first_ensemble(quorums, names)
    assert first_ensemble(quorums, ["b5", "b1", "b3", "b2", "b4"]) == ("b5", "b1", "b3", "b2")


@pytest.mark.parametrize(
    ("ensemble", "write", "ack", "found"),
    [
        (3, 3, 0, "an ack quorum of 0"),
        (3, 2, 3, "an ack quorum of 3 is more than the write quorum of 2"),
        (2, 3, 2, "a write quorum of 3 is more than the ensemble of 2"),
        (65, 3, 2, "an ensemble of 65 is more than 64"),
    ],
)
def test_quorums_that_do_not_fit_are_refused(ensemble: int, write: int, ack: int, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        Quorums(ensemble=ensemble, write=write, ack=ack)


@pytest.mark.parametrize(
    "metadata",
    [
        metadata_of("3/2/2"),
        metadata_of("5/3/1", placement=Placement.ENTRY).in_recovery(),
        metadata_of("2/2/2").with_ensemble(Fragment(4, ("b7", "b1"), 12)).closed(5, 100),
        metadata_of("2/2/2").closed(-1, 0),
    ],
)
def test_metadata_are_read_as_they_were_written(metadata: LedgerMetadata) -> None:
    assert decode_metadata(encode_metadata(metadata), 9) == replace(metadata, version=9)


def test_the_text_of_metadata_stays_as_it_is() -> None:
    metadata = replace(metadata_of("2/2/1").closed(3, 40), ledger=12)
    assert json.loads(encode_metadata(metadata)) == {
        "ledger": 12,
        "state": "closed",
        "ensembleSize": 2,
        "writeQuorum": 2,
        "ackQuorum": 1,
        "placement": "fragment",
        "fragments": [{"first": 0, "ensemble": ["b1", "b2"], "bytesBefore": 0}],
        "lastEntry": 3,
        "length": 40,
    }
    assert key_of(12) == "/ledgers/0000000012"


FIELDS = json.loads(encode_metadata(metadata_of("2/2/1")))
FRAGMENT = FIELDS["fragments"][0]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"ledger": -1}, "'ledger' is '-1', not a whole number from 0 on"),
        ({"ledger": True}, "'ledger' is 'True'"),
        ({"state": "half-open"}, "'half-open' is not a valid LedgerState"),
        ({"placement": None}, "None is not a valid Placement"),
        ({"ackQuorum": 3}, "an ack quorum of 3 is more"),
        ({"fragments": []}, "'fragments' is no list of 1 to"),
        ({"fragments": [FRAGMENT | {"first": 2}]}, "do not begin with entry 0"),
        ({"fragments": [FRAGMENT, FRAGMENT]}, "do not follow each other"),
        ({"fragments": [FRAGMENT | {"bytesBefore": 5}, FRAGMENT | {"first": 2}]}, "do not follow each other"),
        ({"fragments": [FRAGMENT | {"ensemble": ["b1"]}]}, "no list of 2 identities"),
        ({"fragments": [FRAGMENT | {"ensemble": ["b1", "b1"]}]}, "twice"),
        ({"fragments": [FRAGMENT | {"ensemble": ["b1", "/"]}]}, "no list of 2 identities"),
        ({"fragments": [3]}, "a fragment is no object"),
        ({"state": "closed", "lastEntry": -2}, "'lastEntry' is '-2'"),
    ],
)
def test_metadata_that_describe_no_ledger_are_refused(change: dict[str, object], found: str) -> None:
    with pytest.raises(MalformedMetadata, match=found):
        decode_metadata(json.dumps(FIELDS | change), 1)


@settings(max_examples=30)
@given(st.text())
def test_no_text_breaks_the_reader_of_metadata(text: str) -> None:
    for value in (text, json.dumps(FIELDS | {"fragments": text}), json.dumps([text])):
        with pytest.raises(MalformedMetadata):
            decode_metadata(value, 1)
