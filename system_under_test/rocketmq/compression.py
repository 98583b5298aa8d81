"""Bodies that producers compress and consumers make whole again; brokers keep them as they are.

A message's sysFlag says that its body is compressed, and how: 1 for LZ4, 2 for Zstandard, 3, or 0 for the producers
that knew nothing else, for zlib, which is the only one that is spoken here.
"""

from __future__ import annotations

import zlib
from typing import Final

COMPRESSED: Final = 1
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""A body that grows beyond it is refused."""
_TYPE_AT: Final = 8
_TYPES: Final = 7 << _TYPE_AT
_ZLIB: Final = 3
_NAMES: Final = {1: "LZ4", 2: "Zstandard"}
_LEVEL: Final = 5


class NotCompressed(ValueError):
    """A body that is not what its sysFlag says, or is compressed in a way that is not spoken here."""


def compress_body(body: bytes) -> tuple[bytes, int]:
    """What is sent instead, and the bits of its sysFlag."""
    return zlib.compress(body, _LEVEL), COMPRESSED | _ZLIB << _TYPE_AT


def decompress_body(body: bytes, sys_flag: int) -> bytes:
    """The body as its producer had it. Raises NotCompressed."""
    if not sys_flag & COMPRESSED:
        return body
    kind = (sys_flag & _TYPES) >> _TYPE_AT
    if kind not in (0, _ZLIB):
        raise NotCompressed(f"a body compressed by {_NAMES.get(kind, f'type {kind}')}: only zlib is spoken here")
    return inflated(body)


def inflated(body: bytes) -> bytes:
    """What zlib made of it before, of at most MAX_BODY_BYTES. Raises NotCompressed."""
    inflater = zlib.decompressobj()
    try:
        whole = inflater.decompress(body, MAX_BODY_BYTES)
    except zlib.error as error:
        raise NotCompressed(f"the body was not compressed by zlib: {error}") from error
    if not inflater.eof:
        raise NotCompressed(f"the compressed body is cut, or longer than {MAX_BODY_BYTES} bytes")
    return whole
