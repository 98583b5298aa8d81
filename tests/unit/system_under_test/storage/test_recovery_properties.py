"""Whatever is written, cut, killed and torn: what is recovered is what was flushed, and nothing that never was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.consumer_offsets import ConsumerOffsets
from system_under_test.storage.epoch_file import EpochFile
from system_under_test.storage.file_ages import FileAges
from system_under_test.storage.key_index import KeyIndex
from system_under_test.storage.message import decode_message
from system_under_test.storage.message_store import FlushMode, MessageStore, StorageParts
from system_under_test.storage.new_message import NewMessage
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config, sync_config

QUEUES = 2
SEGMENT_BYTES = 1000
KEYS = 3


def key_of(body: bytes) -> str:
    return f"k{int(body[:6]) % KEYS}"


@dataclass
class Model:
    """What a store was given: (queue id, queue offset, body, start, end) of each message, and who wrote it."""

    messages: list[tuple[int, int, bytes, int, int]] = field(default_factory=list)
    confirmed: int = 0
    count: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """(master epoch, start); the greatest start at most that of a message belongs to its master."""
    newest_epoch: int = 0
    clock_s: float = 0.0
    """For how long its processes ran, as the store was told."""
    written_s: dict[int, float] = field(default_factory=dict)
    """Start of a message -> when it was put, by that clock."""
    written_under: dict[int, int] = field(default_factory=dict)
    """Start of a message -> the master epoch in which it was put."""
    whole_at: dict[int, int] = field(default_factory=dict)
    """Start of a message of a batch -> the end of the batch: before the log reaches it, the message is not there."""

    def put(self, store: MessageStore, queue_id: int, size: int) -> None:
        self.count += 1
        body = b"%06d" % self.count + b"x" * size
        result = store.put("t", queue_id, body, {"TAGS": "a", "KEYS": key_of(body)})
        assert result.queue_offset == sum(1 for message in self.messages if message[0] == queue_id)
        self.messages.append((queue_id, result.queue_offset, body, result.offset, result.end_offset))
        self.written_s[result.offset] = self.clock_s
        self.whole_at[result.offset] = result.end_offset
        if self.epochs:
            self.written_under[result.offset] = self.epochs[-1][0]

    def put_batch(self, store: MessageStore, queue_id: int, count: int, size: int) -> None:
        bodies = [b"%06d" % (self.count + 1 + number) + b"x" * size for number in range(count)]
        self.count += count
        new = [
            NewMessage(topic="t", queue_id=queue_id, body=body, properties={"TAGS": "a", "KEYS": key_of(body)})
            for body in bodies
        ]
        results = store.put_all(new)
        assert [result.end_offset for result in results[:-1]] == [result.offset for result in results[1:]]
        for body, result in zip(bodies, results, strict=True):
            assert result.queue_offset == sum(1 for message in self.messages if message[0] == queue_id)
            self.messages.append((queue_id, result.queue_offset, body, result.offset, result.end_offset))
            self.written_s[result.offset] = self.clock_s
            self.whole_at[result.offset] = results[-1].end_offset
            if self.epochs:
                self.written_under[result.offset] = self.epochs[-1][0]

    def begin_epoch(self, store: MessageStore) -> tuple[int, int]:
        """The entry that a new master would add now."""
        self.newest_epoch += 1
        return self.newest_epoch, store.max_offset

    def cut(self, offset: int) -> None:
        self.messages = [message for message in self.messages if self.whole_at[message[3]] <= offset]
        self.confirmed = min(self.confirmed, offset)
        self.epochs = [entry for entry in self.epochs if entry[1] <= offset]
        self.written_s = {start: at_s for start, at_s in self.written_s.items() if start < offset}
        self.written_under = {start: epoch for start, epoch in self.written_under.items() if start < offset}

    async def age(self, store: MessageStore, seconds: float) -> None:
        """No file is older than its last message."""
        self.clock_s += seconds
        for end, age_s in await store.full_files(lambda: seconds):
            newest_s = max(at_s for start, at_s in self.written_s.items() if end - SEGMENT_BYTES <= start < end)
            assert age_s <= self.clock_s - newest_s

    def check(self, store: MessageStore) -> None:
        for queue_id, _, body, start, end in self.messages:
            if start < store.min_offset:
                continue
            message = decode_message(store.read_for_transfer(start, end - start), 0)
            assert (message.queue_id, message.body, message.physical_offset) == (queue_id, body, start)
            entry = store.epochs.map.entry_at(start)
            if start in self.written_under:
                assert entry is not None and entry.master_epoch == self.written_under[start], "another master's bytes"
        assert all(entry.start_offset <= store.max_offset for entry in store.epochs.map)
        assert store.confirm_offset <= self.confirmed
        for queue_id in range(QUEUES):
            put = sum(1 for message in self.messages if message[0] == queue_id)
            assert (store.consumer_offsets.get("g", "t", queue_id) or 0) <= put, "a group has read what is not there"
            expected = [
                body
                for own_id, _, body, start, _ in self.messages
                if own_id == queue_id and start >= store.min_offset and self.whole_at[start] <= store.confirm_offset
            ]
            seen = store.get_messages("t", queue_id, store.queue_range("t", queue_id)[0], 1000)
            assert [decode_message(raw, 0).body for raw in seen.messages] == expected
        for key in (f"k{number}" for number in range(KEYS)):
            expected = [
                body
                for _, _, body, start, _ in self.messages
                if key_of(body) == key and start >= store.min_offset and self.whole_at[start] <= store.confirm_offset
            ]
            found = store.lookups.by_key("t", key, 1000, 0, 1 << 62)
            assert [decode_message(raw, 0).body for raw in found] == expected


share = st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.99, 1.0])
put = st.tuples(st.just("put"), st.integers(0, QUEUES - 1), st.integers(0, 300))
step = st.one_of(
    put,
    st.tuples(st.just("burst"), st.integers(2, 20), st.integers(0, 300)),
    st.tuples(st.just("batch"), st.integers(1, 4), st.integers(0, 60)),
    st.tuples(st.just("confirm"), share, st.none()),
    st.tuples(st.just("flush"), st.none(), st.none()),
    st.tuples(st.just("sleep"), st.sampled_from([0.0005, 0.003, 0.6, 3.1]), st.none()),
    st.tuples(st.just("kill"), st.none(), st.none()),
    st.tuples(st.just("power"), st.none(), st.none()),
    st.tuples(st.just("delete"), share, st.none()),
    st.tuples(st.just("truncate"), share, st.none()),
    st.tuples(st.just("truncate-power"), share, st.floats(0, 0.02)),
    st.tuples(st.just("boot-power"), st.floats(0, 0.02), st.none()),
    st.tuples(st.just("stop"), st.none(), st.none()),
    st.tuples(st.just("epoch"), st.none(), st.none()),
    st.tuples(st.just("consume"), st.integers(0, QUEUES - 1), share),
    st.tuples(st.just("epoch-power"), st.floats(0, 0.02), st.none()),
    st.tuples(st.just("delete-power"), share, st.floats(0, 0.02)),
    st.tuples(st.just("flush-power"), st.floats(0, 0.02), st.none()),
    st.tuples(st.just("age"), st.sampled_from([1.0, 10.0]), st.none()),
    st.tuples(st.just("age-power"), st.floats(0, 0.02), st.none()),
    st.tuples(st.just("harm-checkpoint"), st.none(), st.none()),
)


CUT_OFF_DELETION = ("delete-power", 0.5, 0.00390625)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(
    # Power is lost between what the checkpoint says of the queues and what it says of the log.
    steps=[*[("burst", 2, 0)] * 4, ("burst", 8, 0), ("confirm", 0.5, None), ("flush", None, None), CUT_OFF_DELETION],
    mode=FlushMode.SYNC,
    seed=0,
)
@given(steps=st.lists(step, max_size=20), mode=st.sampled_from(FlushMode), seed=st.integers(0, 1 << 16))
def test_a_restarted_store_holds_everything_flushed_and_nothing_torn(steps, mode, seed) -> None:
    live_and_recover(steps, mode, seed)


@pytest.mark.thorough
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, min_size=10, max_size=60), mode=st.sampled_from(FlushMode), seed=st.integers(0, 1 << 16))
def test_a_store_that_is_restarted_often_holds_everything_flushed_and_nothing_torn(steps, mode, seed) -> None:
    live_and_recover(steps, mode, seed)


def live_and_recover(
    steps: list[tuple[Any, Any, Any]], mode: FlushMode, seed: int, parts: StorageParts | None = None
) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(
            loop, seed, sync_config(SEGMENT_BYTES) if mode is FlushMode.SYNC else async_config(SEGMENT_BYTES)
        )
        model = Model()
        store = await machine.boot(parts)
        model.epochs.append(model.begin_epoch(store))
        await store.epochs.append(*model.epochs[-1])
        for name, first, second in steps:
            if name == "put":
                model.put(store, first, second)
            elif name == "burst":
                for number in range(first):
                    model.put(store, number % QUEUES, second)
            elif name == "batch":
                model.put_batch(store, first % QUEUES, first, second)
            elif name == "confirm":
                offset = int(first * store.max_offset)
                store.advance_confirm_offset(offset)
                model.confirmed = max(model.confirmed, offset)
            elif name == "flush":
                await store.flush_to(store.max_offset, 5.0)
                assert store.flushed_offset == store.max_offset
            elif name == "epoch":
                model.epochs.append(model.begin_epoch(store))
                await store.epochs.append(*model.epochs[-1])
            elif name == "consume":
                end = store.queue_range("t", first)[1]
                store.consumer_offsets.commit("g", "t", first, int(second * end))
            elif name == "age":
                await model.age(store, first)
            elif name == "sleep":
                await machine.clock.sleep(first)
            elif name == "delete":
                await store.delete_files_before(int(first * store.max_offset))
            elif name == "truncate":
                await store.truncate(max(store.min_offset, int(first * store.max_offset)))
                model.cut(await store.cut_to_message_boundary())
            elif name == "stop":
                end = store.max_offset
                await store.stop()
                await machine.lose_power()
                store = await machine.boot(parts)
                assert store.max_offset == end
            else:
                store = await _booted_unclean(machine, store, model, parts, (name, first, second))
            model.check(store)
        assert not machine.panics
        await store.stop()

    simulate(body)


async def _booted_unclean(
    machine: Machine, store: MessageStore, model: Model, parts: StorageParts | None, step: tuple[Any, Any, Any]
) -> MessageStore:
    """The store of the next start, after a step that ends the process or takes its power. Checks what it recovered."""
    name, first, second = step
    durable = store.flushed_offset
    if name == "truncate-power":
        point = max(store.min_offset, int(first * store.max_offset))
        durable = min(durable, point)
        await _interrupted(machine, store.truncate(point), second)
    elif name == "boot-power":
        await machine.kill()
        await _interrupted(machine, machine.program(parts).open(), first)
    elif name == "epoch-power":
        begun = model.begin_epoch(store)
        await _interrupted(machine, store.epochs.append(*begun), first)
    elif name == "delete-power":
        await _interrupted(machine, store.delete_files_before(int(first * store.max_offset)), second)
    elif name == "flush-power":
        await _interrupted(machine, store.flush_to(store.max_offset, 5.0), first)
    elif name == "age-power":
        model.clock_s += 5.0
        await _interrupted(machine, store.full_files(lambda: 5.0), first)
    elif name in ("kill", "harm-checkpoint"):
        durable = store.max_offset
        await machine.kill()
        if name == "harm-checkpoint":
            machine.rot("store/checkpoint", 20)
    else:
        await machine.lose_power()
    store = await machine.boot(parts)
    assert store.unclean_start
    assert all(message[4] <= store.max_offset for message in model.messages if model.whole_at[message[3]] <= durable)
    model.cut(store.max_offset)
    if name == "epoch-power" and begun in store.epochs.map.entries:
        model.epochs.append(begun)
    assert store.last_message_boundary() == store.max_offset
    assert store.flushed_offset == store.max_offset
    return store


class EpochsInMemory(EpochFile):
    """An epoch is known and not written down."""

    async def append(self, master_epoch: int, start_offset: int) -> None:
        self.map = self.map.append(master_epoch, start_offset)


class EpochsBeyondTheLog(EpochFile):
    """Of a log that was cut the epochs stay."""

    async def truncate_suffix(self, end_offset: int) -> None:
        return None


class UncutIndex(KeyIndex):
    def truncate(self, offset: int) -> None:
        return None


class IndexInMemory(KeyIndex):
    """It says of itself that it is durable."""

    async def persist(self) -> dict[str, int]:
        return {}


class OffsetsBeyondTheQueue(ConsumerOffsets):
    def clamp(self, end_of: Callable[[str, int], int]) -> None:
        return None


def test_ages_that_outlive_what_was_in_a_file_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    fill, age = ("burst", 12, 0), ("age", 10.0, None)
    life = [fill, age, age, ("truncate", 0.25, None), fill, age]
    live_and_recover(life, FlushMode.SYNC, 1)

    async def keep_all(ages: FileAges, full: Iterable[int]) -> None:
        return None

    monkeypatch.setattr(FileAges, "keep", keep_all)
    with pytest.raises(AssertionError):
        live_and_recover(life, FlushMode.SYNC, 1)


@pytest.mark.parametrize(
    "parts",
    [
        StorageParts(epoch_file=EpochsInMemory),
        StorageParts(epoch_file=EpochsBeyondTheLog),
        StorageParts(consumer_offsets=OffsetsBeyondTheQueue),
        StorageParts(key_index=UncutIndex),
        StorageParts(key_index=IndexInMemory),
    ],
    ids=["epochs in memory", "epochs beyond the log", "offsets beyond the queue", "uncut index", "index in memory"],
)
def test_a_store_with_a_planted_mistake_is_noticed(parts: StorageParts) -> None:
    put, power, wait = ("put", 0, 10), ("power", None, None), ("sleep", 3.1, None)
    life = [put, ("epoch", None, None), put, ("confirm", 1.0, None), ("sleep", 0.6, None), ("flush", None, None)]
    again = [put, put, put, ("confirm", 1.0, None)]
    ends = [[("consume", 0, 1.0), ("truncate", 0.25, None), *again], [power], [wait, power]]

    def live(parts: StorageParts | None) -> None:
        for end in ends:
            live_and_recover([*life, *end], FlushMode.SYNC, 1, parts)

    live(None)
    with pytest.raises(AssertionError):
        live(parts)


async def _interrupted(machine: Machine, call: Coroutine[Any, Any, Any], after_s: float) -> None:
    """Power is lost in the midst of the call, or after it."""
    task = asyncio.ensure_future(call)
    await machine.clock.sleep(after_s)
    await machine.kill()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await machine.lose_power()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=15),
    cuts=st.lists(st.integers(1, 700), min_size=1, max_size=20),
    deleted=st.integers(0, 2000),
    crash=st.sampled_from(["kill", "power"]),
    seed=st.integers(0, 1 << 16),
)
def test_a_replica_fed_in_pieces_cut_anywhere_recovers_a_prefix_of_its_master(
    sizes, cuts, deleted, crash, seed
) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        master = await Machine(loop, seed, async_config(1000)).boot()
        model = Model()
        for number, size in enumerate(sizes):
            if size % 3:
                model.put(master, number % QUEUES, size)
            else:
                model.put_batch(master, number % QUEUES, 1 + size % 4, size % 80)
        master.advance_confirm_offset(master.max_offset)
        await master.flush_to(master.max_offset, 5.0)
        await master.delete_files_before(deleted)
        machine = Machine(loop, seed + 1, async_config(1000))
        replica = await machine.boot()
        start = master.min_offset
        if start:
            await replica.begin_at(start, master.queue_offsets_at(start), is_part=False)
        for size in cuts:
            offset = replica.max_offset
            replica.append_replicated(offset, master.read_for_transfer(offset, size))
            replica.advance_confirm_offset(replica.max_offset)
            assert replica.dispatched_offset <= replica.last_message_boundary() <= replica.max_offset
        model.confirmed = replica.max_offset
        written, boundary = replica.max_offset, replica.last_message_boundary()
        await (machine.kill() if crash == "kill" else machine.lose_power())
        replica = await machine.boot()
        if crash == "kill":
            assert replica.max_offset == boundary
        assert replica.max_offset <= written
        if replica.max_offset > replica.min_offset:
            assert replica.min_offset == master.min_offset
            assert _bytes(replica) == _bytes(master)[: replica.max_offset - replica.min_offset]
        replica.rebuild_queue_offset_table()
        model.cut(replica.max_offset)
        model.check(replica)
        await replica.stop()

    simulate(body)


def _bytes(store: MessageStore) -> bytes:
    offset, pieces = store.min_offset, []
    while offset < store.max_offset:
        pieces.append(store.read_for_transfer(offset, 1 << 20))
        offset += len(pieces[-1])
    return b"".join(pieces)
