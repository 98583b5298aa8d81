"""The wire format of Protocol Buffers: bytes made by hand from its public description, and any bytes at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.grpc.protobuf import (
    BOOL,
    BYTES,
    ENUM,
    FLOAT,
    INT32,
    INT64,
    TEXT,
    MalformedMessage,
    Message,
    field,
    of,
    optional,
    repeated,
    text_map,
)


class Point(Message):
    x: int = field(1, INT32)
    label: str = field(2, TEXT)


class Everything(Message):
    number: int = field(1, INT64)
    text: str = field(2, TEXT)
    data: bytes = field(3, BYTES)
    flag: bool = field(4, BOOL)
    ratio: float = field(5, FLOAT)
    point: Point | None = field(6, of(Point))
    points: list[Point] = repeated(7, of(Point))
    kinds: list[int] = repeated(8, ENUM)
    words: list[str] = repeated(9, TEXT)
    named: dict[str, str] = text_map(10)
    maybe: int | None = optional(11, INT32)
    left: str | None = optional(12, TEXT, "side")
    right: str | None = optional(2047, TEXT, "side")


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (Everything(), ""),
        (Everything(number=150), "08 96 01"),
        (Everything(number=-1), "08 ff ff ff ff ff ff ff ff ff 01"),
        (Everything(number=2**63 - 1), "08 ff ff ff ff ff ff ff ff 7f"),
        (Everything(text="testing"), "12 07 74 65 73 74 69 6e 67"),
        (Everything(text="é"), "12 02 c3 a9"),
        (Everything(data=b"\x00\xff"), "1a 02 00 ff"),
        (Everything(flag=True), "20 01"),
        (Everything(ratio=2.0), "2d 00 00 00 40"),
        (Everything(point=Point(x=-2, label="")), "32 0b 08 fe ff ff ff ff ff ff ff ff 01"),
        (Everything(point=Point()), "32 00"),
        (Everything(points=[Point(x=1), Point()]), "3a 02 08 01 3a 00"),
        (Everything(kinds=[3, 270, 86942]), "42 06 03 8e 02 9e a7 05"),
        (Everything(words=["a", ""]), "4a 01 61 4a 00"),
        (Everything(named={"k": "v"}), "52 06 0a 01 6b 12 01 76"),
        (Everything(maybe=0), "58 00"),
        (Everything(left=""), "62 00"),
        (Everything(right="r"), "fa 7f 01 72"),
    ],
)
def test_bytes_made_by_hand(message: Everything, data: str) -> None:
    assert message.encode().hex(" ") == data
    assert Everything.decode(bytes.fromhex(data)) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("40 03 40 05", Everything(kinds=[3, 5])),  # a repeated number, piece by piece
        ("08 01 08 02", Everything(number=2)),  # the last one stays
        ("62 01 61 fa 7f 01 62", Everything(right="b")),  # of one choice, too
        ("f8 01 07 08 01", Everything(number=1)),  # field 31 is not declared
        ("c2 3e 02 68 69 cd 3e 00 00 00 00 c9 3e 00 00 00 00 00 00 00 00", Everything()),  # of any wire type
        ("52 03 0a 01 6b", Everything(named={"k": ""})),
    ],
)
def test_what_others_may_send(data: str, message: Everything) -> None:
    assert Everything.decode(bytes.fromhex(data)) == message


@pytest.mark.parametrize(
    "data",
    [
        "08",  # no number
        "08 ff ff ff ff ff ff ff ff ff ff 01",  # eleven bytes of a number
        "12 05 61",  # a cut text
        "12 ff ff ff ff 0f",  # four gigabytes that do not come
        "12 02 ff fe",  # no UTF-8
        "2d 00 00",  # a cut float
        "0b 0c",  # groups
        "0f",  # a wire type that does not exist
        "00 01",  # field 0
        "0a 01 61",  # a text for a number
        "10 01",  # a number for a text
        "32 02 08",  # a message cut within itself
        "42 01 80",  # a packed number that does not end
        "52 02 0a 05",  # an entry of a map that is cut
    ],
)
def test_what_is_no_message_is_refused(data: str) -> None:
    with pytest.raises(MalformedMessage):
        Everything.decode(bytes.fromhex(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read = Everything.decode(data)
    except MalformedMessage:
        return
    again = Everything.decode(read.encode())
    assert again.encode() == read.encode()


TEXTS = st.text(max_size=20)
POINTS = st.builds(Point, x=st.integers(-(2**31), 2**31 - 1), label=TEXTS)


@given(
    st.builds(
        Everything,
        number=st.integers(-(2**63), 2**63 - 1),
        text=TEXTS,
        data=st.binary(max_size=300),
        flag=st.booleans(),
        ratio=st.floats(width=32, allow_nan=False),
        point=st.none() | POINTS,
        points=st.lists(POINTS, max_size=3),
        kinds=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5),
        words=st.lists(TEXTS, max_size=3),
        named=st.dictionaries(TEXTS, TEXTS, max_size=3),
        maybe=st.none() | st.integers(-(2**31), 2**31 - 1),
    )
)
def test_what_is_written_is_read_again(message: Everything) -> None:
    assert Everything.decode(message.encode()) == message
