"""Replicas report the same checksums of the same bytes, however these came, and whatever the log held before."""

from __future__ import annotations

import random
from zlib import crc32

from system_under_test.storage.log_digest import LogDigest

PIECE = 16


def pieces_of(log: bytes, start: int = 0) -> list[tuple[int, int, int]]:
    first = -(-start // PIECE) * PIECE
    ends = range(first + PIECE, start + len(log) + 1, PIECE)
    return [(end - PIECE, end, crc32(log[end - PIECE - start : end - start])) for end in ends]


def test_the_same_pieces_are_reported_however_the_bytes_are_cut():
    draw = random.Random(1)
    for _ in range(300):
        log = draw.randbytes(draw.randrange(120))
        pieces: list[tuple[int, int, int]] = []
        digest = LogDigest(lambda *piece, pieces=pieces: pieces.append(piece), PIECE)
        offset = 0
        while offset < len(log):
            data = log[offset : offset + draw.randrange(1, 50)]
            digest.appended(offset, data)
            offset += len(data)
        assert pieces == pieces_of(log)


def test_a_log_that_was_cut_goes_on_in_the_midst_of_a_piece():
    draw = random.Random(2)
    for _ in range(300):
        log = draw.randbytes(100)
        cut = draw.randrange(100)
        pieces: list[tuple[int, int, int]] = []
        digest = LogDigest(lambda *piece, pieces=pieces: pieces.append(piece), PIECE)
        digest.appended(0, draw.randbytes(draw.randrange(60)))
        pieces.clear()
        digest.start_at(cut, lambda offset, length, log=log: log[offset : offset + min(length, 5)])
        digest.appended(cut, log[cut:])
        assert pieces == [piece for piece in pieces_of(log) if piece[1] > cut]


def test_a_piece_whose_beginning_is_gone_is_passed_over():
    pieces: list[tuple[int, int, int]] = []
    digest = LogDigest(lambda *piece: pieces.append(piece), PIECE)
    log = bytes(range(100))
    digest.start_at(24, lambda offset, length: b"" if offset < 24 else log[offset - 24 :][:length])
    digest.appended(24, log)
    assert pieces == pieces_of(log, 24)
    assert pieces[0][0] == 32
