"""Which messages of a queue are acknowledged: a bit a message, from the first one of its oldest file on.

A bit that is set stays set. Setting one, and finding the first that is not set, cost the same however many there are,
on the average; what concerns all of them is done by the byte, and by no loop here.
"""

from __future__ import annotations

import re
from typing import Self

_NOT_ALL_SET = re.compile(rb"[^\xff]")
_LONG_RUN = b"\xff" * 512


class Bitmap:
    """Of the messages from number `base` on; those before it are acknowledged."""

    __slots__ = ("_first_unset", "base", "bits", "count")

    def __init__(self, base: int = 0, bits: bytes = b"") -> None:
        self.base = base
        self.bits = bytearray(bits)
        """Message `base` has the lowest bit of the first byte. It grows when a bit is set; bits behind it are not."""
        self.count = int.from_bytes(self.bits, "little").bit_count()
        """So many of its bits are set."""
        self._first_unset = base
        self._first_unset = self.next_unset(base)

    def set(self, number: int) -> bool:
        """Whether it was not set before."""
        if number < self.base:
            return False
        at, mask = (number - self.base) >> 3, 1 << (number - self.base & 7)
        if at >= len(self.bits):
            self.bits.extend(bytes(at + 1 - len(self.bits)))
        if self.bits[at] & mask:
            return False
        self.bits[at] |= mask
        self.count += 1
        if number == self._first_unset:
            self._first_unset = self.next_unset(number)
        return True

    def is_set(self, number: int) -> bool:
        if number < self.base:
            return True
        at = (number - self.base) >> 3
        return at < len(self.bits) and bool(self.bits[at] >> (number - self.base & 7) & 1)

    @property
    def first_unset(self) -> int:
        return self._first_unset

    def next_unset(self, number: int) -> int:
        """The first number from this one on whose bit is not set."""
        number = max(number, self._first_unset)
        at, bit = divmod(number - self.base, 8)
        if at >= len(self.bits):
            return number
        rest = ~(self.bits[at] >> bit) & (0xFF >> bit)
        if rest:
            return number + _lowest(rest)
        at += 1
        while self.bits.startswith(_LONG_RUN, at):
            at += len(_LONG_RUN)
        found = _NOT_ALL_SET.search(self.bits, at)
        if found is None:
            return self.base + 8 * len(self.bits)
        at = found.start()
        return self.base + 8 * at + _lowest(~self.bits[at] & 0xFF)

    def drop_before(self, number: int) -> None:
        """Let it begin with this number, up to which all are set."""
        assert self.base <= number <= self._first_unset, "what is not acknowledged is not forgotten"
        self.count -= number - self.base
        at, rest = divmod(number - self.base, 8)
        del self.bits[:at]
        if rest:
            self.bits[:] = (int.from_bytes(self.bits, "little") >> rest).to_bytes(len(self.bits), "little")
        self.base = number

    def to_bytes(self, end: int) -> bytes:
        """The bits of all numbers before `end`: equal for equal bits."""
        return normal_bits(self.bits, end - self.base)

    @classmethod
    def from_bytes(cls, base: int, data: bytes) -> Self:
        return cls(base, data)


def normal_bits(bits: bytes | bytearray, count: int) -> bytes:
    """The first `count` of these bits, as many bytes as they take, zeros where there are none."""
    size = (count + 7) >> 3
    data = bytes(bits[:size])
    if count & 7 and len(data) == size:
        data = data[:-1] + bytes((data[-1] & (1 << (count & 7)) - 1,))
    return data.ljust(size, b"\0")


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
