"""Ids of messages, as RocketMQ's clients read them."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.message_id import host_bytes, message_id, parse_message_id


def test_an_id_has_the_brokers_address_and_the_place_in_its_log():
    host = host_bytes("192.168.1.20:10911")
    assert host == bytes.fromhex("c0a80114 00002a9f")
    assert message_id(host, 4096) == "C0A8011400002A9F0000000000001000"
    assert parse_message_id("C0A8011400002A9F0000000000001000") == (host, 4096)


def test_a_name_becomes_an_address_that_leads_nowhere_else():
    first, second = host_bytes("b1:10911"), host_bytes("b2:10911")
    assert first[0] == second[0] == 127 and first != second
    assert first[4:] == second[4:] == (10911).to_bytes(4, "big")
    assert host_bytes("b1:10911") == first


@pytest.mark.parametrize("address", ["", ":", "b1", "b1:", "b1:port", "b1:99999999999999", "[::1]:10911", "1.2.3.4:-1"])
def test_any_text_becomes_eight_bytes(address):
    assert len(host_bytes(address)) == 8


@pytest.mark.parametrize(
    "text", ["", "00", "C0A8011400002A9F00000000000010000", "x" * 32, "C0A80114 0002A9F000000000000100"]
)
def test_what_is_no_id_is_refused(text):
    with pytest.raises(ValueError, match=r"a message's id|non-hexadecimal"):
        parse_message_id(text)
