"""The remoting command and its frame, byte for byte RocketMQ's.

A frame is `total length:4 | serialization type:1, header length:3 | header | body`, big-endian; the total length does
not count its own four bytes. Headers come in JSON or in RocketMQ's own serialization, and an answer in that of its
request. Header values in `extFields` are strings, as in the public clients.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from system_under_test.remoting import binary_header, json_header
from system_under_test.remoting.header import VERSION, FrameTooLong, Header, Language, MalformedFrame, Serialization

__all__ = [
    "FrameTooLong",
    "Language",
    "MalformedFrame",
    "RemotingCommand",
    "RemotingError",
    "Serialization",
    "frame_length",
]

MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_HEADER_BYTES = 1024 * 1024
"""Read, JSON takes up to some thirty times as much memory as before: bodies may be large, headers need not."""

_RESPONSE = 1
_ONEWAY = 2
_WORDS = struct.Struct(">II")
_WORD = struct.Struct(">I")


_SERIALIZATIONS: Mapping[int, tuple[Serialization, Callable[[bytes], Header]]] = {
    0: (Serialization.JSON, json_header.decode),
    1: (Serialization.ROCKETMQ, binary_header.decode),
}


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
    language: Language = Language.OTHER
    version: int = VERSION
    serialization: Serialization = Serialization.JSON

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
        encode_header = json_header.encode if self.serialization is Serialization.JSON else binary_header.encode
        encoded = encode_header(
            self.code, self.opaque, self.flag, self.remark, self.ext_fields, self.language, self.version
        )
        total = 4 + len(encoded) + len(self.body)
        if total > MAX_FRAME_BYTES or len(encoded) > MAX_HEADER_BYTES:
            raise FrameTooLong(
                f"a frame of {total} bytes with a header of {len(encoded)} is above the limit of {MAX_FRAME_BYTES} "
                f"with a header of {MAX_HEADER_BYTES}"
            )
        return b"".join((_WORDS.pack(total, self.serialization << 24 | len(encoded)), encoded, self.body))

    @classmethod
    def decode(cls, frame: bytes) -> RemotingCommand:
        """From a frame without its length word. Raises MalformedFrame."""
        if len(frame) < 4:
            raise MalformedFrame(f"a frame of {len(frame)} bytes has no header length")
        (word,) = _WORD.unpack_from(frame)
        serialization, length = word >> 24, word & 0xFFFFFF
        if serialization not in _SERIALIZATIONS:
            raise MalformedFrame(f"serialization type {serialization} is neither JSON (0) nor RocketMQ's own (1)")
        end = 4 + length
        if length > MAX_HEADER_BYTES:
            raise MalformedFrame(f"a header of {length} bytes is above the limit of {MAX_HEADER_BYTES}")
        if end > len(frame):
            raise MalformedFrame(f"a header of {length} bytes in a frame of {len(frame)}")
        kind, decode_header = _SERIALIZATIONS[serialization]
        code, opaque, flag, remark, ext_fields, language, version = decode_header(frame[4:end])
        return cls(code, opaque, flag, remark, ext_fields, frame[end:], language, version, kind)


def frame_length(word: bytes) -> int:
    """The length of the frame that follows this length word. Raises MalformedFrame if out of bounds."""
    (length,) = _WORD.unpack(word)
    if not 4 <= length <= MAX_FRAME_BYTES:
        raise MalformedFrame(f"a frame of {length} bytes is out of bounds")
    return int(length)
