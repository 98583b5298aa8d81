"""The fields of a JSON body as DLedger's own library (fastjson) writes them: bytes are base64, and what is null may be
left out. Fields that nobody asks for are passed over.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import Final, TypeVar

from system_under_test.dledger.entry import HEAD_BYTES, NOTHING, Entry
from system_under_test.remoting.command import MAX_FRAME_BYTES
from system_under_test.remoting.json_body import decode_json

MAX_NAME: Final = 255
"""Characters of a group's name, a member's id or an address."""
MAX_32: Final = 2**31 - 1
MAX_64: Final = 2**63 - 1
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
MAGIC: Final = 1
"""The version of an entry's format, of which there is one."""

_ENTRY_FIELDS: Final = frozenset(("magic", "channel", "size", "index", "term", "pos", "body"))
_ENTRY_NUMBERS: Final = itemgetter("magic", "channel", "size", "index", "term", "pos")

Choice = TypeVar("Choice", bound=Enum)


class MalformedBody(ValueError):
    """A body that is no JSON, or lacks what it has to have, or has what it must not."""


class Fields:
    def __init__(self, value: object, what: str = "the body") -> None:
        if not isinstance(value, Mapping):
            raise MalformedBody(f"{what} is no object")
        self._fields: Mapping[str, object] = value
        self._what = what

    def _malformed(self, name: str, expected: str) -> MalformedBody:
        return MalformedBody(f"{name!r} of {self._what} is {str(self._fields.get(name))[:40]!r}, not {expected}")

    def has(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def integer(self, name: str, default: int = NOTHING, *, low: int = NOTHING, high: int = MAX_64) -> int:
        value = self._fields.get(name)
        if value is None:
            value = default
        if type(value) is not int or not low <= value <= high:
            raise self._malformed(name, f"a whole number from {low} to {high}")
        return value

    def index(self, name: str) -> int:
        """Of something that is there."""
        value = self._fields.get(name)
        if value is None:
            raise MalformedBody(f"{self._what} lacks {name!r}")
        return self.integer(name, low=0)

    def text(self, name: str) -> str:
        """Empty if it is left out."""
        if not self.has(name):
            return ""
        value = self._fields[name]
        if not isinstance(value, str) or len(value) > MAX_NAME or not value.isprintable():
            raise self._malformed(name, f"a text of at most {MAX_NAME} characters that can be printed")
        return value

    def choice(self, name: str, default: Choice) -> Choice:
        """A value of the default's class, by its name."""
        value = self.text(name)
        if not value:
            return default
        try:
            return type(default)(value)
        except ValueError:
            raise self._malformed(name, f"one of {', '.join(each.value for each in type(default))}") from None

    def data(self, name: str) -> bytes:
        if not self.has(name):
            raise MalformedBody(f"{self._what} lacks {name!r}")
        return _bytes(self._fields[name], name)

    def items(self, name: str) -> Sequence[object]:
        """Empty if it is left out."""
        value = self._fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._malformed(name, "a list")
        return value

    def bodies(self, name: str) -> tuple[bytes, ...]:
        return tuple(_bytes(item, name) for item in self.items(name))

    def indices(self, name: str) -> tuple[int, ...]:
        return tuple(Fields({name: item}).index(name) for item in self.items(name))

    def entry(self, name: str) -> Entry | None:
        return decode_entry(self._fields[name]) if self.has(name) else None

    def entries(self, name: str) -> tuple[Entry, ...]:
        return tuple(decode_entry(item) for item in self.items(name))

    def texts(self, name: str) -> Mapping[str, str]:
        """By names; empty if it is left out."""
        if not self.has(name):
            return {}
        fields = Fields(self._fields[name], name)
        return {Fields({"name": each}, name).text("name"): fields.text(each) for each in fields._fields}


def _bytes(value: object, name: str) -> bytes:
    try:
        if not isinstance(value, str):
            raise ValueError
        return a2b_base64(value, strict_mode=True)
    except ValueError:
        raise MalformedBody(f"{name!r} is {str(value)[:40]!r}, not bytes in base64") from None


def decode_entry(value: object) -> Entry:
    """Its checksums are not looked at: those of the public library are 0."""
    if isinstance(value, dict) and value.keys() >= _ENTRY_FIELDS:
        # As members write it, which is most of what is read.
        magic, channel, size, index, term, position = numbers = _ENTRY_NUMBERS(value)
        if set(map(type, numbers)) == {int} and magic == MAGIC and 0 <= index | term | position <= MAX_64:
            entry = Entry(index, term, position, _bytes(value["body"], "body"))
            if channel == 0 and size == entry.size:
                return entry
    fields = Fields(value, "an entry")
    if fields.integer("magic", MAGIC, low=-MAX_32) != MAGIC:
        raise MalformedBody(f"an entry's 'magic' is not {MAGIC}: its format is not this one")
    entry = Entry(
        fields.index("index"),
        fields.index("term"),
        fields.index("pos"),
        fields.data("body"),
        fields.integer("channel", 0, low=-MAX_32 - 1, high=MAX_32),
    )
    if fields.integer("size", entry.size) != entry.size:
        raise MalformedBody(f"an entry's 'size' is not {HEAD_BYTES} and its body's")
    return entry


def encode_entry(entry: Entry) -> Mapping[str, object]:
    return {
        "magic": MAGIC,
        "size": entry.size,
        "index": entry.index,
        "term": entry.term,
        "pos": entry.position,
        "channel": entry.channel,
        "chainCrc": 0,
        "bodyCrc": 0,
        "body": encode_bytes(entry.body),
    }


def encode_bytes(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def read_fields(body: bytes) -> Fields:
    """Raises MalformedBody."""
    if len(body) > MAX_FRAME_BYTES:
        raise MalformedBody(f"a body of {len(body)} bytes is longer than any frame")
    try:
        return Fields(decode_json(body))
    except MalformedBody:
        raise
    except ValueError as error:
        raise MalformedBody(f"the body is not JSON: {error}") from error


def write_fields(fields: Mapping[str, object]) -> bytes:
    """In the order of the public library, and without what is None."""
    return _ENCODER.encode({name: value for name, value in fields.items() if value is not None}).encode()
