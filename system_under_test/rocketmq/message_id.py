"""The id that a broker gives a message: the address of the broker that stored it, and the message's place in the log.

Addresses are 8 bytes: four of IPv4 and four of a port. Where a host has a name, of which a message has no room, four
bytes are made of the name, in the range of addresses that lead nowhere but to the asking machine itself.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address
from zlib import crc32


@lru_cache(maxsize=1024)
def host_bytes(address: str) -> bytes:
    """Of `name:port` or `ip:port`; a port that is none counts as 0."""
    name, _, port = address.rpartition(":")
    try:
        ip = IPv4Address(name).packed
    except AddressValueError:
        ip = b"\x7f" + crc32(name.encode()).to_bytes(4, "big")[1:]
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len("65535") else 0
    return ip + number.to_bytes(4, "big")


def message_id(store_host: bytes, offset: int) -> str:
    """32 hexadecimal digits."""
    return f"{store_host.hex()}{offset:016x}".upper()


def parse_message_id(text: str) -> tuple[bytes, int]:
    """The store's host and the offset. Raises ValueError."""
    if len(text) != 32:
        raise ValueError(f"a message's id has 32 digits, got {text[:64]!r}")
    data = bytes.fromhex(text)
    if len(data) != 16:
        raise ValueError(f"a message's id consists of digits alone, got {text!r}")
    return data[:8], int.from_bytes(data[8:], "big", signed=True)
