"""What Raft kept on its disk survives a loss of power at any moment, and nothing is read that was never so."""

from __future__ import annotations

import asyncio
import random
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
from system_under_test.raft.snapshot import NOTHING, Snapshot
from system_under_test.raft.storage import RaftStorage, kept_form
from system_under_test.rocketmq.mutants.vote_not_durable import ForgetfulStorage


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


def test_a_loss_of_power_leaves_all_that_was_synced_and_a_log_that_once_was():
    lost = 0
    for seed in range(100):
        draw = random.Random(seed)

        async def life(machine: Machine, draw: random.Random = draw) -> None:
            nonlocal lost
            term = 0
            for _ in range(12):
                storage = RaftStorage(machine.disk(), "raft")
                recovered = await storage.open()
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
                kept = await RaftStorage(machine.disk(), "raft").open()
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
            return
        if luck < 0.8:
            # An own snapshot: the log goes on behind it.
            log, keep = last.log, len(last.log)
            index = draw.randint(last.snapshot.index, len(log))
        else:
            # One of the leader's, of entries that were never here.
            index = len(log)
        if index > last.snapshot.index:
            snapshot = Snapshot(index, log[index - 1].term, draw.randbytes(draw.randint(0, 3000)))
            self.storage.write(None, log[index:], snapshot)
            self.versions.append(Version(log, snapshot, keep))

    @property
    def durable(self) -> int:
        """So much of the log must be found: it was synced, and not cut since."""
        return min(len(self.versions[0].log), *(version.kept for version in self.versions[1:]), 1 << 30)

    async def sync(self) -> None:
        count = len(self.versions) - 1
        await self.storage.sync()
        del self.versions[:count]


def test_a_loss_of_power_at_any_moment_leaves_an_old_or_a_new_snapshot_and_the_log_behind_it():
    lost = torn = snapshots = 0
    for seed in range(150):
        draw = random.Random(seed)

        async def life(machine: Machine, draw: random.Random = draw) -> None:
            nonlocal lost, torn, snapshots
            found = Version((), NOTHING)
            for number in range(12):
                storage = RaftStorage(machine.disk(), "raft")
                await storage.open()
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
                kept = await RaftStorage(machine.disk(), "raft").open()
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
    assert min(lost, torn, snapshots) > 50, "the losses of power took nothing"


def test_a_crash_between_the_new_names_of_snapshot_and_log_leaves_the_new_snapshot_with_the_old_log():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(2, "c2"), [Entry(n, 1 + n // 4, b"data") for n in range(1, 9)])
        await storage.sync()
        disk = machine.disk()
        for at, (index, term, behind) in {
            "own": (5, 2, [6, 7, 8]),
            "conflict": (5, 7, []),
            "ahead": (20, 3, []),
        }.items():
            disk.open(f"{at}/log").append(disk.open("raft/log").read_at(0, 10_000))
            disk.open(f"{at}/snapshot").append(kept_form(Snapshot(index, term, b"state"), place=0))
            for _ in range(2):
                kept = await RaftStorage(disk, at).open()
                assert kept.snapshot == Snapshot(index, term, b"state")
                assert [entry.index for entry in kept.entries] == behind

    run(1, life)


def test_a_snapshot_that_rots_is_not_taken_for_no_snapshot():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(None, [], Snapshot(5, 2, b"state"))
        await storage.sync()
        machine.store.rot("raft/snapshot", 22)
        with pytest.raises(OSError, match="checksum"):
            await RaftStorage(machine.disk(), "raft").open()

    run(1, life)


def test_what_was_read_after_a_kill_survives_a_later_loss_of_power():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(3, "c2"), [Entry(1, 3, b"written, not synced")])
        machine.process.alive = False
        read = await RaftStorage(machine.disk(), "raft").open()
        assert read.entries
        machine.lose_power()
        again = await RaftStorage(machine.disk(), "raft").open()
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
        new, old = (disk.open(f"{directory}/log") for directory in ("new", "old"))
        disk.open("torn/log").append(new.read_at(0, new.size) + old.read_at(new.size, old.size))
        assert [entry.term for entry in (await RaftStorage(disk, "torn").open()).entries] == [1, 2]

    run(1, life)


def test_a_bit_that_rots_ends_the_log_before_it():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(1, "c1"), [Entry(n, 1, b"data") for n in range(1, 10)])
        await storage.sync()
        machine.store.rot("raft/log", 4 * 29 + 13)
        assert [entry.index for entry in (await RaftStorage(machine.disk(), "raft").open()).entries] == [1, 2, 3, 4]

    run(1, life)


def test_a_vote_file_that_grew_long_is_written_anew_and_says_the_same():
    async def life(machine: Machine) -> None:
        storage = RaftStorage(machine.disk(), "raft")
        await storage.open()
        for term in range(1, 6000):
            storage.write(HardState(term, "c1"), [])
        await storage.sync()
        disk = machine.disk()
        before = disk.open("raft/vote").size
        assert (await RaftStorage(disk, "raft").open()).hard_state == HardState(5999, "c1")
        assert disk.open("raft/vote").size < before / 100

    run(1, life)


def test_the_mutant_forgets_its_vote_with_the_power():
    async def life(machine: Machine) -> None:
        storage = ForgetfulStorage(machine.disk(), "raft")
        await storage.open()
        storage.write(HardState(7, "c2"), [Entry(1, 7, b"x")])
        await storage.sync()
        machine.lose_power()
        kept = await RaftStorage(machine.disk(), "raft").open()
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
        read = await RaftStorage(machine.disk(), "raft").open()
        assert (read.hard_state, len(read.entries)) == (HardState(3, "c2"), 2)
        machine.lose_power()
        assert await RaftStorage(machine.disk(), "raft").open() == read

    run(1, life)
