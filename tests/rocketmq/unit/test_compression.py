"""Compressed bodies, as public clients send and read them."""

from __future__ import annotations

import gzip
import zlib

import pytest

from system_under_test.rocketmq import compression
from system_under_test.rocketmq.compression import (
    MAX_BODY_BYTES,
    Compression,
    NotCompressed,
    NotSpoken,
    compress_body,
    decompress_body,
)

TEXT = b"again and " * 1000
LZ4_BY_HAND = bytes.fromhex("04224d18 607073 0f000000 69 616761696e20 0600 50 6761696e20 00000000")
"""`again ` four times: a block of six literal bytes, thirteen copied from six before, five literal bytes."""
ZSTD_BY_HAND = bytes.fromhex("28b52ffd 00 58 c30000 61")
"""A frame without its size, whose only block says: 24 times `a`."""


@pytest.mark.parametrize(("how", "flags"), [("LZ4", 0x101), ("ZSTD", 0x201), ("ZLIB", 0x301)])
def test_a_body_comes_back_and_says_how_it_was_compressed(how, flags):
    body, sys_flag = compress_body(TEXT, Compression[how])
    assert len(body) < len(TEXT) / 10
    assert sys_flag == flags
    assert decompress_body(body, sys_flag) == TEXT


def test_frames_that_were_made_by_hand_are_read():
    assert decompress_body(LZ4_BY_HAND, 0x101) == b"again " * 4
    assert decompress_body(ZSTD_BY_HAND, 0x201) == b"a" * 24


def test_producers_that_name_no_type_mean_zlib_or_gzip():
    assert decompress_body(zlib.compress(TEXT), 1) == TEXT
    assert decompress_body(gzip.compress(TEXT), 1) == TEXT
    assert decompress_body(TEXT, 0x300) == TEXT, "it is not compressed at all"


@pytest.mark.parametrize(("how", "missing"), [("LZ4", "lz4"), ("ZSTD", "backports.zstd")])
def test_without_a_package_a_body_is_refused_by_name(monkeypatch, how, missing):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(compression.importlib, "import_module", absent)
    with pytest.raises(NotSpoken, match=missing):
        compress_body(TEXT, Compression[how])
    with pytest.raises(NotSpoken, match=missing):
        decompress_body(TEXT, Compression[how] << 8 | 1)
    assert decompress_body(*compress_body(TEXT)) == TEXT, "zlib comes with Python"


@pytest.mark.parametrize(
    ("body", "sys_flag", "why"),
    [
        (b"", 1, "cut"),
        (TEXT, 1, "not compressed by zlib"),
        (zlib.compress(TEXT)[:-1], 0x301, "cut"),
        (zlib.compress(bytes(MAX_BODY_BYTES + 1), 1), 0x301, "longer than"),
        (zlib.compress(TEXT), 0x101, "not compressed by LZ4"),
        (zlib.compress(TEXT), 0x201, "not compressed by Zstandard"),
        (LZ4_BY_HAND[:-1], 0x101, "cut"),
        (ZSTD_BY_HAND[:-1], 0x201, "cut"),
        (compress_body(bytes(MAX_BODY_BYTES + 1), Compression.LZ4)[0], 0x101, "longer than"),
        (compress_body(bytes(MAX_BODY_BYTES + 1), Compression.ZSTD)[0], 0x201, "longer than"),
        (zlib.compress(TEXT), 0x701, "type 7"),
    ],
    ids=[
        "nothing",
        "text",
        "cut",
        "a bomb",
        "no LZ4",
        "no Zstandard",
        "LZ4, cut",
        "Zstandard, cut",
        "a bomb of LZ4",
        "a bomb of Zstandard",
        "unheard of",
    ],
)
def test_what_cannot_be_made_whole_is_refused(body, sys_flag, why):
    with pytest.raises(NotCompressed, match=why):
        decompress_body(body, sys_flag)
