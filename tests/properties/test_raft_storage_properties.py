"""What Raft kept on its disk survives a loss of power at any moment, and nothing is read that was never so."""

from __future__ import annotations

import asyncio
import random
import zlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.environments.simulated.disk import SimulatedDisk
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import seam_exceptions
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.raft.message import Entry, HardState
from system_under_test.raft.snapshot import NOTHING, Piece, Snapshot, SnapshotFile
from system_under_test.raft.storage import RaftStorage, kept_form
from system_under_test.rocketmq.mutants.vote_not_durable import ForgetfulStorage
from system_under_test.storage.errors import StorageCorrupt


class Machine:
    def __init__(self, loop: VirtualTimeLoop, seed: int) -> None:
        self.store = DiskStore("c1", loop, Seed(seed), Regime.calm(), Trace())
        self.process = SimpleNamespace(alive=True)

    def disk(self) -> SimulatedDisk:
        self.process = SimpleNamespace(alive=True, loop=None, context=None, paused=False)
        return SimulatedDisk(self.store, cast(Any, self.process), seam_exceptions())

    def lose_power(self) -> None:
        self.process.alive = False
        self.store.lose_power()


def run(seed: int, life: Any) -> None:
    loop = VirtualTimeLoop()  # type: ignore[abstract]
    try:
        loop.run(life(Machine(loop, seed)))
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    finally:
        loop.close()


SMALL = 200
"""Bytes of a segment, so that a log has many."""


@dataclass(frozen=True)
class Kept:
    hard_state: HardState
    snapshot: Snapshot
    entries: tuple[Entry, ...]
    """Those behind the snapshot."""


async def recover(storage: RaftStorage) -> Kept:
    """What is there, held against itself: all that is read follows the base without a gap and leads to the snapshot."""
    found = await storage.open(segment_bytes=SMALL, kept_bytes=1 << 40)
    entries = tuple(found.entries)
    base, index = found.base[0], found.snapshot.index
    assert [entry.index for entry in entries] == [*range(base + 1, base + 1 + len(entries))]
    assert base <= index <= base + len(entries)
    assert found.snapshot.term == (found.base[1] if index == base else entries[index - base - 1].term)
    return Kept(found.hard_state, found.snapshot, entries[index - base :])


def test_a_loss_of_power_leaves_all_that_was_synced_and_a_log_that_once_was():
    lost = 0
    for seed in range(100):
        draw = random.Random(seed)

        async def life(machine: Machine, draw: random.Random = draw) -> None:
            nonlocal lost
            term = 0
            for _ in range(12):
                storage = RaftStorage(machine.disk(), "raft")
                recovered = await recover(storage)
                # What was read is durable from now on; the versions since the last sync are what may be found.
                states, logs = [recovered.hard_state], [recovered.entries]
                for _ in range(draw.randint(1, 8)):
                    term += 1
                    keep = draw.randint(len(logs[0]), len(logs[-1]))
                    fresh = [
                        Entry(keep + 1 + n, term, draw.randbytes(draw.randint(0, 90)))
                        for n in range(draw.randint(1, 4))
                    ]
                    states.append(HardState(term, draw.choice((None, "c1", "c2"))))
                    logs.append((*logs[-1][:keep], *fresh))
                    storage.write(states[-1], fresh)
                    if draw.random() < 0.4:
                        await storage.sync()
                        states, logs = states[-1:], logs[-1:]
                machine.lose_power()
                kept = await recover(RaftStorage(machine.disk(), "raft"))
                assert kept.hard_state in states, "a vote is neither the last durable one nor one after it"
                assert kept.entries[: len(logs[0])] == logs[0], "what was synced is gone"
                assert any(kept.entries == log[: len(kept.entries)] for log in logs), "such a log there never was"
                lost += kept.entries != logs[-1]

        run(seed, life)
    assert lost > 50, "the losses of power took nothing"


