"""RocketMQ's own serialization of headers, byte for byte."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.remoting.command import (
    FrameTooLong,
    Language,
    MalformedFrame,
    RemotingCommand,
    Serialization,
)

HEADER_FROM_GO = bytes.fromhex(
    "0069"  # code: 105, a route is asked for
    "09"  # language: Go
    "013d"  # version: 317
    "00000007"  # opaque
    "00000000"  # flag: a request that wants an answer
    "00000000"  # no remark
    "0000000c"  # twelve bytes of fields
    "0005 746f706963"  # a name of five bytes: topic
    "00000001 54"  # a value of one: T
)
FRAME_FROM_GO = struct.pack(">II", 4 + len(HEADER_FROM_GO), 1 << 24 | len(HEADER_FROM_GO)) + HEADER_FROM_GO

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SHORT = st.integers(-(2**15), 2**15 - 1)
WORD = st.integers(-(2**31), 2**31 - 1)
COMMANDS = st.builds(
    RemotingCommand,
    code=SHORT,
    opaque=WORD,
    flag=WORD,
    remark=st.none() | TEXT.filter(bool),
    ext_fields=st.dictionaries(TEXT, TEXT, max_size=6),
    body=st.binary(max_size=40),
    language=st.sampled_from(Language),
    version=SHORT,
    serialization=st.sampled_from(Serialization),
)


def test_a_request_of_the_go_client_is_understood():
    command = RemotingCommand.decode(FRAME_FROM_GO[4:])
    assert (command.code, command.opaque, command.language, command.version) == (105, 7, Language.GO, 317)
    assert command.ext_fields == {"topic": "T"} and command.remark is None and command.body == b""
    assert command.serialization is Serialization.ROCKETMQ
    assert command.encode() == FRAME_FROM_GO


def test_a_remark_and_a_body_stand_in_their_places():
    command = RemotingCommand.response(1, remark="no", body=b"\x00\xff")
    command.serialization, command.opaque = Serialization.ROCKETMQ, 9
    assert command.encode() == bytes.fromhex(
        "0000001d 01000017"  # 29 bytes follow; serialization 1, a header of 23
        "0001 07 01c7 00000009 00000001"  # SYSTEM_ERROR, another language, version 455, opaque 9, a response
        "00000002 6e6f 00000000"  # the remark `no`, no fields
        "00ff"  # the body
    )


@given(COMMANDS)
def test_what_is_encoded_in_either_serialization_is_decoded_the_same(command: RemotingCommand) -> None:
    assert RemotingCommand.decode(command.encode()[4:]) == command


@given(st.binary(max_size=80), st.sampled_from(Serialization), st.integers(0, 90))
def test_any_bytes_are_a_command_or_malformed(data: bytes, serialization: int, length: int) -> None:
    with suppress(MalformedFrame):
        RemotingCommand.decode(struct.pack(">I", serialization << 24 | length) + data)


@given(COMMANDS, st.data())
def test_a_header_that_is_cut_or_overstated_is_refused(command: RemotingCommand, data: st.DataObject) -> None:
    command.serialization, command.body = Serialization.ROCKETMQ, b""
    header = command.encode()[8:]
    cut = data.draw(st.integers(0, len(header) - 1))
    for harmed in (header[:cut], header + b"\x00"):
        with pytest.raises(MalformedFrame):
            RemotingCommand.decode(struct.pack(">I", 1 << 24 | len(harmed)) + harmed)


@pytest.mark.parametrize(
    "fields",
    [
        "ffff 00 00000000",  # a name of -1 bytes
        "0001 61 ffffffff",  # a value of -1 bytes
        "0001 61 7fffffff",  # a value of two gigabytes
        "0001 61",  # no value
        "00",  # half a length
        "0001 ff 00000000",  # a name that is no text
    ],
)
def test_lengths_that_do_not_add_up_are_refused(fields: str) -> None:
    data = bytes.fromhex(fields)
    header = HEADER_FROM_GO[:17] + struct.pack(">i", len(data)) + data
    with pytest.raises(MalformedFrame):
        RemotingCommand.decode(struct.pack(">I", 1 << 24 | len(header)) + header)


def test_what_does_not_fit_its_bytes_is_not_sent():
    too_long = RemotingCommand.request(1, {"n" * 2**15: ""})
    too_long.serialization = Serialization.ROCKETMQ
    with pytest.raises(FrameTooLong):
        too_long.encode()
    with pytest.raises(FrameTooLong):
        RemotingCommand(2**15, serialization=Serialization.ROCKETMQ).encode()
