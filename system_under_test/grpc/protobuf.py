"""Protocol Buffers' wire format for messages that are declared as dataclasses.

    class Resource(Message):
        resource_namespace: str = field(1, TEXT)
        name: str = field(2, TEXT)

Source: the public description of the encoding (proto3). A field that has its default is not sent; one that is
declared `optional` or belongs to a `oneof` is None where it was not sent. Fields that are not declared are passed over.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

_FLOAT = struct.Struct("<f")
_FLOAT_SIZE, _DOUBLE_SIZE = 4, 8
_MAX_VARINT_BYTES = 10
_MASK = (1 << 64) - 1
_KIND = "protobuf"


class MalformedMessage(ValueError):
    """The bytes are no message of the type that was expected."""


class Wire(IntEnum):
    """How many bytes a value has, as each field's tag says."""

    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    FIXED32 = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field's values are. `write` gives a value's bytes without tag and length; `read` takes a number for
    VARINT, else bytes, and raises MalformedMessage."""

    wire: Wire
    default: Any
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any]


def _read_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedMessage("a text is not UTF-8") from error


def _signed(bits: int) -> Callable[[int], int]:
    top, mask = 1 << (bits - 1), (1 << bits) - 1

    def read(value: int) -> int:
        value &= mask
        return value - (mask + 1) if value & top else value

    return read


def _varint(value: int) -> bytes:
    """At most 64 bits; negative numbers as their two's complement."""
    value &= _MASK
    if value < 0x80:
        return bytes((value,))
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


TEXT = Kind(Wire.LENGTH, "", str.encode, _read_text)
BYTES = Kind(Wire.LENGTH, b"", bytes, bytes)
INT32 = Kind(Wire.VARINT, 0, _varint, _signed(32))
INT64 = Kind(Wire.VARINT, 0, _varint, _signed(64))
ENUM = INT32
"""Numbers that a receiver does not know are kept."""
BOOL = Kind(Wire.VARINT, False, _varint, bool)
FLOAT = Kind(Wire.FIXED32, 0.0, _FLOAT.pack, lambda data: _FLOAT.unpack(data)[0])


@dataclass(frozen=True, slots=True)
class _Field:
    number: int
    kind: Kind
    is_repeated: bool = False
    is_map: bool = False
    has_presence: bool = False
    oneof: str | None = None
    name: str = ""


def field(number: int, kind: Kind) -> Any:
    return _declared(_Field(number, kind), default=kind.default)


def optional(number: int, kind: Kind, oneof: str | None = None) -> Any:
    """None where it was not sent. Of the fields of one `oneof` the last that came stays."""
    return _declared(_Field(number, kind, has_presence=True, oneof=oneof), default=None)


def repeated(number: int, kind: Kind) -> Any:
    return _declared(_Field(number, kind, is_repeated=True), default_factory=list)


def text_map(number: int) -> Any:
    """Texts by texts."""
    return _declared(_Field(number, of(_Entry), is_map=True), default_factory=dict)


def of(message: type[Message]) -> Kind:
    """The kind of fields that hold a message."""
    return Kind(Wire.LENGTH, None, lambda value: bytes(value.encode()), message.decode)


def _declared(declared: _Field, **default: Any) -> Any:
    return dataclasses.field(metadata={_KIND: declared}, **default)


