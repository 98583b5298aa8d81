"""JSON as bodies bring it, and what RocketMQ's own library writes beside it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.remoting.json_body import decode_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(-(2**31), 2**31 - 1).map(str), inner),
    max_leaves=12,
)


def _as_fastjson(value: object) -> str:
    """Keys that are whole numbers stand without quotes."""
    if isinstance(value, dict):
        parts = [f"{key if _is_whole(key) else json.dumps(key)}:{_as_fastjson(inner)}" for key, inner in value.items()]
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_as_fastjson, value)) + "]"
    return json.dumps(value)


def _is_whole(key: str) -> bool:
    return key.isascii() and key.removeprefix("-").isdigit() and str(int(key)) == key


@given(VALUES)
def test_keys_that_are_whole_numbers_are_read_with_quotes_and_without(value: object) -> None:
    assert decode_json(_as_fastjson(value).encode()) == value
    assert decode_json(json.dumps(value).encode()) == value


def test_a_table_of_addresses_is_read_as_a_broker_of_rocketmq_writes_it() -> None:
    assert decode_json(b'{"brokerAddrs":{0:"b1:10911" , 2:"{3:4}"}}') == {
        "brokerAddrs": {"0": "b1:10911", "2": "{3:4}"}
    }


@pytest.mark.parametrize("body", [b"{0:", b"{a:1}", b"[0:1]", b"{1.5:1}", b"{0 1:2}", b'{"a":1,}', b"{,0:1}"])
def test_what_else_is_no_json_stays_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # of json's own words
        decode_json(body)
