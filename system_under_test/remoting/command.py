"""The remoting command and its frame, byte for byte RocketMQ's.

A frame is `total length:4 | serialization type:1, header length:3 | JSON header | body`, big-endian;
the total length does not count its own four bytes. Only serialization type 0 (JSON) is spoken. Header
values in `extFields` are strings, as in the public clients.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_HEADER_BYTES = 1024 * 1024
"""Read, JSON takes up to some thirty times as much memory as before: bodies may be large, headers need not."""

_RESPONSE = 1
_ONEWAY = 2
_LANGUAGE = "OTHER"
_VERSION = 455
_WORDS = struct.Struct(">II")
_WORD = struct.Struct(">I")
_text = json.encoder.encode_basestring_ascii
_JSON = json.JSONDecoder()


class MalformedFrame(Exception):
    """Bytes that are no frame; the connection they came on is of no use any more."""


class FrameTooLong(ValueError):
    """A command that is too long to be sent; nothing of it was."""


class RemotingError(Exception):
    """Raised by a handler to answer with this response code and remark."""

    def __init__(self, code: int, remark: str = "") -> None:
        super().__init__(f"{code}: {remark}")
        self.code = code
        self.remark = remark


@dataclass(slots=True)
class RemotingCommand:
    """A request or a response. `opaque` pairs the two; the client that sends a request chooses it."""

    code: int
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    ext_fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def request(cls, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
        return cls(int(code), 0, 0, None, ext_fields or {}, body)

    @classmethod
    def oneway(cls, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
        """A request that is not to be answered."""
        return cls(int(code), 0, _ONEWAY, None, ext_fields or {}, body)

    @classmethod
    def response(
        cls, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"", remark: str | None = None
    ) -> RemotingCommand:
        return cls(int(code), 0, _RESPONSE, remark, ext_fields or {}, body)

    @property
    def is_response(self) -> bool:
        return self.flag & _RESPONSE != 0

    @property
    def is_oneway(self) -> bool:
        return self.flag & _ONEWAY != 0

    def encode(self) -> bytes:
        """The whole frame, length word included. Raises FrameTooLong."""
        ext_fields = ",".join([f"{_text(name)}:{_text(value)}" for name, value in self.ext_fields.items()])
        encoded = (
            f'{{"code":{self.code},'
            + (f'"extFields":{{{ext_fields}}},' if ext_fields else "")
            + f'"flag":{self.flag},"language":"{_LANGUAGE}","opaque":{self.opaque},'
            + (f'"remark":{_text(self.remark)},' if self.remark is not None else "")
            + f'"serializeTypeCurrentRPC":"JSON","version":{_VERSION}}}'
        ).encode("ascii")
        total = 4 + len(encoded) + len(self.body)
        if total > MAX_FRAME_BYTES or len(encoded) > MAX_HEADER_BYTES:
            raise FrameTooLong(
                f"a frame of {total} bytes with a header of {len(encoded)} is above the limit of {MAX_FRAME_BYTES} "
                f"with a header of {MAX_HEADER_BYTES}"
            )
        return b"".join((_WORDS.pack(total, len(encoded)), encoded, self.body))

    @classmethod
    def decode(cls, frame: bytes) -> RemotingCommand:
        """From a frame without its length word. Raises MalformedFrame."""
        if len(frame) < 4:
            raise MalformedFrame(f"a frame of {len(frame)} bytes has no header length")
        (word,) = _WORD.unpack_from(frame)
        if word >> 24:
            raise MalformedFrame(f"serialization type {word >> 24} is not JSON (0)")
        end = 4 + word
        if word > MAX_HEADER_BYTES:
            raise MalformedFrame(f"a header of {word} bytes is above the limit of {MAX_HEADER_BYTES}")
        if end > len(frame):
            raise MalformedFrame(f"a header of {word} bytes in a frame of {len(frame)}")
        try:
            header = _decode_header(frame[4:end].decode("utf-8"))
            ext_fields = header.get("extFields") or {}
            command = cls(
                header["code"], header["opaque"], header.get("flag", 0), header.get("remark"), ext_fields, frame[end:]
            )
        except (ValueError, KeyError, AttributeError, RecursionError) as error:
            raise MalformedFrame(f"the header is not a command: {error!r}") from error
        if not (
            type(command.code) is int
            and type(command.opaque) is int
            and type(command.flag) is int
            and (command.remark is None or type(command.remark) is str)
            and type(ext_fields) is dict
        ):
            raise MalformedFrame("the header's code, opaque, flag, remark or extFields has the wrong type")
        for value in ext_fields.values():
            # Handlers rely on text; anything else would break them far from where it came in.
            if type(value) is not str:
                raise MalformedFrame(f"a value of extFields is a {type(value).__name__}, not text")
        if frame.find(b"\\u", 4, end) >= 0:
            _check_characters(command)
        return command


def _decode_header(text: str) -> Any:
    """As `json.loads`, without its two searches for white space where there is none. Raises ValueError."""
    try:
        header, end = _JSON.raw_decode(text)
    except ValueError:
        end = -1
    return header if end == len(text) else _JSON.decode(text)


def _check_characters(command: RemotingCommand) -> None:
    """Half a character, which only an escape can bring in, has no bytes: it could be stored nowhere."""
    try:
        for text in (command.remark or "", *command.ext_fields, *command.ext_fields.values()):
            text.encode()
    except UnicodeEncodeError as error:
        raise MalformedFrame(f"the header has half a character: {error}") from error


def frame_length(word: bytes) -> int:
    """The length of the frame that follows this length word. Raises MalformedFrame if out of bounds."""
    (length,) = _WORD.unpack(word)
    if not 4 <= length <= MAX_FRAME_BYTES:
        raise MalformedFrame(f"a frame of {length} bytes is out of bounds")
    return int(length)
