"""A partition's log is read in its order, ledger by ledger, and past what nobody has any more."""

from __future__ import annotations

import asyncio

import pytest

from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.errors import LedgerError
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, Quorums
from system_under_test.bookkeeper.partition.payload import encode_messages
from system_under_test.bookkeeper.partition.position import Position
from system_under_test.bookkeeper.partition.reading import Found, Readable, read_log

LAST = {7: 2, 9: 1}
"""Ledger -> its last entry; each entry has two messages, and ledger 9 takes entries."""


def payload_of(ledger: int, entry: int) -> bytes:
    return encode_messages([b"%d%d%d" % (ledger, entry, place) for place in (0, 1)])


class Entries:
    """`Entries` of which some are lost, two at once."""

    def __init__(self, *lost: tuple[int, int]) -> None:
        self.lost = lost

    async def read_all(self, metadata: LedgerMetadata, first: int, last: int) -> list[Entry | None]:
        ledger = metadata.ledger
        return [
            None if (ledger, entry) in self.lost else Entry(ledger, entry, entry - 1, 100, payload_of(ledger, entry))
            for entry in range(first, min(last, first + 1) + 1)
        ]


async def readable(ledger: int) -> Readable:
    fragment = Fragment(0, ("i1",), 0)
    metadata = LedgerMetadata(ledger=ledger, quorums=Quorums(ensemble=1, write=1, ack=1), fragments=(fragment,))
    return Readable(metadata, LAST[ledger], is_all=ledger == 7)


def read(at: Position, *lost: tuple[int, int]) -> Found:
    return asyncio.run(read_log(at.offset, (7, 9), Entries(*lost), readable))


def messages(found: Found) -> list[bytes]:
    return [message for _, message in found.messages]


@pytest.mark.parametrize(
    ("lost", "seen"),
    [
        ([], [b"700", b"701", b"710", b"711", b"720", b"721", b"900", b"901", b"910", b"911"]),
        ([(7, 1)], [b"700", b"701", b"720", b"721", b"900", b"901", b"910", b"911"]),
        ([(7, 1), (7, 2), (9, 0)], [b"700", b"701", b"910", b"911"]),
        ([(ledger, entry) for ledger in LAST for entry in range(3)], []),
    ],
)
def test_readers_go_on_behind_what_nobody_has(lost: list[tuple[int, int]], seen: list[bytes]) -> None:
    found = read(Position(0, 0), *lost)
    assert messages(found) == seen
    assert found.next_offset == Position(1, 2).offset


def test_offsets_show_that_something_was_there() -> None:
    places = [Position(0, 0, 1), Position(0, 2, 0), Position(0, 2, 1)]
    assert [offset for offset, _ in read(places[0], (7, 1)).messages][:3] == [place.offset for place in places]


def test_what_may_be_there_is_not_passed_over() -> None:
    class Undecided(Entries):
        async def read_all(self, metadata: LedgerMetadata, first: int, last: int) -> list[Entry | None]:
            raise LedgerError("too few bookies answered", is_definite=False)

    with pytest.raises(LedgerError):
        asyncio.run(read_log(0, (7, 9), Undecided(), readable))
