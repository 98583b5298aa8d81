"""What answers of bookies are worth to who reads or recovers, and in which order bookies are asked and chosen."""

from __future__ import annotations

import pytest

from system_under_test.bookkeeper.entry import NOTHING, Digest
from system_under_test.bookkeeper.ledger.event import ReadAnswered, ReadEntry, Reply
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.ledger.reader import ReadEnded
from system_under_test.bookkeeper.ledger.suspects import Suspects
from system_under_test.bookkeeper.ledger.tally import EntryTally, LacTally, Presence
from system_under_test.bookkeeper.ledger.verification import Verification
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import LEDGER, FakeBookie, metadata_of
from tests.unit.system_under_test.bookkeeper.ledger.ledger_stage import Stage, metadata, to

WORDS = {
    "+": Reply.OK,
    "-": Reply.NO_SUCH_ENTRY,
    "l": Reply.NO_SUCH_LEDGER,
    "?": Reply.SILENT,
    "u": Reply.UNKNOWN,
    "c": Reply.CORRUPT,
    "g": Reply.GONE,
}


@pytest.mark.parametrize(
    ("quorums", "replies", "presence"),
    [
        ("3/3/2", "", Presence.OPEN),
        ("3/3/2", "-", Presence.OPEN),
        ("3/3/2", "--", Presence.ABSENT),
        ("3/3/2", "l-", Presence.ABSENT),
        ("3/3/2", "-+", Presence.FOUND),
        ("3/3/2", "c?", Presence.OPEN),
        ("3/3/2", "-c?", Presence.UNDECIDED),
        ("3/3/2", "-u?", Presence.UNDECIDED),
        ("3/3/2", "-cc", Presence.UNDECIDED),
        ("3/3/2", "-g", Presence.OPEN),
        ("3/3/2", "-g?", Presence.UNDECIDED),
        ("3/3/2", "-g+", Presence.FOUND),
        ("3/3/2", "-gg", Presence.ABSENT),
        ("3/3/2", "ggg", Presence.ABSENT),
        ("3/2/2", "-", Presence.ABSENT),
        ("3/3/1", "--", Presence.OPEN),
        ("3/3/1", "---", Presence.ABSENT),
    ],
)
def test_an_entry_is_absent_only_where_it_cannot_have_been_acknowledged_or_nobody_has_it(
    quorums: str, replies: str, presence: Presence
) -> None:
    metadata = metadata_of(quorums)
    bookies = bookies_of(metadata, 0)
    tally = EntryTally(bookies, metadata)
    for bookie, word in zip(bookies, replies, strict=False):
        tally.take(bookie, WORDS[word])
    assert tally.presence is presence


@pytest.mark.parametrize(
    ("quorums", "replies", "is_covered"),
    [
        ("3/3/2", "++", True),
        ("3/3/2", "+?", False),
        ("3/3/2", "g+", True),
        ("3/3/2", "l-", True),
        ("3/3/2", "u+", False),
        ("3/3/2", "c+", False),
        ("3/2/2", "++", True),
        ("3/2/2", "+??", False),
        ("4/3/2", "++?", False),
        ("4/3/2", "++?+", True),
        ("5/2/2", "?+?+", False),
        ("5/2/2", "?+?++", True),
        ("3/3/1", "++", False),
        ("3/3/1", "+++", True),
    ],
)
def test_a_ledger_is_covered_where_in_no_write_set_an_ack_quorum_is_left(
    quorums: str, replies: str, is_covered: bool
) -> None:
    metadata = metadata_of(quorums)
    tally = LacTally(metadata, metadata.last_fragment)
    for bookie, word in zip(metadata.last_fragment.ensemble, replies, strict=False):
        tally.take(bookie, WORDS[word], 3)
    assert tally.is_covered is is_covered
    assert tally.lac == (3 if "+" in replies else NOTHING)


def written(parts: LedgerParts) -> Stage:
    stage = Stage(metadata_of("4/3/2"), parts=parts)
    stage.append(2)
    stage.deliver()
    return stage


def read(stage: Stage, entry: int, silent: tuple[str, ...] = ()) -> tuple[list[str], ReadEnded]:
    """Who was asked, and what came of it."""
    reading = stage.parts.make_read(stage.store.metadata, entry)
    asked: list[str] = []
    came: ReadEntry | ReadEnded = reading.begin()
    while not isinstance(came, ReadEnded):
        assert not came.fences
        asked.append(came.bookie)
        reply, data = stage.bookies[came.bookie].read(entry, fences=False)
        is_silent = came.bookie in silent
        came = reading.step(ReadAnswered(came.bookie, entry, Reply.SILENT if is_silent else reply, data))
    return asked, came


