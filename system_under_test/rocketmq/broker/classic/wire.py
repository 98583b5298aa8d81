"""The two messages between a configured master and its slaves, byte for byte as RocketMQ has them; big-endian.

Transfer, master to slave:   offset:8 | size:4 | bytes     (12 + size; an empty one is a heartbeat)
Ack, slave to master:        maxOffset:8

There is no handshake: the slave's first ack says where its log ends, so where the transfer begins. Nor do these say
which master wrote the bytes: that the two logs are one is found out beside this (`log_comparison`).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from system_under_test.rocketmq.broker.ha.wire import MAX_TRANSFER_BODY_BYTES, WireError

_TRANSFER = struct.Struct(">qi")
_ACK = struct.Struct(">q")

TRANSFER_HEADER_SIZE = _TRANSFER.size
ACK_SIZE = _ACK.size


class TransferHeader(NamedTuple):
    offset: int
    size: int


def encode_transfer(offset: int, body: bytes = b"") -> bytes:
    return _TRANSFER.pack(offset, len(body)) + body


def decode_transfer_header(data: bytes) -> TransferHeader:
    """Raises WireError."""
    offset, size = _TRANSFER.unpack(data)
    if not 0 <= size <= MAX_TRANSFER_BODY_BYTES or offset < 0:
        raise WireError(f"transfer: size {size}, offset {offset}")
    return TransferHeader(offset, size)


def encode_ack(max_offset: int) -> bytes:
    return _ACK.pack(max_offset)


def decode_ack(data: bytes) -> int:
    """Raises WireError."""
    (max_offset,) = _ACK.unpack(data)
    if max_offset < 0:
        raise WireError(f"ack: max offset {max_offset}")
    return int(max_offset)
