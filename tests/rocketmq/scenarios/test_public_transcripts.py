"""What stock clients of RocketMQ say and must hear, byte by byte, in both serializations of headers.

The transcripts in `public_transcripts/` were written from the public protocol, not by this system's encoders. A line
`== what, at address` begins an exchange; lines with `>` are what the client writes, such with `<` what it then reads.
Hexadecimal digits are bytes, `??` is any one byte (of a time, a port, or the digits of a CRC over them), what stands
between backquotes is text, and what stands behind `  # ` is for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rocketmq.scenarios.broker_cluster import Cluster, play

TRANSCRIPTS = Path(__file__).parent / "public_transcripts"
TOKEN = re.compile(r"`([^`]*)`|([0-9a-f?]+)|\s+")
PATTERNS = {"json": 18, "binary": 18, "compressed": 3}
"""Transcript -> of how many requests it tells."""


@dataclass
class Exchange:
    title: str
    address: str
    asked: str = ""
    answered: str = ""


def digits(line: str) -> str:
    """Two hexadecimal digits, or ??, a byte."""
    found, at = "", 0
    while at < len(line):
        match = TOKEN.match(line, at)
        assert match is not None, f"neither bytes nor text: {line[at:]!r}"
        found += match[1].encode().hex() if match[1] is not None else match[2] or ""
        at = match.end()
    assert len(found) % 2 == 0, f"half a byte: {line!r}"
    return found


def exchanges(name: str) -> list[Exchange]:
    found: list[Exchange] = []
    for line in (TRANSCRIPTS / f"{name}.txt").read_text().splitlines():
        if line.startswith("== "):
            title, _, address = line[3:].partition(", at ")
            found.append(Exchange(title, address))
        elif line.startswith("> "):
            found[-1].asked += digits(line[2:].partition("  # ")[0])
        elif line.startswith("< "):
            found[-1].answered += digits(line[2:].partition("  # ")[0])
    return found


def differs_at(expected: str, got: bytes) -> str | None:
    """Where and how bytes differ from what is expected; None if they do not."""
    for number in range(max(len(expected) // 2, len(got))):
        wanted, byte = expected[2 * number : 2 * number + 2], got[number : number + 1]
        if wanted != byte.hex() and (wanted != "??" or not byte):
            before = got[max(0, number - 40) : number]
            return f"byte {number}, after {before!r}: expected {wanted or 'the end'}, got {got[number : number + 40]!r}"
    return None


@pytest.mark.parametrize("name", PATTERNS)
def test_a_stock_client_hears_what_the_public_protocol_says(name: str) -> None:
    async def story(cluster: Cluster) -> None:
        for exchange in exchanges(name):
            answer = await cluster.converse(exchange.address, bytes.fromhex(exchange.asked))
            difference = differs_at(exchange.answered, answer)
            assert difference is None, f"{exchange.title}: {difference}"

    play(story, brokers=1)


def test_the_transcripts_tell_of_every_kind_of_request() -> None:
    for name, requests in PATTERNS.items():
        told = exchanges(name)
        assert len(told) == requests
        for exchange in told:
            for frame in (exchange.asked, exchange.answered):
                assert int(frame[:8], 16) == len(frame) // 2 - 4, f"{exchange.title}: the length is wrong"


def test_a_byte_that_differs_is_noticed() -> None:
    assert differs_at("0102??", b"\x01\x02\x07") is None
    assert differs_at("0102??", b"\x01\x03\x07") == r"byte 1, after b'\x01': expected 02, got b'\x03\x07'"
    assert "expected ??" in (differs_at("0102??", b"\x01\x02") or "")
    assert "expected the end" in (differs_at("0102", b"\x01\x02\x03") or "")