@dataclass(frozen=True)
class Version:
    """What was written at some moment: all entries there ever were up to the log's end, and where the snapshot ends."""

    log: tuple[Entry, ...]
    snapshot: Snapshot
    kept: int = 0
    """So much of the log is that of the version before."""


class Life:
    """A storage that is written to at random, and what may be found after it: the versions since the last sync."""

    def __init__(self, storage: RaftStorage, found: Version, draw: random.Random, term: int) -> None:
        self.storage, self.draw, self.term = storage, draw, term
        self.versions = [found]
        self.is_installing = False
        """One that came from a leader is not durable yet."""

    def write(self) -> None:
        draw, last = self.draw, self.versions[-1]
        self.term += 1
        keep = draw.randint(max(self.durable, last.snapshot.index), len(last.log))
        fresh = [Entry(keep + 1 + n, self.term, draw.randbytes(draw.randint(0, 90))) for n in range(draw.randint(1, 4))]
        log = (*last.log[:keep], *fresh)
        luck = draw.random()
        if luck < 0.6 or len(log) == last.snapshot.index:
            self.storage.write(None, fresh)
            self.versions.append(Version(log, last.snapshot, keep))
        elif luck < 0.8:
            # An own snapshot: the log goes on behind it, and may begin some entries before.
            index = draw.randint(last.snapshot.index, len(last.log))
            if index > last.snapshot.index:
                # Its files are what came with the one before, and durable if it is; others have their own ways.
                files = last.snapshot.files
                data = draw.randbytes(draw.randint(0, 3000))
                snapshot = Snapshot(index, last.log[index - 1].term, data, files=files, place=self.storage.place)
                self.storage.compact(snapshot, self.storage.base_behind_which(draw.choice((0, 300)), index))
                self.versions.append(Version(last.log, snapshot, len(last.log)))
        elif not self.is_installing:
            # One of the leader's, of entries that were never here; its files are where those of the other are not.
            files = self.receive()
            snapshot = Snapshot(
                len(log), log[-1].term, draw.randbytes(100), files=files, place=self.storage.other_place
            )
            self.storage.begin_anew(snapshot)
            self.versions.append(Version(log, snapshot, keep))
            self.is_installing = True

    def receive(self) -> tuple[SnapshotFile, ...]:
        """All of some files, in pieces; what came before for others may be there."""
        draw, files = self.draw, []
        for _ in range(draw.randint(1, 2)):
            self.storage.begin_receiving()
            files = []
            for name in draw.sample("abcde", draw.randint(0, 3)):
                data = draw.randbytes(draw.choice((0, 10, 500)))
                for at in range(0, max(1, len(data)), 200):
                    self.storage.receive(Piece(name, at, data[at : at + 200]))
                files.append(SnapshotFile(name, len(data), zlib.crc32(data)))
        return tuple(files)

    @property
    def durable(self) -> int:
        """So much of the log must be found: it was synced, and not cut since."""
        return min(len(self.versions[0].log), *(version.kept for version in self.versions[1:]), 1 << 30)

    async def sync(self) -> None:
        count, is_installed = len(self.versions) - 1, self.is_installing
        await self.storage.sync()
        del self.versions[:count]
        if is_installed:
            self.is_installing = False


