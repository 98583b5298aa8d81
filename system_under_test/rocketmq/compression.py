"""Bodies that producers compress and consumers make whole again; brokers keep them as they are.

A message's sysFlag says that its body is compressed, and how: 1 for LZ4 (its frame format), 2 for Zstandard, 3, or 0
for the producers that knew nothing else, for zlib. Only who looks into a body needs to know how it was compressed:
clients, and proxies for those of version 2, which has no words for LZ4 and Zstandard. These two need a package (`lz4`;
`backports.zstd` before Python 3.14), without which such a body is refused.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Mapping
from enum import IntEnum
from types import ModuleType
from typing import Any, Final

COMPRESSED: Final = 1
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""A body that grows beyond it is refused."""
_TYPE_AT: Final = 8
_TYPES: Final = 7 << _TYPE_AT
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
"""Clients of version 2 write gzip, and sysFlag has one number for both: the body's first bytes say which it is."""
_LEVEL: Final = 5


class Compression(IntEnum):
    """As sysFlag counts them."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3


_PACKAGES: Final[Mapping[Compression, tuple[str, ...]]] = {
    Compression.LZ4: ("lz4.frame",),
    Compression.ZSTD: ("compression.zstd", "backports.zstd"),
}
"""What may offer each, the first that is there."""


class NotCompressed(ValueError):
    """A body that is not what its sysFlag says, or is compressed in a way that is not spoken here."""


class NotSpoken(NotCompressed):
    """There is no such way, or the package that it needs is missing: another reader may well read it."""


def compression_of(sys_flag: int) -> Compression | None:
    """How a body is compressed; None if it is not. Raises NotSpoken."""
    if not sys_flag & COMPRESSED:
        return None
    kind = (sys_flag & _TYPES) >> _TYPE_AT
    try:
        return Compression(kind) if kind else Compression.ZLIB
    except ValueError as error:
        raise NotSpoken(f"a body compressed by type {kind}, which nobody has heard of") from error


def compress_body(body: bytes, how: Compression = Compression.ZLIB) -> tuple[bytes, int]:
    """What is sent instead, and the bits of its sysFlag. Raises NotSpoken."""
    sys_flag = COMPRESSED | how << _TYPE_AT
    if how is Compression.ZLIB:
        return zlib.compress(body, _LEVEL), sys_flag
    package = _package(how)
    compressed: bytes = package.compress(body, *((_LEVEL,) if how is Compression.ZSTD else ()))
    return compressed, sys_flag


def decompress_body(body: bytes, sys_flag: int) -> bytes:
    """The body as its producer had it. Raises NotCompressed, and NotSpoken of these."""
    how = compression_of(sys_flag)
    match how:
        case None:
            return body
        case Compression.ZLIB:
            return inflated(body, _GZIP_OR_ZLIB)
        case Compression.LZ4:
            package = _package(how)
            return _whole("LZ4", package.LZ4FrameDecompressor(), (RuntimeError,), body)
        case Compression.ZSTD:
            package = _package(how)
            return _whole("Zstandard", package.ZstdDecompressor(), (package.ZstdError,), body)


def inflated(body: bytes, bits: int = zlib.MAX_WBITS) -> bytes:
    """What zlib made of it before, of at most MAX_BODY_BYTES. Raises NotCompressed."""
    return _whole("zlib", zlib.decompressobj(bits), (zlib.error,), body)


def _whole(name: str, reader: Any, errors: tuple[type[Exception], ...], body: bytes) -> bytes:
    """Each of these readers stops at so many bytes, and says whether it came to an end."""
    try:
        whole: bytes = reader.decompress(body, MAX_BODY_BYTES)
    except errors as error:
        raise NotCompressed(f"the body was not compressed by {name}: {error}") from error
    if not reader.eof:
        raise NotCompressed(f"the compressed body is cut, or longer than {MAX_BODY_BYTES} bytes")
    return whole


def _package(how: Compression) -> ModuleType:
    """Raises NotSpoken."""
    for name in _PACKAGES[how]:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise NotSpoken(f"a body compressed by {how.name}, for which {' or '.join(_PACKAGES[how])} has to be installed")
