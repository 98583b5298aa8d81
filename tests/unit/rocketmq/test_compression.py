"""Compressed bodies, as public clients send and read them."""

from __future__ import annotations

import zlib

import pytest

from system_under_test.rocketmq.compression import MAX_BODY_BYTES, NotCompressed, compress_body, decompress_body

TEXT = b"again and " * 1000


def test_a_body_comes_back_and_says_how_it_was_compressed():
    body, sys_flag = compress_body(TEXT)
    assert len(body) < len(TEXT) / 10
    assert sys_flag == 0x301
    assert decompress_body(body, sys_flag) == TEXT


def test_producers_that_name_no_type_mean_zlib():
    assert decompress_body(zlib.compress(TEXT), 1) == TEXT
    assert decompress_body(TEXT, 0x300) == TEXT, "it is not compressed at all"


@pytest.mark.parametrize(
    ("body", "sys_flag", "why"),
    [
        (b"", 1, "cut"),
        (TEXT, 1, "not compressed by zlib"),
        (zlib.compress(TEXT)[:-1], 0x301, "cut"),
        (zlib.compress(bytes(MAX_BODY_BYTES + 1)), 0x301, "longer than"),
        (zlib.compress(TEXT), 0x101, "LZ4"),
        (zlib.compress(TEXT), 0x201, "Zstandard"),
        (zlib.compress(TEXT), 0x701, "type 7"),
    ],
    ids=["nothing", "text", "cut", "a bomb", "LZ4", "Zstandard", "unheard of"],
)
def test_what_cannot_be_made_whole_is_refused(body, sys_flag, why):
    with pytest.raises(NotCompressed, match=why):
        decompress_body(body, sys_flag)