def test_a_loss_of_power_at_any_moment_leaves_an_old_or_a_new_snapshot_and_the_log_behind_it():
    lost = torn = snapshots = segments = files = 0
    for seed in range(150):
        draw = random.Random(seed)

        async def life(machine: Machine, draw: random.Random = draw) -> None:
            nonlocal lost, torn, snapshots, segments, files
            found = Version((), NOTHING)
            for number in range(12):
                storage = RaftStorage(machine.disk(), "raft")
                await recover(storage)
                life = Life(storage, found, draw, number * 100)
                syncing = asyncio.create_task(life.sync())
                for _ in range(draw.randint(1, 12)):
                    life.write()
                    if syncing.done():
                        syncing = asyncio.create_task(life.sync())
                    await asyncio.sleep(draw.choice((0, 0.0005, 0.002, 0.006)))
                torn += not syncing.done()
                syncing.cancel()
                machine.lose_power()
                again = RaftStorage(machine.disk(), "raft")
                kept = await recover(again)
                assert again.place == (kept.snapshot.place or "raft/files-0")
                disk = machine.disk()
                assert not disk.list(again.other_place)
                for file in kept.snapshot.files:
                    content = disk.open(f"{again.place}/{file.name}").read_at(0, file.size)
                    assert (len(content), zlib.crc32(content)) == (file.size, file.crc), "a file is not whole"
                files += len(kept.snapshot.files)
                segments += len(machine.disk().list("raft/log")) > 3
                index, synced = kept.snapshot.index, life.versions[0].log[: life.durable]
                end = index + len(kept.entries)
                whole = [v for v in life.versions if len(v.log) >= end and v.log[index:end] == kept.entries]
                assert whole, "such a log there never was"
                assert kept.snapshot in [version.snapshot for version in life.versions], "nor such a snapshot"
                assert end >= len(synced), "what was synced is gone"
                assert any(version.log[: len(synced)] == synced for version in whole), "what was synced is overwritten"
                lost += kept.snapshot != life.versions[-1].snapshot
                snapshots += index > 0
                found = Version((*whole[0].log[:index], *kept.entries), kept.snapshot)

        run(seed, life)
    assert min(lost, torn, snapshots, segments, files) > 50, "the losses of power took nothing"


