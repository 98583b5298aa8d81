"""The simulated disk: what survives a kill, what survives a loss of power, and how a disk may fail."""

from __future__ import annotations

import asyncio
import re

import pytest

from harness.environments.impairment import BitRot, DiskErrors, FailingFsync, FullDisk, MisdirectedWrites, SlowDisk
from system_under_test.runtime.host import DiskError, DiskFull


async def reborn(environment, hosts, name="a"):
    """The disk of a node after a loss of power."""
    await environment.power_off([name])
    await environment.boot([name])
    await environment.timeline.sleep(0)
    return hosts[name].disk


def test_what_was_synced_survives_a_loss_of_power(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log/0")
        file.append(b"durable ")
        await file.fsync()
        file.write_at(0, b"D")
        file.append(b"bytes")
        await file.fsync()
        disk = await reborn(environment, hosts)
        assert disk.open("log/0").read_at(0, 99) == b"Durable bytes"

    for seed in range(20):
        simulate(body, seed=seed)


def test_of_what_was_not_synced_any_part_may_be_gone(simulate):
    images: set[bytes | None] = set()
    written = b"abcdefghij"

    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(b"0000")
        await file.fsync()
        file.append(written[:5])
        file.append(written[5:])
        disk = await reborn(environment, hosts)
        image = disk.open("log").read_at(0, 99)
        assert image[:4] == b"0000"
        assert all(byte in (0, written[index]) for index, byte in enumerate(image[4:]))
        images.add(image[4:])

    for seed in range(150):
        simulate(body, seed=seed)
    assert b"" in images
    assert written in images
    assert any(0 < len(image) < 10 and 0 not in image for image in images), "a tail torn at some byte"
    assert any(b"\0" in image for image in images), "a lost middle that reads as zeros"


def test_names_that_were_not_synced_may_be_gone_or_not(simulate):
    seen: set[tuple[bool, bool]] = set()

    async def body(environment, hosts) -> None:
        disk = hosts["a"].disk
        old = disk.open("old")
        old.append(b"x")
        await old.fsync()
        disk.remove("old")
        disk.open("new").append(b"y")
        disk = await reborn(environment, hosts)
        seen.add((disk.exists("old"), disk.exists("new")))

    for seed in range(60):
        simulate(body, seed=seed)
    assert seen == {(False, False), (False, True), (True, False), (True, True)}


def test_a_truncation_that_was_not_synced_may_be_undone(simulate):
    sizes: set[int] = set()

    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(b"0123456789")
        await file.fsync()
        file.truncate(4)
        disk = await reborn(environment, hosts)
        sizes.add(disk.open("log").size)

    for seed in range(20):
        simulate(body, seed=seed)
    assert sizes == {4, 10}


def test_a_replace_that_returned_survives_and_one_under_way_is_all_or_nothing(simulate):
    seen: set[bytes] = set()

    async def body(environment, hosts) -> None:
        disk = hosts["a"].disk
        for path, data in (("state", b"old"), ("tmp", b"new"), ("tmp2", b"newer")):
            file = disk.open(path)
            file.append(data)
            await file.fsync()
        await disk.replace("tmp", "state")
        disk = await reborn(environment, hosts)
        assert disk.open("state").read_at(0, 9) == b"new"
        assert not disk.exists("tmp")
        hosts["a"].spawn(disk.replace("tmp2", "state"), "replace")
        await environment.timeline.sleep(0)
        disk = await reborn(environment, hosts)
        state = disk.open("state").read_at(0, 9)
        assert disk.exists("tmp2") == (state == b"new")
        seen.add(state)

    for seed in range(20):
        simulate(body, seed=seed)
    assert seen == {b"new", b"newer"}


def test_a_kill_keeps_what_was_written_and_completes_no_fsync(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(b"written")

        async def sync() -> None:
            await file.fsync()

        hosts["a"].spawn(sync(), "sync")
        await environment.timeline.sleep(0)
        await environment.kill(["a"])
        await environment.timeline.sleep(1)
        inode = environment.disk_of("a").lookup("log")
        assert bytes(inode.content) == b"written"
        assert bytes(inode.durable) == b""

    simulate(body)


def test_an_fsync_covers_what_was_written_before_it_and_no_more(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(b"before")

        async def sync() -> None:
            await file.fsync()

        hosts["a"].spawn(sync(), "sync")
        await environment.timeline.sleep(0)
        file.append(b" after")
        await environment.timeline.sleep(1)
        inode = environment.disk_of("a").lookup("log")
        assert bytes(inode.durable) == b"before"
        await file.fsync()
        assert bytes(inode.durable) == b"before after"

    simulate(body)


def test_a_failed_fsync_says_so_and_its_bytes_never_become_durable(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(b"kept")
        await file.fsync()
        faults = environment.disk_faults("a")
        faults.fsync_error_probability = 1.0
        file.append(b"lost")
        with pytest.raises(DiskError):
            await file.fsync()
        assert file.read_at(0, 99) == b"keptlost"
        faults.fsync_error_probability = 0.0
        file.append(b"more")
        await file.fsync()
        disk = await reborn(environment, hosts)
        assert disk.open("log").read_at(0, 99) == b"kept\0\0\0\0more"

    simulate(body)


def test_a_lying_fsync_looks_like_an_honest_one_until_the_power_goes(simulate):
    lost: set[bool] = set()

    async def body(environment, hosts) -> None:
        environment.disk_faults("a").fsync_lie_probability = 1.0
        file = hosts["a"].disk.open("log")
        file.append(b"believed durable")
        await file.fsync()
        disk = await reborn(environment, hosts)
        lost.add(disk.open("log").size < 16)

    for seed in range(20):
        simulate(body, seed=seed)
    assert lost == {True, False}


def test_a_full_disk_takes_nothing_of_a_write_and_has_room_again_after_a_removal(simulate):
    async def body(environment, hosts) -> None:
        disk = hosts["a"].disk
        environment.disk_faults("a").capacity_bytes = 100
        disk.open("old").append(bytes(80))
        assert disk.used_share() == 0.8
        file = disk.open("new")
        with pytest.raises(DiskFull):
            file.append(bytes(21))
        assert file.size == 0
        disk.remove("old")
        file.append(bytes(21))
        file.truncate(5)
        file.append(bytes(95))
        with pytest.raises(DiskFull):
            file.append(b"x")

    simulate(body)


def test_reads_and_writes_can_fail_and_bits_can_rot(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(b"abc")
        await file.fsync()
        faults = environment.disk_faults("a")
        faults.read_error_probability = faults.write_error_probability = 1.0
        with pytest.raises(DiskError):
            file.read_at(0, 1)
        with pytest.raises(DiskError):
            file.append(b"x")
        faults.read_error_probability = faults.write_error_probability = 0.0
        assert environment.disk_of("a").rot("log", 1, mask=0b11)
        assert not environment.disk_of("a").rot("log", 3)
        disk = await reborn(environment, hosts)
        assert disk.open("log").read_at(0, 9) == b"aac"

    simulate(body)


def test_bits_that_rot_are_named_and_stay_so(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(bytes(1000))
        await file.fsync()
        rotten = await environment.impair(["a", "b"], BitRot(bits=3, draw=5))
        named = re.findall(r"bit (\d) of byte (\d+) of log", rotten.evidence)
        expected = bytearray(1000)
        for bit, byte in named:
            expected[int(byte)] ^= 1 << int(bit)
        assert rotten.happened and "b:" not in rotten.evidence and len(named) == 3
        assert file.read_at(0, 1000) == bytes(expected)
        assert not (await environment.impair(["b"], BitRot(bits=3, draw=5))).happened, "an empty disk has no bits"
        disk = await reborn(environment, hosts)
        assert disk.open("log").read_at(0, 1000) == bytes(expected)

    simulate(body)


def test_writes_are_misdirected_on_the_disks_that_are_struck_until_each_such_fault_is_over(simulate):
    async def body(environment, hosts) -> None:
        struck, other = (hosts[name].disk.open("log") for name in "ab")
        always, seldom = MisdirectedWrites(one_in=1, draw=1), MisdirectedWrites(one_in=10**6, draw=1)
        effects = [await environment.impair(["a"], each) for each in (always, seldom)]
        assert all(effect.happened for effect in effects)
        for file in (struck, other):
            assert [file.append(record) for record in (b"one", b"two")] == [0, 3]
        assert (struck.read_at(0, 9), other.read_at(0, 9)) == (b"two\0\0\0", b"onetwo")
        assert "1 writes misdirected: write log 3+3 to 0" in (await environment.relieve(["a"], always)).evidence
        assert struck.append(b"tri") == 6
        assert struck.read_at(0, 9) == b"two\0\0\0tri"
        assert "0 writes misdirected" in (await environment.relieve(["a"], seldom)).evidence
        await struck.fsync()
        disk = await reborn(environment, hosts)
        assert disk.open("log").read_at(0, 9) == b"two\0\0\0tri"

    simulate(body)


def test_a_misdirected_write_takes_the_room_that_it_was_to_take(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        for impairment in (MisdirectedWrites(one_in=1, draw=1), FullDisk(room_bytes=6)):
            await environment.impair(["a"], impairment)
        for record in (b"one", b"two"):
            file.append(record)
        with pytest.raises(DiskFull):
            file.append(b"tri")

    simulate(body)


def test_faults_of_one_disk_add_up_and_say_which_calls_failed(simulate):
    async def body(environment, hosts) -> None:
        file, once, errors = hosts["a"].disk.open("log"), FailingFsync(most=1), DiskErrors(reads=0.0, writes=1.0)
        for impairment in (once, once, FullDisk(room_bytes=10), FullDisk(room_bytes=5)):
            await environment.impair(["a"], impairment)
        file.append(b"five!")
        with pytest.raises(DiskFull):
            file.append(b"6")
        assert "write log 5+1" in (await environment.relieve(["a"], FullDisk(room_bytes=5))).evidence
        file.append(b"more!")
        with pytest.raises(DiskFull):
            file.append(b"6")
        await environment.relieve(["a"], FullDisk(room_bytes=10))
        for _ in range(2):
            with pytest.raises(DiskError):
                await file.fsync()
        await file.fsync()
        told = [(await environment.relieve(["a"], once)).evidence for _ in range(2)]
        assert ["fsync log 10 bytes" in told[0], "fsync log 0 bytes" in told[1]] == [True, True]
        await environment.impair(["a"], errors)
        with pytest.raises(DiskError):
            file.append(b"x")
        await environment.relieve(["a"], errors)
        file.append(b"x")

    simulate(body)


@pytest.mark.parametrize("is_held_down", [False, True])
def test_a_node_that_hears_of_a_failed_fsync_only_after_its_disk_was_mended_is_booted(simulate, is_held_down):
    async def body(environment, hosts) -> None:
        host, failing = hosts["a"], FailingFsync(most=None)
        host.spawn(host.disk.open("log").fsync(), "work")
        await environment.timeline.sleep(0)
        await environment.impair(["a"], failing)
        await environment.pause(["a"])
        await environment.timeline.sleep(1)
        relieved = await environment.relieve(["a"], failing)
        assert "a (1 calls failed" in relieved.evidence and "booted" not in relieved.evidence
        assert environment.running() == ("a", "b", "c") and hosts["a"] is host
        await environment.resume(["a"])
        if is_held_down:
            await environment.kill(["a"])
        await environment.timeline.sleep(0.1)
        assert environment.panics() == {}
        assert environment.running() == (("b", "c") if is_held_down else ("a", "b", "c"))
        assert is_held_down or hosts["a"] is not host

    simulate(body)


def test_fsync_takes_time_and_a_slow_disk_takes_more(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")

        async def duration_s() -> float:
            before_ns = environment.timeline.now_ns()
            await file.fsync()
            return (environment.timeline.now_ns() - before_ns) / 1e9

        assert 0 < await duration_s() < 0.1
        environment.disk_faults("a").fsync_slow_factor = 10_000
        assert await duration_s() > 1

    simulate(body)


def test_what_a_slow_disk_has_under_way_is_done_soon_once_it_is_not_slow_any_more(simulate):
    async def body(environment, hosts) -> None:
        slow = SlowDisk(factor=1_000_000.0)
        await environment.impair(["a"], slow)
        disk = hosts["a"].disk
        file = disk.open("log")
        file.append(b"bytes")
        under_way = [asyncio.ensure_future(call) for call in (file.fsync(), disk.replace("log", "log.1"))]
        await environment.timeline.sleep(5)
        assert not any(call.done() for call in under_way)
        await environment.relieve(["a"], slow)
        healed_ns = environment.timeline.now_ns()
        await asyncio.gather(*under_way)
        assert environment.timeline.now_ns() - healed_ns < 1e9
        assert bytes(environment.disk_of("a").lookup("log.1").durable) == b"bytes"

    simulate(body)


def test_an_fsync_costs_what_was_written_since_the_last_one(simulate):
    async def body(environment, hosts) -> None:
        file = hosts["a"].disk.open("log")
        file.append(bytes(64 * 1024 * 1024))
        await file.fsync()
        inode = environment.disk_of("a").lookup("log")
        for _ in range(3000):  # would copy 200 GB were the whole file carried each time
            file.append(b"x" * 100)
            await file.fsync()
        assert inode.operations == []
        assert len(inode.durable) == file.size

    simulate(body)


def test_a_file_replaced_again_and_again_is_always_the_last_one_acknowledged_or_a_newer_one(simulate):
    async def body(environment, hosts) -> None:
        acknowledged = written = 0

        async def replace_for_ever(disk) -> None:
            nonlocal acknowledged, written
            while True:
                written += 1
                number = written
                if disk.exists("state.tmp"):
                    disk.remove("state.tmp")
                file = disk.open("state.tmp")
                file.append(number.to_bytes(8, "big"))
                await file.fsync()
                await disk.replace("state.tmp", "state")
                acknowledged = number

        disk = hosts["a"].disk
        for turn in range(40):
            hosts["a"].spawn(replace_for_ever(disk), "replace")
            await environment.timeline.sleep(0.0005 + 0.0007 * turn)
            disk = await reborn(environment, hosts)
            state = int.from_bytes(disk.open("state").read_at(0, 8), "big") if acknowledged else 0
            assert acknowledged <= state <= written
            acknowledged = state

    for seed in range(10):
        simulate(body, seed=seed)


def test_room_is_counted_right_whatever_becomes_of_names(simulate):
    async def body(environment, hosts) -> None:
        disk = hosts["a"].disk
        file = disk.open("gone")
        file.append(bytes(50))
        disk.remove("gone")
        file.append(bytes(50))
        disk.open("over").append(bytes(10))
        disk.open("new").append(bytes(7))
        await disk.replace("new", "over")
        assert environment.disk_of("a").used_bytes == 7

    simulate(body)


def test_a_synced_name_survives_a_rename_away_that_was_under_way_before_it(simulate):
    async def body(environment, hosts) -> None:
        store = environment.disk_of("a")
        first = store.create("tmp")
        store.sync_name(first)
        store.rename("tmp", "state")
        second = store.create("tmp")
        store.sync_name(second)
        store.lose_power()
        assert store.lookup("tmp") is second
        assert store.lookup("state") is first

    for seed in range(20):
        simulate(body, seed=seed)
