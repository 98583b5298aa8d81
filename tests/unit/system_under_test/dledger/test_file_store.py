"""What a log in files promises: all or nothing, durable by `sync`, and what harm and a loss of power leave of it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.dledger.entry import HEAD_BYTES, NOTHING, Entry
from system_under_test.dledger.store import FileStore
from system_under_test.dledger.vote_file import CheckpointFile
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import MessageTooLarge, StorageCorrupt, StorageFailed
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.dledger.disk_machine import (
    DiskMachine,
)
from tests.unit.system_under_test.dledger.test_stores import held

LARGEST = 200 - 8 - HEAD_BYTES


def on_machine(body: Callable[[DiskMachine], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    async def with_machine(loop: VirtualTimeLoop) -> None:
        await body(DiskMachine(loop, seed))

    simulate(with_machine)


def numbered(count: int, size: int = 5) -> list[bytes]:
    return [b"%0*d" % (size, number) for number in range(count)]


async def with_entries(machine: DiskMachine, count: int, committed: int = NOTHING) -> tuple[FileStore, list[Entry]]:
    store = await machine.boot()
    entries = list(store.append_own(1, numbered(count)))
    await store.save_committed(committed)
    return store, entries


def data_paths(machine: DiskMachine, times: int = 0) -> list[str]:
    return sorted(path for path in machine.store.paths() if path.startswith(f"d/{times}/data/"))


def index_paths(machine: DiskMachine, times: int = 0) -> list[str]:
    return sorted(path for path in machine.store.paths() if path.startswith(f"d/{times}/index/"))


def test_files_are_named_by_their_first_position_and_end_with_a_blank() -> None:
    async def body(machine: DiskMachine) -> None:
        _, entries = await with_entries(machine, 7)
        assert [entry.position for entry in entries] == [0, 53, 106, 200, 253, 306, 400]
        assert data_paths(machine) == [f"d/0/data/{start:020d}" for start in (0, 200, 400)]
        assert index_paths(machine) == [f"d/0/index/{start:020d}" for start in (0, 96, 192)]
        content = machine.disk().open(data_paths(machine)[0]).read_at(0, 200)
        assert len(content) == 200
        assert content[159:] == bytes.fromhex("ffffffff00000029") + bytes(33)

    on_machine(body)


def test_an_entry_that_fits_no_file_is_refused_and_nothing_of_its_batch_written() -> None:
    async def body(machine: DiskMachine) -> None:
        store = await machine.boot()
        with pytest.raises(MessageTooLarge):
            store.append_own(1, [b"a", bytes(LARGEST + 1)])
        assert (store.end, machine.store.used_bytes) == (NOTHING, 0)
        assert not store.append([Entry(0, 1, 0, bytes(LARGEST + 1))])
        assert not store.end_with(Entry(0, 1, 0, bytes(LARGEST + 1)))
        assert store.append_own(1, [bytes(LARGEST), b"b"])[1].position == 200

    on_machine(body)


def test_what_is_synced_survives_any_loss_of_power_and_the_log_goes_on() -> None:
    async def body(machine: DiskMachine) -> None:
        expected: list[Entry] = []
        for number in range(6):
            store = await machine.after_power_loss()
            assert held(store) == expected
            assert store.durable_end == store.end
            store.append_own(number, numbered(4))
            await store.sync()
            expected = held(store)

    for seed in range(5):
        on_machine(body, seed)


def test_what_a_killed_process_wrote_is_durable_once_the_next_one_vouches_for_it() -> None:
    async def body(machine: DiskMachine) -> None:
        store = await machine.boot()
        entries = list(store.append_own(1, numbered(8)))
        assert store.durable_end == NOTHING
        assert held(await machine.boot()) == entries
        assert held(await machine.after_power_loss()) == entries

    for seed in range(5):
        on_machine(body, seed)


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_that_is_undone_brings_nothing_back_behind_what_was_written_since(seed: int) -> None:
    """Entries go over three files and are cut; others are written in their place. Before the sync any mixture of both
    may be on the platter, and a log is one or the other, up to some entry; after it, it is the newer one."""

    async def body(machine: DiskMachine) -> None:
        store, old = await with_entries(machine, 9)
        assert store.end_with(old[1])
        new = [*old[:2], *store.append_own(2, [b"new%02d" % number for number in range(seed % 8)])]
        assert store.durable_end == 1
        if seed % 2:
            sync = asyncio.ensure_future(store.sync())
            await asyncio.sleep(0)
            found = held(await machine.after_power_loss())
            sync.cancel()
            assert found in [new[:count] for count in range(2, 10)] + [old[:count] for count in range(2, 10)]
        else:
            await store.sync()
            assert held(await machine.after_power_loss()) == new

    on_machine(body, seed)


@pytest.mark.parametrize("seed", range(20))
def test_until_a_log_that_began_anew_is_durable_a_loss_of_power_leads_back_to_the_one_before(seed: int) -> None:
    async def body(machine: DiskMachine) -> None:
        store, old = await with_entries(machine, 5)
        assert store.end_with(Entry(50, 3, 1000, b"x"))
        assert store.durable_end == NOTHING
        assert store.end_with(Entry(60, 3, 2000, b"x"))
        assert held(await machine.after_power_loss()) == old
        store = await machine.boot()
        assert store.end_with(Entry(70, 3, 3000, b"y"))
        new = [*held(store), *store.append_own(4, numbered(5))]
        await store.sync()
        assert (store.durable_end, data_paths(machine)) == (75, [])
        store = await machine.after_power_loss()
        assert held(store) == new
        assert not data_paths(machine)
        assert store.append_own(4, [b"z"])[0].index == 76

    on_machine(body, seed)


def test_a_log_begins_anew_only_at_the_start_of_a_data_file() -> None:
    async def body(machine: DiskMachine) -> None:
        store, old = await with_entries(machine, 5)
        for entry in (Entry(9, 1, 300, b""), Entry(3, 1, 60, b""), Entry(5, 1, 350, b"")):
            assert not store.end_with(entry)
        assert held(store) == old
        for entry in (Entry(3, 1, 400, b""), Entry(3, 2, 400, b"other"), Entry(4, 2, 400, b"next")):
            assert store.end_with(entry)
            assert held(store) == [entry]

    on_machine(body)


ACTS: dict[str, Callable[[FileStore], object]] = {
    "one": lambda store: store.append_own(2, [b"a"]),
    "batch over files": lambda store: store.append_own(2, numbered(8, 70)),
    "next file": lambda store: store.append_own(2, [bytes(LARGEST)]),
    "begin anew where it stands": lambda store: store.end_with(Entry(3, 2, 200, bytes(130))),
    "begin anew": lambda store: store.end_with(Entry(40, 2, 600, bytes(LARGEST))),
}


@pytest.mark.parametrize("name", ACTS)
def test_without_room_all_of_it_is_done_or_nothing(name: str) -> None:
    act, refused, carried_out = ACTS[name], 0, 0
    for room in range(0, 2000, 3):

        async def body(machine: DiskMachine, room: int = room) -> None:
            nonlocal refused, carried_out
            store, old = await with_entries(machine, 5)
            data_bytes = sum(len(content) for path, content in machine.store.image().items() if "data" in path)
            machine.room(room)
            try:
                act(store)
                carried_out += 1
                expected = held(store)
                assert expected != old
            except DiskFull:
                refused += 1
                expected = old
                assert (held(store), store.end_term, store.durable_end) == (old, 1, 4)
                image = machine.store.image()
                assert data_bytes == sum(len(content) for path, content in image.items() if "data" in path)
            machine.room(None)
            if name.startswith("begin anew"):
                await store.sync()
            store = await machine.boot()
            assert held(store) == expected
            store.append_own(9, numbered(3))
            await store.sync()
            assert held(await machine.after_power_loss())[: len(expected)] == expected

        if carried_out < 3:
            on_machine(body)
    assert carried_out == 3
    assert refused


def test_a_batch_that_found_no_room_does_not_come_back() -> None:
    async def body(machine: DiskMachine) -> None:
        store, old = await with_entries(machine, 5)
        machine.room(300)
        with pytest.raises(DiskFull):
            store.append_own(2, numbered(8, 70))
        assert held(await machine.after_power_loss()) == old

    for seed in range(20):
        on_machine(body, seed)


def test_a_failed_fsync_or_write_is_final() -> None:
    async def body(machine: DiskMachine) -> None:
        store, _ = await with_entries(machine, 5)
        store.append_own(2, [b"a"])
        machine.store.faults.fsync_error_probability = 1.0
        with pytest.raises(StorageFailed):
            await store.sync()
        machine.store.faults.fsync_error_probability = 0.0
        refusals: Sequence[Callable[[], object]] = (
            lambda: store.append_own(2, [b"b"]),
            lambda: store.end_with(Entry(0, 9, 0, b"")),
            lambda: store.entry(0),
        )
        for refused in refusals:
            with pytest.raises(StorageFailed):
                refused()
        with pytest.raises(StorageFailed):
            await store.sync()
        assert store.durable_end == 4
        store = await machine.boot()
        machine.store.faults.write_error_probability = 1.0
        with pytest.raises(StorageFailed):
            store.append_own(2, [b"b"])
        machine.store.faults.write_error_probability = 0.0
        with pytest.raises(StorageFailed):
            store.append_own(2, [b"b"])
        store = await machine.boot()
        machine.store.faults.read_error_probability = 1.0
        with pytest.raises(StorageFailed):
            store.entry(0)

    on_machine(body)


@pytest.mark.parametrize("lost", ["first", "last", "middle", "all"])
@pytest.mark.parametrize("committed", [NOTHING, 14])
def test_index_files_that_are_lost_are_built_anew(lost: str, committed: int) -> None:
    async def body(machine: DiskMachine) -> None:
        _, entries = await with_entries(machine, 15, committed)
        paths = index_paths(machine)
        for path in {"first": paths[:1], "last": paths[-1:], "middle": paths[2:3], "all": paths}[lost]:
            machine.store.remove(path)
        assert held(await machine.boot()) == entries
        assert held(await machine.after_power_loss()) == entries
        assert index_paths(machine) == paths

    on_machine(body)


def test_harm_to_the_index_of_what_is_checked_is_mended_and_elsewhere_noticed() -> None:
    async def body(machine: DiskMachine) -> None:
        _, entries = await with_entries(machine, 15, 14)
        machine.store.rot(index_paths(machine)[-1], 10)
        assert held(await machine.boot()) == entries
        machine.store.rot(index_paths(machine)[0], 10)
        store = await machine.boot()
        with pytest.raises(StorageCorrupt, match=r"entry 0.*d/0/index"):
            store.entry(0)
        machine.store.rot(index_paths(machine)[0], 10)
        machine.store.rot(index_paths(machine)[0], 0)
        with pytest.raises(StorageCorrupt, match="entry 0"):
            (await machine.boot()).term(0)

    on_machine(body)


@pytest.mark.parametrize("committed", [NOTHING, 4, 9])
def test_harm_at_any_byte_leaves_a_beginning_of_the_log(committed: int) -> None:
    sizes = {0: 200, 1: 200, 2: 200, 3: 53}

    async def body(machine: DiskMachine) -> None:
        _, entries = await with_entries(machine, 10, committed)
        image = machine.store.image()
        assert [len(image[path]) for path in data_paths(machine)] == list(sizes.values())
        for path in image:
            for at in range(len(image[path])):
                machine.store.put_back(image)
                machine.store.rot(path, at, 0x10)
                try:
                    found = held(store := await machine.boot())
                except StorageCorrupt:
                    continue
                found = [replace(entry, channel=0) for entry in found]  # the chain alone has that, and is not read
                assert found == entries[: len(found)]
                assert not path.endswith("checkpoint")
                assert "data" in path or found == entries
                store.append_own(5, [b"goes on"])

    on_machine(body)


def test_harm_to_what_was_not_synced_leaves_what_was() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 4)
        more = [*entries, *store.append_own(2, numbered(4))]
        image = machine.store.image()
        for path in data_paths(machine):
            for at in range(len(image[path])):
                if int(path[-20:]) + at >= entries[-1].position + entries[-1].size:
                    machine.store.put_back(image)
                    machine.store.rot(path, at)
                    found = held(await machine.boot())
                    assert len(found) >= 4
                    assert found == more[: len(found)]

    on_machine(body)


def test_only_the_last_three_files_and_what_is_not_committed_are_checked() -> None:
    async def body(machine: DiskMachine) -> None:
        for committed, is_noticed in ((14, False), (4, True), (NOTHING, True)):
            machine.store.put_back({})
            _, entries = await with_entries(machine, 15, committed)
            machine.store.rot(data_paths(machine)[1], 60)
            store = await machine.boot()
            assert store.end == (3 if is_noticed else 14)
            if not is_noticed:
                assert [store.entry(index) for index in range(5, 15)] == entries[5:]
                with pytest.raises(StorageCorrupt):
                    store.entry(4)

    on_machine(body)


def test_a_checkpoint_ahead_of_a_log_that_was_cut_says_no_more_is_committed_than_there_is() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 8, 7)
        assert (await machine.boot()).committed == 7
        store = await machine.boot()
        assert store.end_with(entries[2])
        await store.sync()
        store = await machine.after_power_loss()
        assert (store.end, store.committed, held(store)) == (2, 2, entries[:3])

    on_machine(body)


def test_no_more_is_saved_as_committed_than_is_durable() -> None:
    async def body(machine: DiskMachine) -> None:
        await with_entries(machine, 4, 100)
        assert (await CheckpointFile(machine.disk(), "d/checkpoint").read()).committed == 3

    on_machine(body)


def test_a_log_whose_first_file_is_gone_says_what_to_do() -> None:
    async def body(machine: DiskMachine) -> None:
        store, _ = await with_entries(machine, 12, 11)
        await store.expire(200)
        image = machine.store.image()
        for gone in ([data_paths(machine)[0]], data_paths(machine)):
            machine.store.put_back(image)
            for path in gone:
                machine.store.remove(path)
            with pytest.raises(
                StorageCorrupt, match=r"^d/0/data/0+200, .* is gone: bring .* wipe this member .*empty$"
            ):
                await machine.boot()

    on_machine(body)


def test_expiry_raises_the_beginning_and_never_takes_the_last_file() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 12, 11)
        await store.expire(199)
        assert store.begin == 0
        await store.expire(450)
        assert (store.begin, held(store)) == (6, entries[6:])
        assert (len(data_paths(machine)), len(index_paths(machine))) == (2, 2)
        assert (store.entry(5), store.term(5)) == (None, NOTHING)
        store = await machine.after_power_loss()
        assert held(store) == entries[6:]
        assert store.end_with(entries[6])
        left = [entries[6], *store.append_own(3, [b"other"])]
        await store.sync()
        store = await machine.after_power_loss()
        assert held(store) == left, "the chain goes on from what has expired"
        await store.expire(10_000)
        assert store.begin == 6

    for seed in range(5):
        on_machine(body, seed)


def test_expiry_takes_no_file_before_an_entry_that_is_not_durable() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 3, 2)
        expiry = asyncio.ensure_future(store.expire(10_000))
        await asyncio.sleep(0)
        entries += store.append_own(1, numbered(9))
        await expiry
        assert store.begin == 0
        assert held(await machine.boot()) == entries

    on_machine(body)


def test_expiry_takes_no_file_of_an_entry_that_is_not_committed() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 12, 4)
        await store.expire(10_000)
        assert (store.begin, held(store)) == (3, entries[3:])

    on_machine(body)


def test_only_what_is_committed_and_full_grows_old() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 12, 4)
        assert await store.full_files(lambda: 10.0) == [(200, 0.0)]
        await store.save_committed(10)
        assert await store.full_files(lambda: 10.0) == [(200, 10.0), (400, 0.0), (600, 0.0)]
        store = await machine.after_power_loss()
        await store.expire(200)
        assert await store.full_files(lambda: 1.0) == [(400, 1.0), (600, 1.0)]
        assert held(store) == entries[3:]

    on_machine(body)


def test_files_of_a_log_that_began_anew_are_as_old_as_they_are() -> None:
    async def body(machine: DiskMachine) -> None:
        store, _ = await with_entries(machine, 6, 5)
        for _ in range(2):
            assert [end for end, _ in await store.full_files(lambda: 100.0)] == [200]
        assert store.end_with(first := Entry(9, 1, 0, b"other"))
        store.append_own(1, numbered(5))
        await store.save_committed(14)
        store = await machine.after_power_loss()
        assert store.begin == first.index
        assert await store.full_files(lambda: 1.0) == [(200, 0.0)]

    on_machine(body)


def test_nothing_is_appended_while_the_disk_is_nearly_full() -> None:
    async def body(machine: DiskMachine) -> None:
        machine.full_share = 0.88
        store, entries = await with_entries(machine, 4)
        used = machine.store.used_bytes
        machine.store.faults.capacity_bytes = used * 100 // 89
        for refused in (
            lambda: store.append_own(1, [b"x"]),
            lambda: store.append([Entry(4, 1, 253, b"x")]),
            lambda: store.end_with(Entry(9, 2, 400, b"x")),
        ):
            with pytest.raises(DiskFull):
                refused()
        assert held(store) == entries
        assert store.end_with(entries[2])
        machine.store.faults.capacity_bytes = used * 100 // 80
        assert store.append([Entry(3, 1, 200, b"x")])

    on_machine(body)


def test_an_expiry_that_found_no_room_for_its_checkpoint_is_made_up_for() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 12, 11)
        machine.room(0)
        with pytest.raises(DiskFull):
            await store.expire(400)
        assert (store.begin, len(data_paths(machine))) == (6, 4)
        machine.room(None)
        await store.sync()
        assert len(data_paths(machine)) == 2
        assert held(await machine.after_power_loss()) == entries[6:]

    on_machine(body)


def test_a_sync_vouches_for_nothing_that_was_cut_or_written_while_it_ran() -> None:
    async def body(machine: DiskMachine) -> None:
        store = await machine.boot()
        entries = store.append_own(1, numbered(8))
        sync = asyncio.ensure_future(store.sync())
        await asyncio.sleep(0)
        assert store.end_with(entries[3])
        new = [*entries[:4], *store.append_own(2, numbered(4))]
        await sync
        assert store.durable_end == 3
        found = held(await machine.after_power_loss())
        assert found in [list(entries[:count]) for count in range(4, 9)] + [new[:count] for count in range(4, 9)]

    for seed in range(20):
        on_machine(body, seed)


def test_what_is_written_behind_a_cut_during_a_sync_is_durable_with_the_syncs_that_follow() -> None:
    async def body(machine: DiskMachine) -> None:
        store = await machine.boot()
        entries = store.append_own(1, numbered(40))
        sync = asyncio.ensure_future(store.sync())
        await asyncio.sleep(0)
        assert store.end_with(entries[3])
        await sync
        for _ in range(5):
            store.append_own(2, numbered(2))
            await store.sync()
        expected = held(store)
        assert store.durable_end == store.end == 13
        assert held(await machine.after_power_loss()) == expected

    for seed in range(20):
        on_machine(body, seed)


def test_a_log_that_began_anew_during_a_sync_leaves_what_the_sync_made_durable() -> None:
    async def body(machine: DiskMachine) -> None:
        store = await machine.boot()
        assert store.end_with(Entry(7, 1, 400, b"x"))
        sync = asyncio.ensure_future(store.sync())
        await asyncio.sleep(0)
        assert store.end_with(Entry(9, 1, 800, b"y"))
        await sync
        assert store.durable_end == NOTHING
        assert held(await machine.after_power_loss()) == [Entry(7, 1, 400, b"x")]

    for seed in range(20):
        on_machine(body, seed)


def test_a_sync_that_is_cancelled_leaves_the_rest_to_the_next() -> None:
    async def body(machine: DiskMachine) -> None:
        store, entries = await with_entries(machine, 8)
        assert store.end_with(entries[1])
        new = entries[:2]
        for steps in range(1, 4):
            sync = asyncio.ensure_future(store.sync())
            for _ in range(steps):
                await asyncio.sleep(0)
            sync.cancel()
            await asyncio.gather(sync, return_exceptions=True)
        await store.sync()
        assert held(await machine.after_power_loss()) == new

    for seed in range(20):
        on_machine(body, seed)


def reachable(root: object) -> int:
    """How many objects a store holds, without its disk, modules and classes."""
    found: dict[int, object] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        is_outside = isinstance(thing, int | type | ModuleType | FunctionType | FrameType | asyncio.AbstractEventLoop)
        if id(thing) not in found and not is_outside and type(thing).__name__ not in ("SimulatedDisk", "Inode"):
            found[id(thing)] = thing
            waiting += gc.get_referents(thing)
    return len(found)


def test_of_20000_entries_only_the_newest_are_in_memory() -> None:
    async def body(machine: DiskMachine) -> None:
        machine.sizes = type(machine.sizes)()
        store = await machine.boot()
        store.append_own(1, numbered(100))
        await store.sync()
        sizes = set()
        for _ in range(4):
            for _ in range(50):
                store.append_own(1, numbered(100))
            await store.sync()
            sizes.add(reachable(store))
        assert max(sizes) < 20_000
        assert store.entry(5000) == Entry(5000, 1, 5000 * 53, b"00000")

    on_machine(body)