def test_a_reader_asks_the_next_bookie_where_one_does_not_help() -> None:
    stage = written(LedgerParts())
    stage.bookies["b2"].harm(1)
    asked, ended = read(stage, 1, silent=("b3",))
    assert asked == ["b2", "b3", "b4"]
    assert ended.presence is Presence.FOUND and ended.entry is not None
    assert (ended.entry.entry, ended.entry.payload, ended.entry.length) == (1, b"x", 2)


def test_a_reader_takes_an_entry_for_absent_only_where_all_say_so() -> None:
    stage = written(LedgerParts())
    assert read(stage, 2) == (["b3", "b4", "b1"], ReadEnded(Presence.ABSENT))
    stage.bookies["b3"].entries[2] = b"harmed"
    assert read(stage, 2)[1] == ReadEnded(Presence.UNDECIDED, is_harmed=True)
    assert read(stage, 2, silent=("b4",))[1] == ReadEnded(Presence.UNDECIDED)


def test_another_entry_is_as_bad_as_a_harmed_one() -> None:
    verification = Verification(LEDGER, Digest())
    data = verification.seal(3, 2, 10, b"payload")
    answered = [ReadAnswered("b1", entry, Reply.OK, data) for entry in (3, 4)]
    assert [verification.reply(each) for each in answered] == [Reply.OK, Reply.CORRUPT]
    assert Verification(LEDGER + 1, Digest()).reply(answered[0]) is Reply.CORRUPT


def test_a_bookie_in_limbo_counts_as_one_that_has_lost_the_entry_once_it_is_fenced() -> None:
    """b1 and b2 may have lost entry 0, and b3 never had it: nobody has it, and the ledger can be closed."""
    for b3_is_silent, last in ((False, "R has recovered closed at -1 0:b1+b2+b3"), (True, GAVE_UP)):
        stage = Stage(metadata_of("3/3/2"))
        stage.bookies |= {name: Limbo() for name in ("b1", "b2")}
        stage.recovery("R")
        stage.deliver(metadata)
        if b3_is_silent:
            stage.lose(to("b3"))
        stage.deliver(to("b1", "b2"))
        if b3_is_silent:
            stage.lose(to("b3"))
        stage.deliver()
        assert stage.transcript[-1] == last


def test_a_bookie_in_limbo_is_known_to_be_fenced_also_where_it_answered_after_enough_others() -> None:
    """With an ack quorum of three the first answer says that nothing is acknowledged any more."""
    stage = Stage(metadata_of("3/3/3"))
    stage.bookies |= {name: Limbo() for name in ("b1", "b2", "b3")}
    stage.recovery("R")
    stage.deliver()
    assert stage.transcript[-1] == "R has recovered closed at -1 0:b1+b2+b3"


GAVE_UP = "R gives up: too few bookies answered"


class Limbo(FakeBookie):
    def read_lac(self) -> tuple[Reply, int]:
        super().read_lac()
        return Reply.OK, NOTHING

    def read(self, entry: int, *, fences: bool) -> tuple[Reply, bytes]:
        reply, data = super().read(entry, fences=fences)
        return (Reply.UNKNOWN if reply.is_no else reply), data


def test_suspects_are_chosen_last_and_until_they_serve_or_come_back() -> None:
    suspects = Suspects()
    suspects.writable(("b4", "b5", "b1"))
    assert suspects.replace(("b1", "b2"), {"b2"}, in_need=False) == ("b1", "b4")
    suspects.has_failed("b4")
    assert suspects.replace(("b1", "b2"), {"b2"}, in_need=False) == ("b1", "b5")
    suspects.has_failed("b5")
    assert suspects.replace(("b1", "b2"), {"b2"}, in_need=False) is None
    assert suspects.replace(("b1", "b2"), {"b1", "b2"}, in_need=True) == ("b4", "b5")
    suspects.has_served("b5")
    assert suspects.replace(("b1", "b2"), {"b1", "b2"}, in_need=False) == ("b5", "b2")
    suspects.writable(("b1",))
    suspects.writable(("b1", "b4"))
    assert suspects.replace(("b1", "b2"), {"b2"}, in_need=False) == ("b1", "b4")
