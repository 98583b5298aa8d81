"""The four HA messages, byte for byte."""

import pytest

from system_under_test.rocketmq.broker.ha import wire


def test_a_slaves_handshake_is_sixteen_bytes():
    data = wire.encode_slave_handshake(wire.SlaveHandshake(True, False, 3))
    assert data.hex(" ") == "00 00 00 01 00 01 00 00 00 00 00 00 00 00 00 03"
    assert wire.decode_slave_handshake(data) == wire.SlaveHandshake(True, False, 3)


def test_a_masters_handshake_is_twenty_bytes_and_its_epochs():
    data = wire.encode_master_handshake(1200, 3, [(1, 0), (3, 900)])
    assert data[:20].hex(" ") == "00 00 00 01 00 00 00 18 00 00 00 00 00 00 04 b0 00 00 00 03"
    assert data[20:].hex(" ") == "00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 03 84"
    assert wire.decode_master_handshake_header(data[:20]) == wire.MasterHandshakeHeader(24, 1200, 3)
    assert wire.decode_epoch_entries(data[20:]) == ((1, 0), (3, 900))


def test_a_transfer_is_thirty_six_bytes_and_its_bytes():
    data = wire.encode_transfer(1000, 2, 900, 950, b"ab")
    assert data.hex(" ") == (
        "00 00 00 02 00 00 00 02 00 00 00 00 00 00 03 e8 00 00 00 02 "
        "00 00 00 00 00 00 03 84 00 00 00 00 00 00 03 b6 61 62"
    )
    assert wire.decode_transfer_header(data[:36]) == wire.TransferHeader(2, 1000, 2, 900, 950)


def test_a_heartbeat_is_a_transfer_without_bytes():
    data = wire.encode_transfer(1000, 2, 900, 950)
    assert len(data) == wire.TRANSFER_HEADER_SIZE == 36
    assert wire.decode_transfer_header(data).body_size == 0


def test_an_ack_is_twelve_bytes():
    assert wire.encode_ack(1000).hex(" ") == "00 00 00 02 00 00 00 00 00 00 03 e8"
    assert wire.decode_ack(wire.encode_ack(1000)) == 1000


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (wire.decode_ack, bytes.fromhex("00 00 00 01 00 00 00 00 00 00 03 e8")),
        (wire.decode_ack, bytes.fromhex("00 00 00 02 ff ff ff ff ff ff ff ff")),
        (wire.decode_slave_handshake, bytes.fromhex("00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 03")),
        (wire.decode_slave_handshake, bytes.fromhex("00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00")),
        (wire.decode_slave_handshake, bytes.fromhex("00 00 00 01 00 07 00 00 00 00 00 00 00 00 00 01")),
        (wire.decode_master_handshake_header, bytes.fromhex("00000001 0000000d 0000000000000000 00000001")),
        (wire.decode_transfer_header, wire.encode_transfer(-1, 1, 0, 0)),
        (wire.decode_transfer_header, b"GET / HTTP/1.1\r\nHost: broker:10912\r\n"[:36]),
        (wire.decode_epoch_entries, bytes.fromhex("00000002 0000000000000000 00000001 0000000000000000")),
        (wire.decode_epoch_entries, bytes.fromhex("00000001 0000000000000005 00000002 0000000000000004")),
    ],
)
def test_what_is_no_message_is_refused(decode, data):
    with pytest.raises(wire.WireError):
        decode(data)
