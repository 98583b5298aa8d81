"""Headers in RocketMQ's own serialization (type 1), big-endian:

`code:2 | language:1 | version:2 | opaque:4 | flag:4 | remark length:4, remark | fields length:4, fields`, a field being
`name length:2, name | value length:4, value`. Lengths are signed and count bytes of UTF-8; an empty remark is none.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from system_under_test.remoting.header import LANGUAGES, FrameTooLong, Header, Language, MalformedFrame

_START: Final = struct.Struct(">hBhiii")
_NAME_LENGTH: Final = struct.Struct(">h")
_LENGTH: Final = struct.Struct(">i")
_MAX_SHORT: Final = 2**15 - 1
_SHORTS: Final = range(-(2**15), 2**15)


def encode(
    code: int,
    opaque: int,
    flag: int,
    remark: str | None,
    ext_fields: Mapping[str, str],
    language: Language,
    version: int,
) -> bytes:
    """Raises FrameTooLong where a name, the code or the version needs more than its two bytes."""
    remark_bytes = (remark or "").encode()
    pieces: list[bytes] = []
    for name, value in ext_fields.items():
        name_bytes, value_bytes = name.encode(), value.encode()
        if len(name_bytes) > _MAX_SHORT:
            raise FrameTooLong(f"the name of a field has {len(name_bytes)} bytes, at most {_MAX_SHORT} are possible")
        pieces += (_NAME_LENGTH.pack(len(name_bytes)), name_bytes, _LENGTH.pack(len(value_bytes)), value_bytes)
    if code not in _SHORTS or version not in _SHORTS:
        raise FrameTooLong(f"code {code} or version {version} needs more than 16 bits")
    fields = b"".join(pieces)
    start = _START.pack(code, language, version, opaque, flag, len(remark_bytes))
    return b"".join((start, remark_bytes, _LENGTH.pack(len(fields)), fields))


def decode(data: bytes) -> Header:
    """Raises MalformedFrame, also where anything is left over."""
    try:
        code, language, version, opaque, flag, remark_length = _START.unpack_from(data)
        remark, position = _text(data, _START.size, remark_length)
        (fields_length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if fields_length != len(data) - position:
            raise MalformedFrame(f"{fields_length} bytes of fields, where the header has {len(data) - position} left")
        ext_fields: dict[str, str] = {}
        while position < len(data):
            (name_length,) = _NAME_LENGTH.unpack_from(data, position)
            name, position = _text(data, position + _NAME_LENGTH.size, name_length)
            (value_length,) = _LENGTH.unpack_from(data, position)
            ext_fields[name], position = _text(data, position + _LENGTH.size, value_length)
    except struct.error as error:
        raise MalformedFrame(f"the header ends too early: {error}") from error
    except UnicodeDecodeError as error:
        raise MalformedFrame(f"the header has what is no text: {error}") from error
    return Header(code, opaque, flag, remark or None, ext_fields, LANGUAGES.get(language, Language.OTHER), version)


def _text(data: bytes, start: int, length: int) -> tuple[str, int]:
    """The text of this length, and where it ends. Raises MalformedFrame, UnicodeDecodeError."""
    end = start + length
    if length < 0 or end > len(data):
        raise MalformedFrame(f"a text of {length} bytes where {len(data) - start} are left")
    return data[start:end].decode(), end
