"""The hash by which consume queues know tags, and indexes keys: Java's `String.hashCode()`, a signed 32-bit number."""

from __future__ import annotations


def tags_code(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - (1 << 32) if code & 0x80000000 else code
