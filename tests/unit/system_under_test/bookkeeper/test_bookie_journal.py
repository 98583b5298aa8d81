"""A bookie's journal: what is durable comes back, a torn tail is cut, and rot before it stops the bookie."""

from __future__ import annotations

import random

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.bookkeeper.bookie.journal import Journal, Place
from system_under_test.bookkeeper.bookie.journal_record import (
    HEAD_BYTES,
    Kind,
    decode_record,
    encode_record,
    greatest_claim,
    lac_body,
    lac_of,
    ledger_body,
    ledger_of,
)
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt, StorageFailed
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.bookkeeper.bookie_machine import BookieMachine

ADD = Kind.ADD
BEGINNING = Place()


class JournalMachine:
    def __init__(self, loop: VirtualTimeLoop, seed: int = 1) -> None:
        self.machine = BookieMachine(loop, seed)

    def boot(self, start: Place = BEGINNING, *, is_required: bool = False) -> tuple[Journal, list[bytes]]:
        """A new process's journal, and the bodies that it found."""
        journal = Journal(self.machine.host().disk, "j")
        found = [record.body for record in journal.replay(start, is_required=is_required)]
        journal.begin()
        return journal, found

    def files(self) -> list[str]:
        return [path for path, _ in self.machine.store.files()]


def play(body: object) -> None:
    async def whole(loop: VirtualTimeLoop) -> None:
        await body(JournalMachine(loop))  # type: ignore[operator]

    simulate(whole)


def test_records_are_read_as_they_were_written_and_only_where_they_stand() -> None:
    data, checksum = encode_record(ADD, b"body", 100, 90, 7)
    record = decode_record(data, 0, 100)
    assert (record.kind, record.body, record.durable, record.before) == (ADD, b"body", 90, 7)
    assert (record.checksum, record.size) == (checksum, len(data))
    with pytest.raises(RecordInvalid):
        decode_record(data, 0, 101)
    for at in range(len(data)):
        with pytest.raises(RecordInvalid):
            decode_record(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :], 0, 100)
        with pytest.raises(RecordInvalid):
            decode_record(data[:at], 0, 100)
    assert ledger_of(ledger_body(7)) == 7
    assert lac_of(lac_body(7, -1)) == (7, -1)
    for read in (ledger_of, lac_of):
        with pytest.raises(RecordInvalid):
            read(b"abc")


def test_the_greatest_claim_is_found_behind_whatever_is_harmed() -> None:
    one, _ = encode_record(ADD, b"x" * 30, 1000, 900, 0)
    other, _ = encode_record(ADD, b"y" * 30, 1000 + len(one), 950, 0)
    both = one + other
    assert greatest_claim(both, 0, 1000) == 950
    assert greatest_claim(both[: len(one)], 0, 1000) == 900
    assert greatest_claim(both, 1, 1000) == 950
    assert greatest_claim(both, 0, 1001) == 0, "they do not stand there"
    harmed = both[:10] + b"?" + both[11:]
    assert greatest_claim(harmed, 0, 1000) == 950


def test_a_journal_goes_on_over_files_and_lets_old_ones_go() -> None:
    async def body(disk: JournalMachine) -> None:
        journal, found = disk.boot()
        assert found == []
        places = []
        for number in range(9):
            if number % 3 == 0:
                places.append(journal.roll())
            journal.append(ADD, b"%d" % number)
        assert await journal.flush() == journal.max_offset == journal.flushed_offset
        assert len(disk.files()) == 3
        assert disk.boot()[1] == [b"%d" % number for number in range(9)]
        assert disk.boot(places[1], is_required=True)[1] == [b"%d" % number for number in range(3, 9)]
        journal, _ = disk.boot()
        journal.remove_before(places[2].position)
        assert disk.boot(places[2], is_required=True)[1] == [b"6", b"7", b"8"]
        with pytest.raises(StorageCorrupt, match=r"j/0+, with which the journal begins, is gone"):
            disk.boot(is_required=True)

    play(body)


