from __future__ import annotations

import random
import zlib
from dataclasses import replace

import pytest

from system_under_test.cmq.entry import Ack, Command, Create, Produce, encode
from system_under_test.cmq.snapshot import decode, files
from system_under_test.cmq.snapshot import encode as encode_state
from system_under_test.cmq.state_machine import NO_QUEUES, CopiedState, FileState, QueueGroupState

COMMANDS: tuple[Command, ...] = (
    Create("empty"),
    Create("q"),
    Produce("q", tuple(b"%04d" % number for number in range(12))),
    Ack("q", (0, 1, 2, 3, 4, 9, 11)),
    Create("all-acknowledged"),
    Produce("all-acknowledged", (b"x",)),
    Ack("all-acknowledged", (0,)),
)


def copied() -> CopiedState:
    state = QueueGroupState(100, 5)
    for command in COMMANDS:
        state.apply(encode(command))
    return state.copy()


def test_a_state_is_read_back_as_it_was_written() -> None:
    read = decode(encode_state(copied()))
    assert encode_state(read) == encode_state(copied())
    assert QueueGroupState(100, 5, read).digest() == QueueGroupState(100, 5, copied()).digest()
    assert decode(encode_state(NO_QUEUES)) == NO_QUEUES


def test_messages_without_a_body_are_messages() -> None:
    state = QueueGroupState(100, 5)
    for command in (Create("q"), Produce("q", (b"",) * 9)):
        state.apply(encode(command))
    assert encode_state(decode(encode_state(state.copy()))) == encode_state(state.copy())


def test_the_bytes_do_not_depend_on_how_far_a_bitmap_has_grown() -> None:
    state = copied()
    queues = tuple(replace(queue, bits=bytes(queue.bits) + bytes(9)) for queue in state.queues)
    assert encode_state(CopiedState(queues)) == encode_state(state)


def test_the_files_of_a_snapshot_are_named_with_their_lengths_and_checksums() -> None:
    written: dict[str, bytes] = {}
    state = QueueGroupState(100, 5)
    for command in COMMANDS:
        for write in state.apply(encode(command)).writes:
            name = f"{write.queue}.{write.file:020d}"
            written[name] = written.get(name, b"") + write.data
    found = {file.name: (file.size, file.crc) for file in files(state.copy())}
    expected = ("q.00000000000000000005", "q.00000000000000000010", "all-acknowledged.00000000000000000000")
    assert found == {name: (len(written[name]), zlib.crc32(written[name])) for name in expected}


def test_bytes_that_are_cut_or_go_on_are_refused() -> None:
    data = encode_state(copied())
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"."):
            decode(data[:end])
    with pytest.raises(ValueError, match="stand behind"):
        decode(data + b"\0")


def test_a_state_that_no_group_can_have_is_refused() -> None:
    state = copied()
    empty, q, _ = state.queues
    for queues, match in (
        ((q, q), "comes twice"),
        ((replace(empty, next_number=1),), "0 files and 1 messages"),
        ((replace(q, files=q.files[::-1]),), "are not"),
        ((replace(q, next_number=10),), "are not"),
        ((replace(q, files=(FileState(5, 7 * 16 - 1, 0),)),), "are not 111 bytes"),
    ):
        with pytest.raises(ValueError, match=match):
            decode(encode_state(CopiedState(queues)))


def test_a_bit_of_a_message_that_there_is_not_is_refused() -> None:
    data = bytearray(encode_state(copied()))
    data[-1] |= 2
    with pytest.raises(ValueError, match="does not have"):
        decode(bytes(data))


def test_harmed_bytes_are_a_state_in_its_only_form_or_a_value_error() -> None:
    draw = random.Random(3)
    healthy = encode_state(copied())
    states = refusals = 0
    for _ in range(20_000):
        data = bytearray(healthy)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 255, draw.randrange(256)))
        try:
            read = decode(bytes(data))
        except ValueError:
            refusals += 1
        else:
            states += 1
            assert encode_state(read) == data
    assert states
    assert refusals
