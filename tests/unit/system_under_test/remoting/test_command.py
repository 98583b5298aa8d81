"""The frame, byte for byte."""

from __future__ import annotations

import struct

import pytest

from system_under_test.remoting.command import (
    MAX_FRAME_BYTES,
    MAX_HEADER_BYTES,
    FrameTooLong,
    Language,
    MalformedFrame,
    RemotingCommand,
    frame_length,
)

GOLDEN_REQUEST = bytes.fromhex("00000084 0000007c") + (
    b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"OTHER","opaque":7,'
    b'"serializeTypeCurrentRPC":"JSON","version":455}' + b"body"
)
GOLDEN_FROM_JAVA = bytes.fromhex("00000094 0000008e") + (
    b'{"code":0,"extFields":{"queueOffset":"41"},"flag":1,"language":"JAVA","opaque":9,"remark":"ok",'
    b'"serializeTypeCurrentRPC":"JSON","version":401}\x00\x01'
)


def with_lengths(header: bytes, body: bytes = b"", serialization: int = 0) -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), serialization << 24 | len(header)) + header + body


def test_a_request_is_encoded_byte_for_byte():
    command = RemotingCommand.request(105, {"topic": "T"}, b"body")
    command.opaque = 7
    assert command.encode() == GOLDEN_REQUEST


def test_a_response_of_the_java_broker_is_understood():
    assert frame_length(GOLDEN_FROM_JAVA[:4]) == len(GOLDEN_FROM_JAVA) - 4
    command = RemotingCommand.decode(GOLDEN_FROM_JAVA[4:])
    assert (command.code, command.opaque, command.is_response, command.is_oneway) == (0, 9, True, False)
    assert command.ext_fields == {"queueOffset": "41"}
    assert command.remark == "ok"
    assert command.body == b"\x00\x01"


def test_the_length_word_does_not_count_itself():
    frame = RemotingCommand.request(1).encode()
    assert frame_length(frame[:4]) == len(frame) - 4


def test_what_is_encoded_is_decoded_the_same():
    command = RemotingCommand(20001, 2**31 - 1, 2, "remärk\n", {"a": "ü", "empty": ""}, bytes(range(256)))
    assert RemotingCommand.decode(command.encode()[4:]) == command


def test_a_header_without_fields_and_body_is_whole():
    command = RemotingCommand.decode(with_lengths(b'{"code":34,"opaque":1,"extFields":null}')[4:])
    assert command == RemotingCommand(34, 1, version=0)


def test_fields_that_the_c_client_writes_as_numbers_become_text():
    header = b'{"code":10,"opaque":1,"extFields":{"queueId":3,"unitMode":false,"batch":true,"properties":null}}'
    command = RemotingCommand.decode(with_lengths(header)[4:])
    assert command.ext_fields == {"queueId": "3", "unitMode": "false", "batch": "true"}


def test_a_language_that_nobody_knows_counts_as_another_one():
    command = RemotingCommand.decode(with_lengths(b'{"code":10,"opaque":1,"language":"COBOL"}')[4:])
    assert command.language is Language.OTHER


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00\x00\x00",
        with_lengths(b'{"code":1,"opaque":1}')[4:-1],
        with_lengths(b'{"code":1,"opaque":1}', serialization=2)[4:],
        with_lengths(b"{")[4:],
        with_lengths(b"[]")[4:],
        with_lengths(b"7")[4:],
        with_lengths(b"\xff\xfe")[4:],
        with_lengths(b'{"opaque":1}')[4:],
        with_lengths(b'{"code":"1","opaque":1}')[4:],
        with_lengths(b'{"code":1,"opaque":1,"extFields":[1]}')[4:],
        with_lengths(b'{"code":1,"opaque":1,"extFields":{"queueId":1.5}}')[4:],
        with_lengths(b'{"code":1,"opaque":1,"extFields":{"queueId":[1]}}')[4:],
        with_lengths(b'{"code":2147483648,"opaque":1}')[4:],
        with_lengths(b'{"code":1,"opaque":-2147483649}')[4:],
        with_lengths(b'{"code":1,"opaque":true}')[4:],
        with_lengths(b'{"code":1,"opaque":1,"remark":7}')[4:],
        with_lengths(b"[" * 100_000)[4:],
        with_lengths(rb'{"code":1,"opaque":1,"remark":"\ud800"}')[4:],
        with_lengths(rb'{"code":1,"opaque":1,"extFields":{"topic":"\udfff"}}')[4:],
        with_lengths(rb'{"code":1,"opaque":1,"extFields":{"\ud800":"T"}}')[4:],
    ],
)
def test_bytes_that_are_no_frame_are_refused(frame):
    with pytest.raises(MalformedFrame):
        RemotingCommand.decode(frame)


@pytest.mark.parametrize("length", [0, 3, MAX_FRAME_BYTES + 1, 2**32 - 1])
def test_a_frame_length_out_of_bounds_is_refused(length):
    with pytest.raises(MalformedFrame):
        frame_length(struct.pack(">I", length))


def test_a_frame_that_is_too_large_is_not_sent():
    with pytest.raises(ValueError, match="above the limit"):
        RemotingCommand.request(1, {}, bytes(MAX_FRAME_BYTES)).encode()


def test_a_header_is_bounded_for_itself_coming_and_going():
    longest = RemotingCommand.request(1, {"a": "x" * (MAX_HEADER_BYTES - 200)})
    assert RemotingCommand.decode(longest.encode()[4:]).ext_fields == longest.ext_fields
    with pytest.raises(FrameTooLong, match="above the limit"):
        RemotingCommand.request(1, {"a": "x" * MAX_HEADER_BYTES}).encode()
    header = b'{"code":1,"opaque":1,"flag":0,"remark":"%b"}' % (b"x" * MAX_HEADER_BYTES)
    with pytest.raises(MalformedFrame, match="above the limit"):
        RemotingCommand.decode(struct.pack(">I", len(header)) + header)