def test_a_snapshot_with_the_log_from_before_it_is_followed_by_what_leads_on_from_it():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await recover(storage)
        storage.write(HardState(2, "c2"), [Entry(n, 1 + n // 4, b"data") for n in range(1, 9)])
        await storage.sync()
        disk = machine.disk()
        (path,) = disk.list("raft/log")
        for at, (index, term, behind) in {
            "own": (5, 2, [6, 7, 8]),
            "conflict": (5, 7, []),
            "ahead": (20, 3, []),
        }.items():
            disk.open(f"{at}/{path.removeprefix('raft/')}").append(disk.open(path).read_at(0, 10_000))
            disk.open(f"{at}/snapshot").append(kept_form(Snapshot(index, term, b"state"), place=0))
            for _ in range(2):
                kept = await recover(RaftStorage(disk, at))
                assert kept.snapshot == Snapshot(index, term, b"state")
                assert [entry.index for entry in kept.entries] == behind

    run(1, life)


def test_a_log_begun_anew_is_of_no_use_before_its_snapshot_is_durable_and_the_old_one_of_none_after():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await recover(storage)
        for first in range(1, 60, 6):
            storage.write(None, [Entry(n, 1, b"old") for n in range(first, first + 6)])
        await storage.sync()
        old = machine.store.image()
        storage.begin_anew(Snapshot(30, 2, b"state", place=storage.other_place))
        storage.write(None, [Entry(31, 2, b"new")])
        written = {path: data for path, data in machine.store.image().items() if not path.endswith(".new")}
        assert len(written) == len(old) + 1
        await storage.sync()
        new = machine.store.image()
        for image, entries in ((written, [b"old"] * 60), ({**old, **new}, [b"new"]), (new, [b"new"])):
            machine.store.put_back(image)
            kept = await recover(RaftStorage(machine.disk(), "raft"))
            assert [entry.data for entry in kept.entries] == entries

    run(1, life)


def test_a_segment_that_a_snapshot_supersedes_before_a_cut_of_it_is_durable_does_not_bring_back_what_was_cut():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await recover(storage)
        storage.write(None, [Entry(n, 1, b"old" * 20) for n in range(1, 7)])
        await storage.sync()
        storage.write(None, [Entry(4, 2, b"new")])
        path, _ = machine.disk().list("raft/log")
        superseded = machine.store.lookup(path)
        assert superseded is not None
        storage.compact(Snapshot(3, 1, b"state"), base_index=3)
        await storage.sync()
        # A loss of power takes back that it was removed.
        machine.store.put_back({**machine.store.image(), path: bytes(superseded.durable)})
        kept = await recover(RaftStorage(machine.disk(), "raft"))
        assert kept.entries == (Entry(4, 2, b"new"),)

    run(1, life)


def test_a_snapshot_that_rots_is_not_taken_for_no_snapshot():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.begin_anew(Snapshot(5, 2, b"state"))
        await storage.sync()
        machine.store.rot("raft/snapshot", 22)
        with pytest.raises(StorageCorrupt, match=r"raft/snapshot is harmed: .*checksum.* empty its disk, and add"):
            await RaftStorage(machine.disk(), "raft").open()

    run(1, life)


def test_what_was_read_after_a_kill_survives_a_later_loss_of_power():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(3, "c2"), [Entry(1, 3, b"written, not synced")])
        machine.process.alive = False
        read = await recover(RaftStorage(machine.disk(), "raft"))
        assert read.entries
        machine.lose_power()
        again = await recover(RaftStorage(machine.disk(), "raft"))
        assert again == read

    for seed in range(10):
        run(seed, life)


def test_an_old_entry_is_not_read_behind_a_new_one_that_it_never_followed():
    async def life(machine: Machine) -> None:
        disk = machine.disk()
        for directory, log in (("old", (1, 3, 3)), ("new", (1, 2))):
            storage = RaftStorage(disk, directory)
            await storage.open()
            storage.write(None, [Entry(index, term, b"x") for index, term in enumerate(log, 1)])
        # The cut of the old tail was lost with the power, what was written over it was not.
        new, old = (disk.open(*disk.list(f"{directory}/log")) for directory in ("new", "old"))
        torn = disk.list("new/log")[0].replace("new", "torn")
        disk.open(torn).append(new.read_at(0, new.size) + old.read_at(new.size, old.size))
        assert [entry.term for entry in (await recover(RaftStorage(disk, "torn"))).entries] == [1, 2]

    run(1, life)


def test_a_bit_that_rots_ends_the_log_before_it():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(1, "c1"), [Entry(n, 1, b"data") for n in range(1, 10)])
        await storage.sync()
        machine.store.rot(machine.disk().list("raft/log")[0], 24 + 4 * 29 + 13)
        assert [entry.index for entry in (await recover(RaftStorage(machine.disk(), "raft"))).entries] == [1, 2, 3, 4]

    run(1, life)


def test_a_bit_that_rots_while_the_node_runs_is_an_error_and_no_entry():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(None, [Entry(n, 1, b"data") for n in range(1, 10)])
        await storage.sync()
        machine.store.rot(machine.disk().list("raft/log")[0], 24 + 4 * 29 + 13)
        assert [entry.index for entry in storage.read(1, 4)] == [1, 2, 3, 4]
        with pytest.raises(StorageCorrupt, match="is harmed at entry 5"):
            storage.read(1, 5)

    run(1, life)


def test_a_segment_whose_header_is_torn_or_of_another_file_is_removed():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await recover(storage)
        for n in range(1, 30):
            storage.write(None, [Entry(n, 1, b"some data")])
        await storage.sync()
        disk = machine.disk()
        first, second, third, *_ = disk.list("raft/log")
        disk.open(third).write_at(0, disk.open(second).read_at(0, 1000))
        ends = len((await recover(RaftStorage(machine.disk(), "raft"))).entries)
        assert 0 < ends < 29
        assert machine.disk().list("raft/log") == [first, second]
        machine.disk().open(second).truncate(23)
        assert len((await recover(RaftStorage(machine.disk(), "raft"))).entries) == ends // 2
        assert machine.disk().list("raft/log") == [first]

    run(1, life)


def test_segments_hold_what_a_list_does_whatever_is_written_cut_and_compacted():
    read = dropped = 0
    for seed in range(60):
        draw = random.Random(seed)

        async def life(machine: Machine, draw: random.Random = draw) -> None:
            nonlocal read, dropped
            storage = RaftStorage(machine.disk(), "raft")
            await recover(storage)
            log: list[Entry] = []
            base = compacted = term = 0
            for _ in range(120):
                term += draw.random() < 0.3
                index = draw.choice((len(log), len(log), draw.randint(compacted, len(log))))
                log[index:] = [
                    Entry(index + 1 + n, max(term, 1), draw.randbytes(draw.randint(0, 90)))
                    for n in range(draw.randint(1, 4))
                ]
                storage.write(None, log[index:])
                if draw.random() < 0.2:
                    await storage.sync()
                if draw.random() < 0.1:
                    kept_bytes = draw.choice((0, 0, 300, 900))
                    index = draw.randint(compacted, len(log))
                    behind = storage.base_behind_which(kept_bytes, index)
                    assert _bytes(log[behind:index]) >= kept_bytes or behind <= base
                    if index > compacted:
                        compacted, base = index, max(base, behind)
                        storage.compact(Snapshot(compacted, log[compacted - 1].term, b""), base)
                        dropped += base > 0
                assert storage.log_bytes_behind(compacted) == _bytes(log[compacted:])
                if base < len(log):
                    first = draw.randint(base + 1, len(log))
                    last = draw.randint(first, len(log))
                    found = storage.read(first, last)
                    assert found
                    assert found == log[first - 1 : first - 1 + len(found)]
                    read += len(found)
            await storage.sync()
            found = await RaftStorage(machine.disk(), "raft").open(segment_bytes=SMALL, kept_bytes=1 << 40)
            assert found.base[0] <= base
            assert list(found.entries) == log[found.base[0] :]
            assert len(machine.disk().list("raft/log")) < len(log) // 2 + 2

        run(seed, life)
    assert min(read, dropped) > 100


def _bytes(entries: list[Entry]) -> int:
    """What the records of these take."""
    return sum(25 + len(entry.data) for entry in entries)


def test_a_vote_file_that_grew_long_is_written_anew_and_says_the_same():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        for term in range(1, 6000):
            storage.write(HardState(term, "c1"), [])
        await storage.sync()
        disk = machine.disk()
        before = disk.open("raft/vote").size
        assert (await recover(RaftStorage(disk, "raft"))).hard_state == HardState(5999, "c1")
        assert disk.open("raft/vote").size < before / 100

    run(1, life)


def test_the_mutant_forgets_its_vote_with_the_power():
    async def life(machine: Machine) -> None:
        storage = ForgetfulStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(7, "c2"), [Entry(1, 7, b"x")])
        await storage.sync()
        machine.lose_power()
        kept = await recover(RaftStorage(machine.disk(), "raft"))
        assert kept.entries
        forgotten.append(kept.hard_state != HardState(7, "c2"))

    forgotten: list[bool] = []
    for seed in range(10):
        run(seed, life)
    assert any(forgotten)


def test_what_a_failed_fsync_left_in_the_page_cache_alone_is_durable_once_it_was_read_again():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(3, "c2"), [Entry(1, 3, b"x"), Entry(2, 3, b"y")])
        machine.store.faults.fsync_error_probability = 1.0
        with pytest.raises(OSError, match="fsync failed"):
            await storage.sync()
        machine.store.faults.fsync_error_probability = 0.0
        machine.process.alive = False
        read = await recover(RaftStorage(machine.disk(), "raft"))
        assert (read.hard_state, len(read.entries)) == (HardState(3, "c2"), 2)
        machine.lose_power()
        assert await recover(RaftStorage(machine.disk(), "raft")) == read

    run(1, life)
