"""The two messages of configured masters and slaves, byte for byte."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.broker.classic.wire import (
    ACK_SIZE,
    TRANSFER_HEADER_SIZE,
    decode_ack,
    decode_transfer_header,
    encode_ack,
    encode_transfer,
)
from system_under_test.rocketmq.broker.ha.wire import MAX_TRANSFER_BODY_BYTES, WireError


def test_a_transfer_is_an_offset_a_size_and_bytes() -> None:
    assert encode_transfer(0x0102030405060708, b"abc") == bytes.fromhex("0102030405060708 00000003") + b"abc"
    assert decode_transfer_header(encode_transfer(4096, b"abc")[:TRANSFER_HEADER_SIZE]) == (4096, 3)


def test_an_empty_transfer_is_a_heartbeat() -> None:
    assert decode_transfer_header(encode_transfer(7)) == (7, 0)


def test_an_ack_is_an_offset() -> None:
    assert encode_ack(900) == bytes.fromhex("0000000000000384")
    assert len(encode_ack(0)) == ACK_SIZE
    assert decode_ack(encode_ack(2**63 - 1)) == 2**63 - 1


@pytest.mark.parametrize(
    ("offset", "size"), [(-1, 0), (0, -1), (0, MAX_TRANSFER_BODY_BYTES + 1)], ids=["offset", "size", "too long"]
)
def test_a_transfer_that_cannot_be_is_refused(offset: int, size: int) -> None:
    with pytest.raises(WireError):
        decode_transfer_header(offset.to_bytes(8, "big", signed=True) + size.to_bytes(4, "big", signed=True))


def test_a_negative_ack_is_refused() -> None:
    with pytest.raises(WireError):
        decode_ack(b"\xff" * 8)
