from __future__ import annotations

import random

import pytest

from system_under_test.cmq.entry import MAX_MESSAGES, Ack, Command, Create, Produce, check, decode, encode

COMMANDS = (
    Create("q"),
    Create("Q_-9" * 16),
    Produce("orders", (b"one",)),
    Produce("orders", (b"", b"two", bytes(range(256)))),
    Produce("orders", (b"x",) * MAX_MESSAGES),
    Ack("orders", (0,)),
    Ack("orders", (7, (1 << 64) - 1, 7)),
)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_is_read_back_as_it_was_written(command: Command) -> None:
    data = encode(command)
    check(data)
    assert decode(data) == command


def test_the_bytes_are_as_they_were() -> None:
    assert encode(Create("q")).hex() == "000171"
    assert encode(Produce("q", (b"ab", b""))).hex() == "0101710200000002616200000000"
    assert encode(Ack("q", (1, 2))).hex() == "0201710200000000000000010000000000000002"


@pytest.mark.parametrize(
    "command",
    [
        Create(""),
        Create("q" * 65),
        Create("a.b"),
        Create("a/b"),
        Create("q\n"),
        Create("é"),
        Produce("q", ()),
        Produce("q", (b"x",) * (MAX_MESSAGES + 1)),
        Ack("q", ()),
        Ack("q", tuple(range(MAX_MESSAGES + 1))),
        Ack("q", (-1,)),
        Ack("q", (1 << 64,)),
    ],
    ids=str,
)
def test_what_no_command_can_be_is_not_written(command: Command) -> None:
    with pytest.raises(ValueError, match="expected"):
        encode(command)


def test_bytes_that_are_cut_or_go_on_are_refused() -> None:
    for command in COMMANDS:
        data = encode(command)
        for end in range(len(data)):
            with pytest.raises(ValueError, match=r"."):
                check(data[:end])
        with pytest.raises(ValueError, match=r"."):
            check(data + b"\0")


def test_harmed_bytes_are_a_command_in_its_only_form_or_a_value_error() -> None:
    draw = random.Random(5)
    commands = refusals = 0
    for _ in range(20_000):
        data = bytearray(encode(draw.choice(COMMANDS)))
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            command = decode(bytes(data))
        except ValueError:
            refusals += 1
        else:
            commands += 1
            assert encode(command) == data
    assert commands
    assert refusals