class Message:
    """A message: its fields are declared with `field`, `optional`, `repeated`, `text_map`."""

    _declared: ClassVar[tuple[_Field, ...]]
    _by_number: ClassVar[Mapping[int, _Field]]

    if TYPE_CHECKING:  # a dataclass's own, by keywords, each with a default

        def __init__(self, **values: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        declared = dataclasses.fields(dataclass(kw_only=True)(cls))  # type: ignore[arg-type]
        by_number = {}
        for each in declared:
            number = each.metadata[_KIND].number
            by_number[number] = dataclasses.replace(each.metadata[_KIND], name=each.name)
        cls._by_number = by_number
        cls._declared = tuple(by_number[number] for number in sorted(by_number))

    def encode(self) -> bytes:
        data = bytearray()
        for declared in self._declared:
            _write_field(data, declared, getattr(self, declared.name))
        return bytes(data)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Raises MalformedMessage."""
        by_number = cls._by_number
        values: dict[str, Any] = {}
        for number, wire, value in _pieces(data):
            declared = by_number.get(number)
            if declared is not None:
                _take(values, by_number, declared, wire, value)
        return cls(**values)


class _Entry(Message):
    key: str = field(1, TEXT)
    value: str = field(2, TEXT)


def _write_field(data: bytearray, declared: _Field, value: Any) -> None:
    kind = declared.kind
    if declared.is_map:
        for key, text in value.items():
            _write_value(data, declared.number, kind, _Entry(key=key, value=text))
    elif declared.is_repeated:
        if kind.wire is Wire.LENGTH:
            for each in value:
                _write_value(data, declared.number, kind, each)
        elif value:
            packed = b"".join(map(kind.write, value))
            data += _varint(declared.number << 3 | Wire.LENGTH) + _varint(len(packed)) + packed
    elif value is not None and (declared.has_presence or value != kind.default):
        _write_value(data, declared.number, kind, value)


def _write_value(data: bytearray, number: int, kind: Kind, value: Any) -> None:
    data += _varint(number << 3 | kind.wire)
    written = kind.write(value)
    if kind.wire is Wire.LENGTH:
        data += _varint(len(written))
    data += written


def _take(
    values: dict[str, Any], by_number: Mapping[int, _Field], declared: _Field, wire: int, value: int | bytes
) -> None:
    """Add one piece to what is known of a message."""
    kind = declared.kind
    if declared.is_repeated and kind.wire is not Wire.LENGTH and wire == Wire.LENGTH:
        assert isinstance(value, bytes)
        values.setdefault(declared.name, []).extend(kind.read(each) for each in _unpacked(value, kind))
        return
    if wire != kind.wire:
        raise MalformedMessage(f"field {declared.number} ({declared.name}) has wire type {wire}, not {kind.wire:d}")
    read = kind.read(value)
    if declared.is_map:
        values.setdefault(declared.name, {})[read.key] = read.value
    elif declared.is_repeated:
        values.setdefault(declared.name, []).append(read)
    else:
        if declared.oneof is not None:
            for other in by_number.values():
                if other.oneof == declared.oneof:
                    values.pop(other.name, None)
        values[declared.name] = read


def _pieces(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field's number, wire type, its value: a number or bytes) one after the other. Raises MalformedMessage."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _read_varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise MalformedMessage("a field has number 0")
        value: int | bytes
        if wire == Wire.VARINT:
            value, position = _read_varint(data, position)
        else:
            if wire == Wire.LENGTH:
                length, position = _read_varint(data, position)
            elif wire in (Wire.FIXED32, Wire.FIXED64):
                length = _FLOAT_SIZE if wire == Wire.FIXED32 else _DOUBLE_SIZE
            else:
                raise MalformedMessage(f"field {number} has wire type {wire}, which is not supported")
            if length > end - position:
                raise MalformedMessage(f"field {number} is cut")
            value = data[position : position + length]
            position += length
        yield number, wire, value


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number and where it ends. Raises MalformedMessage."""
    value = shift = 0
    for at in range(position, min(position + _MAX_VARINT_BYTES, len(data))):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at + 1
        shift += 7
    raise MalformedMessage("a number is cut or has more than 64 bits")


def _unpacked(data: bytes, kind: Kind) -> Iterator[int | bytes]:
    """The values of a repeated field that were sent in one piece."""
    if kind.wire is Wire.VARINT:
        position = 0
        while position < len(data):
            value, position = _read_varint(data, position)
            yield value
    else:
        if len(data) % _FLOAT_SIZE:
            raise MalformedMessage("a packed field is cut")
        yield from (data[at : at + _FLOAT_SIZE] for at in range(0, len(data), _FLOAT_SIZE))
