"""One body of promises for every disk of ours: what survives, what fails, what is damaged."""

from __future__ import annotations

import errno
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.environments.disk.durability import Inode, NameJournal, NameOrder
from harness.environments.fuse.mounted import MountedVolume, require_mountable
from harness.environments.impairment import (
    BitRot,
    Corruption,
    DiskErrors,
    FailingFsync,
    FullDisk,
    MisdirectedWrites,
    SlowDisk,
)
from harness.errors import HarnessError
from harness.seed import Seed
from tests.conformance.disks import Disk, Mounted, Simulated

LOSSES = 60
"""So many times power is lost where something is to come about among them."""


@pytest.fixture(params=["simulated", "mounted"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "simulated":
        yield Simulated(1729)
        return
    try:
        require_mountable()
    except HarnessError as error:
        pytest.skip(str(error))
    volume = MountedVolume("n", tmp_path, Seed(1729))
    try:
        yield Mounted(volume)
    finally:
        volume.end()


def error_of(call: Callable[[], object]) -> int | None:
    """The number of the error with which it fails; None where it does not."""
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_what_was_fsynced_survives_a_loss_of_power(disk: Disk) -> None:
    for number in range(20):
        path = f"log/{number}"
        disk.append(path, b"durable ")
        disk.fsync(path)
        disk.write(path, 0, b"D")
        disk.append(path, b"bytes")
        disk.fsync(path)
        disk.lose_power()
        assert disk.content(path) == b"Durable bytes"


def test_of_what_was_not_fsynced_any_part_may_be_gone(disk: Disk) -> None:
    tails: set[bytes] = set()
    for number in range(LOSSES):
        path = f"log/{number}"
        disk.append(path, b"0000")
        disk.fsync(path)
        disk.append(path, b"abcde")
        disk.append(path, b"fghij")
        lost = disk.lose_power()
        content = disk.content(path)
        assert content is not None and content.startswith(b"0000")
        assert all(byte in (0, b"abcdefghij"[place]) for place, byte in enumerate(content[4:]))
        tails.add(content[4:])
        kept = len(content[4:].replace(b"\0", b""))
        assert lost.startswith(f"{10 - kept} unsynced bytes"), "the loss of power says what it took"
    assert {b"", b"abcdefghij"} <= tails
    assert any(0 < len(tail) < 10 and 0 not in tail for tail in tails), "a tail torn at some byte"
    assert any(b"\0" in tail for tail in tails), "a lost middle that reads as zeros"


def test_what_is_seen_is_what_was_written_whether_or_not_it_is_durable(disk: Disk) -> None:
    disk.write("file", 10, b"behind a hole")
    assert disk.content("file") == bytes(10) + b"behind a hole"
    disk.truncate("file", 12)
    disk.append("file", b"!")
    assert disk.content("file") == bytes(10) + b"be!"


def test_a_truncation_is_durable_after_an_fsync_or_may_be_gone(disk: Disk) -> None:
    seen = set()
    for number in range(LOSSES):
        path = f"log/{number}"
        disk.append(path, b"long ago")
        disk.fsync(path)
        disk.truncate(path, 4)
        disk.fsync(path)
        disk.truncate(path, 2)
        disk.lose_power()
        seen.add(disk.content(path))
    assert seen == {b"long", b"lo"}


def test_a_file_that_was_never_fsynced_may_be_gone_altogether(disk: Disk) -> None:
    there = set()
    for number in range(LOSSES):
        disk.append(f"new/{number}", b"x")
        disk.lose_power()
        there.add(disk.content(f"new/{number}") is not None)
    assert there == {True, False}


def test_a_removed_file_may_come_back(disk: Disk) -> None:
    there = set()
    for number in range(LOSSES):
        path = f"log/{number}"
        disk.append(path, b"x")
        disk.fsync(path)
        disk.remove(path)
        assert disk.content(path) is None
        disk.lose_power()
        there.add(disk.content(path))
    assert there == {None, b"x"}


def test_after_a_rename_a_name_holds_the_old_content_or_the_new_and_nothing_else(disk: Disk) -> None:
    seen = set()
    for number in range(LOSSES):
        path, fresh = f"log/{number}", f"log/{number}.new"
        disk.append(path, b"old")
        disk.fsync(path)
        disk.append(fresh, b"new")
        disk.fsync(fresh)
        disk.rename(fresh, path, durably=False)
        disk.lose_power()
        seen.add((disk.content(path), disk.content(fresh)))
    assert seen == {(b"old", b"new"), (b"new", None)}


def test_a_rename_that_was_made_durable_stays(disk: Disk) -> None:
    for number in range(20):
        path, fresh = f"log/{number}", f"log/{number}.new"
        disk.append(path, b"old")
        disk.fsync(path)
        disk.append(fresh, b"new")
        disk.fsync(fresh)
        disk.rename(fresh, path, durably=True)
        disk.lose_power()
        assert (disk.content(path), disk.content(fresh)) == (b"new", None)


def test_of_two_renames_one_after_the_other_the_file_has_one_name(disk: Disk) -> None:
    seen = set()
    for number in range(LOSSES):
        names = [f"log/{number}.{step}" for step in "abc"]
        disk.append(names[0], b"x")
        disk.fsync(names[0])
        for source, target in itertools.pairwise(names):
            disk.rename(source, target, durably=False)
        disk.lose_power()
        seen.add("".join(name[-1] for name in names if disk.content(name) is not None))
    assert seen == {"a", "b", "c"}


def test_an_fsync_that_fails_makes_nothing_durable_and_neither_does_the_next(disk: Disk) -> None:
    disk.append("log", b"kept")
    disk.fsync("log")
    disk.append("log", b"lost")
    failing = FailingFsync(most=1)
    disk.impair(failing)
    assert error_of(lambda: disk.fsync("log")) == errno.EIO
    disk.fsync("log")
    assert disk.content("log") == b"keptlost"
    assert disk.relieve(failing) == " (1 calls failed: fsync log 4 bytes)"
    disk.append("log", b"!")
    disk.fsync("log")
    disk.lose_power()
    assert disk.content("log") == b"kept\0\0\0\0!"


def test_reads_and_writes_fail_with_an_error_of_the_device(disk: Disk) -> None:
    disk.append("log", b"text")
    disk.fsync("log")
    for errors, call in (
        (DiskErrors(reads=1.0, writes=0.0), lambda: disk.content("log")),
        (DiskErrors(reads=0.0, writes=1.0), lambda: disk.append("log", b"more")),
    ):
        disk.impair(errors)
        assert error_of(call) == errno.EIO
        assert disk.relieve(errors).startswith(" (1 calls failed: ")
    assert disk.content("log") == b"text"


def test_a_full_disk_takes_just_what_there_is_room_for(disk: Disk) -> None:
    disk.append("log", b"before")
    full = FullDisk(room_bytes=5)
    disk.impair(full)
    disk.append("log", b"12345")
    disk.write("log", 0, b"B")
    for call in (lambda: disk.append("log", b"6"), lambda: disk.truncate("log", 100)):
        assert error_of(call) == errno.ENOSPC
    disk.truncate("log", 8)
    disk.append("log", b"345")
    assert disk.content("log") == b"Before12345"
    assert disk.relieve(full) == " (2 calls failed: write log 11+1, truncate log 100)"
    disk.append("log", b"6")


def test_an_fsync_takes_longer_while_the_disk_is_slow(disk: Disk) -> None:
    disk.append("log", b"x")
    disk.impair(SlowDisk(factor=500))
    assert disk.fsync("log") > 0.1
    disk.relieve(SlowDisk(factor=500))


def test_a_misdirected_write_takes_the_place_of_the_one_before_it_and_its_own_stays_as_it_was(disk: Disk) -> None:
    disk.append("log", b"zero")
    misdirected = MisdirectedWrites(one_in=1, draw=3)
    disk.impair(misdirected)
    for record in (b"one!", b"two!", b"longer"):
        disk.append("log", record)
    disk.write("log", 0, b"LONGER")
    assert disk.content("log") == b"zerotwo!" + bytes(4) + b"LONGER"
    assert disk.relieve(misdirected) == " (2 writes misdirected: write log 8+4 to 4, write log 0+6 to 12)"
    disk.append("log", b"behind")
    disk.fsync("log")
    disk.lose_power()
    assert disk.content("log") == b"zerotwo!" + bytes(4) + b"LONGERbehind"


def test_a_misdirected_write_makes_no_file_longer_than_the_program_does(disk: Disk) -> None:
    misdirected = MisdirectedWrites(one_in=1, draw=3)
    disk.impair(misdirected)
    disk.write("log", 100, b"one!")
    disk.truncate("log", 102)
    disk.write("log", 0, b"two!")
    assert disk.content("log") == b"two!" + bytes(96) + b"on"
    assert disk.relieve(misdirected) == " (0 writes misdirected)"


def test_the_draw_says_which_writes_of_which_share_are_misdirected(disk: Disk) -> None:
    def struck(path: str, draw: int) -> list[int]:
        misdirected = MisdirectedWrites(one_in=5, draw=draw)
        disk.impair(misdirected)
        for number in range(1, 201):
            disk.append(path, bytes([number]))
        disk.relieve(misdirected)
        content = disk.content(path)
        assert content is not None and len(content) == 200
        return [place for place, byte in enumerate(content) if not byte]

    first = struck("a", 1)
    assert 20 < len(first) < 70
    assert struck("b", 1) == first != struck("c", 2)


def test_bits_rot_on_the_platter_and_in_what_is_seen(disk: Disk) -> None:
    disk.append("a", bytes(100))
    disk.fsync("a")
    words = disk.rot(BitRot(bits=3, draw=7))
    seen = disk.content("a")
    assert seen is not None and len(words.split(", ")) == 3
    assert sum(byte.bit_count() for byte in seen) in (1, 3), "two flips of one bit are none"
    disk.lose_power()
    assert disk.content("a") == seen


def test_one_bit_in_so_many_bytes_is_flipped_in_the_files_that_a_pattern_names(disk: Disk) -> None:
    for path in ("store/a.blk", "store/deep/er/b.blk", "store/c.idx", "b.blk"):
        disk.append(path, bytes(10_000))
        disk.fsync(path)
    words = disk.rot(Corruption(pattern="store/**/*.blk", bytes_per_bit=100, draw=1))
    assert words.startswith("200 bits in 20000 bytes of 2 files: bit ")
    flipped = {
        path: sum(byte.bit_count() for byte in disk.content(path) or b"")
        for path in ("store/a.blk", "store/deep/er/b.blk", "store/c.idx", "b.blk")
    }
    assert flipped["store/c.idx"] == flipped["b.blk"] == 0
    assert flipped["store/a.blk"] > 50 and flipped["store/deep/er/b.blk"] > 50
    assert disk.rot(Corruption(pattern="store/*.blk", bytes_per_bit=10**9, draw=1)).startswith("1 bits in 10000 bytes")
    assert disk.rot(Corruption(pattern="*.idx", bytes_per_bit=1, draw=1)) == "", "there is none in that folder"


def test_the_same_draw_strikes_the_same_bits(disk: Disk) -> None:
    disk.append("a", bytes(1000))
    disk.fsync("a")
    first = disk.rot(BitRot(bits=5, draw=3))
    assert disk.rot(BitRot(bits=5, draw=3)) == first
    assert disk.content("a") == bytes(1000), "flipped twice"


def test_files_lose_their_ends_for_good(disk: Disk) -> None:
    disk.append("a", b"x" * 1000)
    disk.fsync("a")
    words = disk.cut_short(1, 5)
    content = disk.content("a")
    assert content is not None and words == f"a lost {1000 - len(content)} of 1000 bytes"
    disk.lose_power()
    assert disk.content("a") == content


def test_an_older_copy_takes_the_place_of_everything_durably(disk: Disk) -> None:
    disk.append("old", b"before")
    disk.append("folder/old", b"deep")
    disk.copy()
    disk.append("old", b" and after")
    disk.append("new", b"after")
    disk.remove("folder/old")
    disk.put_back(copied=True)
    for _ in range(5):
        assert [disk.content(path) for path in ("old", "folder/old", "new")] == [b"before", b"deep", None]
        disk.lose_power()
    disk.append("old", b"!")
    assert disk.content("old") == b"before!"


def test_a_lost_disk_holds_nothing_and_can_be_used(disk: Disk) -> None:
    disk.append("folder/a", b"x")
    disk.fsync("folder/a")
    disk.put_back(copied=False)
    assert disk.content("folder/a") is None
    disk.append("folder/a", b"y")
    disk.fsync("folder/a")
    disk.lose_power()
    assert disk.content("folder/a") == b"y"


def test_a_name_is_not_given_up_before_the_other_one_is_durable() -> None:
    """A file that was linked to another name and then removed from its first has one of them after every loss."""
    seen = set()
    for seed in range(200):
        journal: NameJournal[str, Inode] = NameJournal()
        inode = Inode()
        journal.durable["first"] = inode
        journal.changed(0, "second", inode)
        journal.changed(0, "first", None, removed=inode)
        journal.lose_power(random.Random(seed), 0.5, 0)
        seen.add(frozenset(journal.durable))
    assert frozenset() not in seen
    assert seen == {frozenset({"first"}), frozenset({"first", "second"}), frozenset({"second"})}


@pytest.mark.parametrize(
    ("order", "left"),
    [
        (NameOrder.JOURNALLED, {"", "a", "ab", "abc"}),
        (NameOrder.ANY, {"", "a", "b", "c", "ab", "ac", "bc", "abc"}),
    ],
)
def test_names_reach_the_platter_in_their_order_where_there_is_a_journal(order: NameOrder, left: set[str]) -> None:
    seen = set()
    for seed in range(200):
        journal: NameJournal[str, Inode] = NameJournal(order=order)
        for name in "abc":
            journal.changed(0, name, Inode())
        journal.lose_power(random.Random(seed), 0.5, 0)
        seen.add("".join(sorted(journal.durable)))
    assert seen == left


def test_what_is_synced_takes_the_names_before_it_along_where_there_is_a_journal() -> None:
    journal: NameJournal[str, Inode] = NameJournal(order=NameOrder.JOURNALLED)
    inodes = {name: Inode() for name in "abc"}
    for name, inode in inodes.items():
        journal.changed(0, name, inode)
    journal.sync(inodes["b"])
    assert set(journal.durable) == {"a", "b"}
