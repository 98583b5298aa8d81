"""Term, vote and checkpoint survive a loss of power, and are not believed when harmed."""

from __future__ import annotations

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.dledger.vote_file import Beginning, Checkpoint, CheckpointFile, VoteFile
from system_under_test.storage.errors import StorageCorrupt, StorageFailed
from system_under_test.storage.record_file import RecordFile
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.dledger.disk_machine import (
    DiskMachine,
)


def test_a_vote_is_durable_and_replaced_whole() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = DiskMachine(loop)
        vote = VoteFile(machine.disk(), "vote")
        assert await vote.read() == (0, None)
        for term, name in ((4, None), (5, "n2"), (6, "é")):
            await vote.write(term, name)
            machine.store.lose_power()
            vote = VoteFile(machine.disk(), "vote")
            assert await vote.read() == (term, name)

    simulate(body)


def test_a_checkpoint_is_durable() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = DiskMachine(loop)
        file = CheckpointFile(machine.disk(), "checkpoint")
        assert await file.read() == Checkpoint(Beginning(0, 0, 0), -1, -1)
        checkpoint = Checkpoint(Beginning(2, 400, 2**32 - 1), 9, 7)
        await file.write(checkpoint)
        machine.store.lose_power()
        assert await CheckpointFile(machine.disk(), "checkpoint").read() == checkpoint

    simulate(body)


@pytest.mark.parametrize("record", [b"", b"1234567", bytes(8) + b"\xff"])
def test_what_is_no_vote_or_checkpoint_is_an_error(record: bytes) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        disk = DiskMachine(loop).disk()
        await RecordFile(disk, "x").write(record)
        with pytest.raises(StorageCorrupt):
            await VoteFile(disk, "x").read()
        with pytest.raises(StorageCorrupt):
            await CheckpointFile(disk, "x").read()

    simulate(body)


def test_harm_at_any_byte_is_noticed_and_a_failing_device_is_final() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = DiskMachine(loop)
        disk = machine.disk()
        vote = VoteFile(disk, "vote")
        await vote.write(5, "n2")
        for at in range(disk.open("vote").size):
            machine.store.rot("vote", at)
            with pytest.raises(StorageCorrupt):
                await vote.read()
            machine.store.rot("vote", at)
        machine.store.faults.read_error_probability = 1.0
        with pytest.raises(StorageFailed):
            await vote.read()

    simulate(body)
