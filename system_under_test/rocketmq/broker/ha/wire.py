"""The four messages between a master and a slave, byte for byte; all numbers big-endian.

Handshake, slave to master:   state:4 | syncFromLastFile:2 | asyncLearner:2 | brokerId:8            (16 bytes)
Handshake, master to slave:   state:4 | bodySize:4 | maxOffset:8 | epoch:4 | {epoch:4, startOffset:8}*   (20 + body)
Transfer, master to slave:    state:4 | bodySize:4 | offset:8 | epoch:4 | epochStartOffset:8 | confirmOffset:8 | bytes
                              (36 + body; an empty body is a heartbeat)
Ack, slave to master:         state:4 | maxOffset:8                                                (12 bytes)

The master tells the slave's two messages apart by their state, which it therefore reads first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple


class HAState(IntEnum):
    READY = 0
    HANDSHAKE = 1
    TRANSFER = 2
    SUSPEND = 3
    SHUTDOWN = 4


class WireError(Exception):
    """The peer does not speak this protocol; the connection must end."""


class SlaveHandshake(NamedTuple):
    sync_from_last_file: bool
    async_learner: bool
    broker_id: int


class MasterHandshakeHeader(NamedTuple):
    body_size: int
    max_offset: int
    master_epoch: int


class TransferHeader(NamedTuple):
    body_size: int
    offset: int
    master_epoch: int
    epoch_start_offset: int
    confirm_offset: int


_STATE = struct.Struct(">i")
_SLAVE_HANDSHAKE = struct.Struct(">ihhq")
_MASTER_HANDSHAKE = struct.Struct(">iiqi")
_EPOCH_ENTRY = struct.Struct(">iq")
_TRANSFER = struct.Struct(">iiqiqq")
_ACK = struct.Struct(">iq")

STATE_SIZE = _STATE.size
SLAVE_HANDSHAKE_SIZE = _SLAVE_HANDSHAKE.size
MASTER_HANDSHAKE_HEADER_SIZE = _MASTER_HANDSHAKE.size
TRANSFER_HEADER_SIZE = _TRANSFER.size
ACK_SIZE = _ACK.size

MAX_EPOCH_ENTRIES = 1_000_000
MAX_TRANSFER_BODY_BYTES = 16 * 1024 * 1024


def _expect(state: int, expected: HAState, message: str) -> None:
    if state != expected:
        raise WireError(f"{message}: expected state {expected.name} ({expected.value}), got {state}")


def encode_slave_handshake(handshake: SlaveHandshake) -> bytes:
    return _SLAVE_HANDSHAKE.pack(
        HAState.HANDSHAKE, int(handshake.sync_from_last_file), int(handshake.async_learner), handshake.broker_id
    )


def decode_slave_handshake(data: bytes) -> SlaveHandshake:
    state, last_file, learner, broker_id = _SLAVE_HANDSHAKE.unpack(data)
    _expect(state, HAState.HANDSHAKE, "slave's handshake")
    if last_file not in (0, 1) or learner not in (0, 1) or broker_id < 1:
        raise WireError(f"slave's handshake: flags {last_file}, {learner}, broker id {broker_id}")
    return SlaveHandshake(bool(last_file), bool(learner), broker_id)


def encode_master_handshake(max_offset: int, master_epoch: int, entries: Sequence[tuple[int, int]]) -> bytes:
    """`entries` are (master epoch, start offset), oldest first."""
    body = b"".join(_EPOCH_ENTRY.pack(epoch, start) for epoch, start in entries)
    return _MASTER_HANDSHAKE.pack(HAState.HANDSHAKE, len(body), max_offset, master_epoch) + body


def decode_master_handshake_header(data: bytes) -> MasterHandshakeHeader:
    state, body_size, max_offset, master_epoch = _MASTER_HANDSHAKE.unpack(data)
    _expect(state, HAState.HANDSHAKE, "master's handshake")
    if not 0 <= body_size <= MAX_EPOCH_ENTRIES * _EPOCH_ENTRY.size or body_size % _EPOCH_ENTRY.size or max_offset < 0:
        raise WireError(f"master's handshake: body size {body_size}, max offset {max_offset}")
    return MasterHandshakeHeader(body_size, max_offset, master_epoch)


def decode_epoch_entries(body: bytes) -> tuple[tuple[int, int], ...]:
    """(master epoch, start offset), oldest first; epochs strictly rise, starts never fall."""
    entries = tuple(_EPOCH_ENTRY.iter_unpack(body))
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if next_epoch <= epoch or next_start < start:
            raise WireError(f"epoch entries out of order: {epoch}:{start} before {next_epoch}:{next_start}")
    return entries


def encode_transfer(
    offset: int, master_epoch: int, epoch_start_offset: int, confirm_offset: int, body: bytes = b""
) -> bytes:
    header = _TRANSFER.pack(HAState.TRANSFER, len(body), offset, master_epoch, epoch_start_offset, confirm_offset)
    return header + body


def decode_transfer_header(data: bytes) -> TransferHeader:
    state, body_size, offset, master_epoch, epoch_start_offset, confirm_offset = _TRANSFER.unpack(data)
    _expect(state, HAState.TRANSFER, "transfer")
    if not 0 <= body_size <= MAX_TRANSFER_BODY_BYTES or offset < 0:
        raise WireError(f"transfer: body size {body_size}, offset {offset}")
    return TransferHeader(body_size, offset, master_epoch, epoch_start_offset, confirm_offset)


def encode_ack(max_offset: int) -> bytes:
    return _ACK.pack(HAState.TRANSFER, max_offset)


def decode_ack(data: bytes) -> int:
    state, max_offset = _ACK.unpack(data)
    _expect(state, HAState.TRANSFER, "ack")
    if max_offset < 0:
        raise WireError(f"ack: max offset {max_offset}")
    return int(max_offset)
