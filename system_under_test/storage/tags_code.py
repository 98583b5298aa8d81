"""The hash by which consume queues know tags, and indexes keys: Java's `String.hashCode()`, a signed 32-bit number."""

from __future__ import annotations


def tags_code(text: str) -> int:
    code = 0
    for unit in text.encode() if text.isascii() else _utf_16(text):
        code = 31 * code + unit & 0xFFFFFFFF
    return code - (1 << 32) if code & 0x80000000 else code


def _utf_16(text: str) -> list[int]:
    """As Java keeps text: characters beyond 16 bits are two units."""
    units = text.encode("utf-16-be", "surrogatepass")
    return [high << 8 | low for high, low in zip(units[::2], units[1::2], strict=True)]