def test_a_torn_tail_is_cut_and_what_is_durable_stays() -> None:
    for seed in range(60):

        async def body(loop: VirtualTimeLoop, seed: int = seed) -> None:
            draw = random.Random(seed)
            disk = JournalMachine(loop, seed)
            journal, _ = disk.boot()
            bodies, durable = [], 0
            for number in range(draw.randrange(1, 30)):
                bodies.append(b"%d" % number + bytes(draw.randrange(60)))
                journal.append(ADD, bodies[-1])
                if draw.random() < 0.2:
                    await journal.flush()
                    durable = len(bodies)
                if draw.random() < 0.2:
                    journal.roll()
            disk.machine.power_off()
            _, found = disk.boot()
            assert found == bodies[: len(found)]
            assert len(found) >= durable

        simulate(body)


def durable_records(journal: Journal, count: int) -> list[int]:
    """Their ends."""
    return [journal.append(ADD, bytes(20)) for _ in range(count)]


@pytest.mark.parametrize("at", [0, 5, 12, HEAD_BYTES - 1, HEAD_BYTES + 3])
def test_rot_in_the_middle_stops_the_bookie_with_file_and_offset(at: int) -> None:
    async def body(disk: JournalMachine) -> None:
        journal, _ = disk.boot()
        ends = durable_records(journal, 3)
        await journal.flush()
        durable_records(journal, 1)
        await journal.flush()
        [path] = disk.files()
        assert disk.machine.store.rot(path, ends[0] + at)
        with pytest.raises(StorageCorrupt, match=rf"^{path} is harmed at offset {ends[0]}, "):
            disk.boot()

    play(body)


def test_a_lost_file_or_end_of_a_file_is_noticed_by_what_later_files_claim() -> None:
    async def body(disk: JournalMachine) -> None:
        journal, _ = disk.boot()
        ends = durable_records(journal, 2)
        await journal.flush()
        journal.roll()
        durable_records(journal, 2)
        await journal.flush()
        journal.roll()
        durable_records(journal, 1)
        await journal.flush()
        image = disk.machine.store.image()
        first, second, third = sorted(image)
        disk.machine.store.put_back({path: data for path, data in image.items() if path != second})
        with pytest.raises(StorageCorrupt, match=rf"{first} is harmed at offset {ends[1]}, "):
            disk.boot()
        disk.machine.store.put_back({**image, first: image[first][: ends[0] + 3]})
        with pytest.raises(StorageCorrupt, match=rf"{first} is harmed at offset {ends[0]}, "):
            disk.boot()
        disk.machine.store.put_back(image)
        assert len(disk.boot()[1]) == 5
        assert third

    play(body)


def test_rot_in_the_last_records_cannot_be_told_from_a_torn_tail() -> None:
    async def body(disk: JournalMachine) -> None:
        journal, _ = disk.boot()
        ends = durable_records(journal, 3)
        await journal.flush()
        [path] = disk.files()
        assert disk.machine.store.rot(path, ends[1] + 30)
        assert len(disk.boot()[1]) == 2

    play(body)


def test_a_record_that_follows_another_history_is_not_taken() -> None:
    async def body(disk: JournalMachine) -> None:
        journal, _ = disk.boot()
        journal.append(ADD, b"a")
        stale = disk.machine.store.image()
        journal, _ = disk.boot(journal.end)
        journal.append(ADD, b"b")
        later = disk.machine.store.image()
        first, second = sorted(later)
        other, _ = encode_record(ADD, b"c", 0, 0, 0)
        assert len(other) == len(stale[first])
        disk.machine.store.put_back({first: other, second: later[second]})
        assert disk.boot()[1] == [b"c"]

    play(body)


def test_a_full_or_failing_disk_is_refused() -> None:
    async def body(disk: JournalMachine) -> None:
        journal, _ = disk.boot()
        journal.append(ADD, b"a")
        disk.machine.room(3)
        with pytest.raises(DiskFull):
            journal.append(ADD, b"b")
        disk.machine.room(None)
        journal.append(ADD, b"c")
        disk.machine.store.faults.fsync_error_probability = 1.0
        with pytest.raises(StorageFailed):
            await journal.flush()
        disk.machine.store.faults.fsync_error_probability = 0.0
        with pytest.raises(StorageFailed):
            await journal.flush()
        with pytest.raises(StorageFailed):
            journal.append(ADD, b"d")
        assert disk.boot()[1] == [b"a", b"c"]

    play(body)
