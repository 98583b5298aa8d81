"""A node's part in one group: what is agreed on there becomes queues, and the leader gives their messages out.

Each committed entry is applied once, in order: the messages go to their files without fsync, for the log brings them
again after a loss of power. A request is answered once its entry is applied here; a pull is answered with messages that
are not acknowledged and that nobody holds, after a majority has confirmed that this node leads.

Who holds what is the leader's memory only. A new leader gives out all that is not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from system_under_test.cmq import entry as entries
from system_under_test.cmq import snapshot as snapshots
from system_under_test.cmq.config import CmqConfig, group_name
from system_under_test.cmq.deliveries import Deliveries
from system_under_test.cmq.entry import MAX_MESSAGES, Ack, Command, Create, Produce
from system_under_test.cmq.parts import CmqParts
from system_under_test.cmq.state_machine import (
    NO_QUEUES,
    Acknowledged,
    Applied,
    CopiedState,
    Created,
    Produced,
    Queue,
    QueueGroupState,
    Refusal,
    Write,
)
from system_under_test.cmq.wire import Pulled
from system_under_test.raft.driver import NotLeader
from system_under_test.raft.message import Entry
from system_under_test.raft.snapshot import Snapshot
from system_under_test.raft.transport import PeerTransport
from system_under_test.runtime.host import Host
from system_under_test.storage.errors import StorageCorrupt

MAX_WAITING: Final = 1024
"""Pulls of a group that wait for messages; one more is answered at once, with none."""
MOST_PULLED_BYTES: Final = 1024 * 1024
"""Bytes of messages that a pull brings at most, unless the first one is longer."""
R = TypeVar("R")


class DiskIsFull(Exception):
    """Nothing was proposed."""


class Refused(Exception):
    """The entry was applied, and changed nothing."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class QueueGroup:
    """`Service` of a node's process."""

    def __init__(self, host: Host, config: CmqConfig, number: int, transport: PeerTransport, parts: CmqParts) -> None:
        raft = config.raft(number)
        self._host = host
        self._config = config
        self._parts = parts
        self._number = number
        self.name = group_name(number)
        self._state = parts.state(config.file_bytes, config.most_queues)
        self._files = parts.files(host.disk)
        self._deliveries: dict[str, Deliveries] = {}
        """Of the queues from which anything was pulled while this node leads."""
        self._unwritten: dict[tuple[str, int], list[bytes]] = {}
        """(Queue, file) -> records, of the entries that are being applied."""
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        """By queue, the pulls that found nothing."""
        self._waiting_count = 0
        self._most_pulled = min(MAX_MESSAGES, max(1, MOST_PULLED_BYTES // config.message_bytes))
        self._pulls = 0
        self._restored = 0
        """How often the state was taken from a snapshot."""
        self._snapshot_index = 0
        self._snapshot_wanted = asyncio.Event()
        self.raft = parts.raft_node(
            host,
            raft,
            core=parts.raft_core,
            storage=parts.raft_storage(host.disk, raft.directory),
            transport=transport,
            check=entries.check,
            apply=self._apply_entry,
            snapshot=None,
            restore=self._restore,
            on_leadership=self._on_leadership,
            all_applied=self._write_messages,
        )
        self.on_active: Callable[[], None] = lambda: None
        """Is called when this node has begun to lead."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Recover. Raises StorageCorrupt, DiskError."""
        await self.raft.start()
        if not self._restored:
            self._take_over(NO_QUEUES, self.raft.place)
        self._tasks = [self._host.spawn(self._make_snapshots(), f"snapshots of {self.name}")]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.raft.stop()
        self._files.close()

    # -- requests; each raises NotLeader, LeadershipLost, TimeoutError, Refused

    async def create(self, queue: str) -> bool:
        """Whether it is new."""
        return (await self._agreed(Create(queue), Created)).is_new

    async def produce(self, queue: str, bodies: Sequence[bytes]) -> int:
        """The number of the first message. Raises DiskIsFull."""
        if self._host.disk.used_share() * 100 >= self._config.full_percent:
            raise DiskIsFull
        first = (await self._agreed(Produce(queue, tuple(bodies)), Produced)).first
        self._reached("about-to-confirm", queue=self._state.queues[queue].ordinal, number=first)
        return first

    async def acknowledge(self, queue: str, numbers: Sequence[int]) -> tuple[bool, ...]:
        """Of each message, whether it was not acknowledged before."""
        return (await self._agreed(Ack(queue, tuple(numbers)), Acknowledged)).newly

    async def pull(self, queue: str, most: int, wait_s: float) -> Pulled:
        clock = self._host.clock
        until_ns = clock.monotonic_ns() + int(wait_s * 1e9)
        while True:
            self._pulls += 1
            serial = self._pulls
            self._reached("pull-taken-up", serial=serial)
            await self._within_time(self._parts.read_barrier(self.raft))
            if not self.raft.is_active:
                # It led when the barrier was passed, and has forgotten since who holds what.
                raise NotLeader(self.raft.leader)
            current = self._state.queues.get(queue)
            if current is None:
                raise Refused(Refusal.UNKNOWN_QUEUE)
            now_ns, most_now = clock.monotonic_ns(), min(most, self._most_pulled)
            numbers = self._deliveries_of(queue).take(current.bitmap, current.next_number, most_now, now_ns)
            left_s = (until_ns - clock.monotonic_ns()) / 1e9
            if numbers or left_s <= 0 or self._waiting_count >= MAX_WAITING:
                return self._give_out(queue, current, numbers, serial, now_ns)
            await self._wait_for_message(queue, left_s)

    # -- what was agreed on

    @property
    def state(self) -> QueueGroupState:
        return self._state

    async def _agreed(self, command: Command, kind: type[R]) -> R:
        result = await self._within_time(self._parts.propose(self.raft, self, entries.encode(command)))
        if isinstance(result, Refusal):
            raise Refused(result)
        assert isinstance(result, kind)
        return result

    async def _within_time(self, awaitable: Any) -> Any:
        return await self._host.clock.within(self._config.request_timeout_s, awaitable)

    def _apply_entry(self, entry: Entry) -> Any:
        result = self.apply(entry.data, entry.index)
        every = self._config.digest_entries
        if every and entry.index % every == 0:
            self._report_digest("state", entry.index, self._state.digest())
        if self._is_snapshot_due(entry.index):
            self._snapshot_wanted.set()
        return result

    def apply(self, data: bytes, index: int = 0) -> Any:
        command = entries.decode(data)
        applied = self._state.carry_out(command)
        if applied.writes:
            self._reached("about-to-apply-produce")
        for write in applied.writes:
            self._unwritten.setdefault((write.queue, write.file), []).append(write.data)
        if self.raft.is_active:
            self._notice(command, applied, index)
        return applied.result

    def _write_messages(self) -> None:
        """Of all entries that were applied at once, by one call for each file."""
        unwritten, self._unwritten = self._unwritten, {}
        for (queue, file), records in unwritten.items():
            self._files.write(Write(queue, file, b"".join(records)))

    def _notice(self, command: Command, applied: Applied, index: int) -> None:
        """What the leader makes of a command that was applied, before it is answered."""
        if isinstance(applied.result, Produced):
            self._wake(command.queue)
            queue, first = self._state.queues[command.queue].ordinal, applied.result.first
            self._reached("applied-not-confirmed", queue=queue, number=first, index=index)
        elif isinstance(applied.result, Acknowledged) and isinstance(command, Ack):
            deliveries, queue = self._deliveries_of(command.queue), self._state.queues[command.queue].ordinal
            for number in command.numbers:
                deliveries.acknowledged(number)
                self._reached("ack-applied-not-answered", queue=queue, number=number)

    # -- messages go out

    def _deliveries_of(self, queue: str) -> Deliveries:
        deliveries = self._deliveries.get(queue)
        if deliveries is None:
            deliveries = self._deliveries[queue] = Deliveries(int(self._config.visibility_s * 1e9))
        return deliveries

    def _give_out(self, queue: str, current: Queue, numbers: Sequence[int], serial: int, now_ns: int) -> Pulled:
        for number in numbers:
            self._reached("gave-out", queue=current.ordinal, number=number, serial=serial, at_ns=now_ns)
        return Pulled(tuple((number, self._files.read(queue, number)) for number in numbers), current.unacknowledged)

    async def _wait_for_message(self, queue: str, left_s: float) -> None:
        """For one that is produced, or comes back from who holds it, or not so long. Raises NotLeader."""
        clock = self._host.clock
        expiry_ns = self._deliveries_of(queue).next_expiry_ns
        if expiry_ns is not None:
            left_s = min(left_s, max(0.0, (expiry_ns - clock.monotonic_ns()) / 1e9))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(queue, []).append(future)
        self._waiting_count += 1
        try:
            with suppress(TimeoutError):
                await clock.within(left_s, future)
        finally:
            self._waiting_count -= 1
            if future in (waiting := self._waiting.get(queue, [])):
                waiting.remove(future)

    def _wake(self, queue: str) -> None:
        """Who waits for messages of this queue."""
        for future in self._waiting.pop(queue, ()):
            if not future.done():
                future.set_result(None)

    def _on_leadership(self, is_active: bool) -> None:
        self._deliveries.clear()
        if is_active:
            self.on_active()
            return
        waiting, self._waiting = self._waiting, {}
        for future in (future for futures in waiting.values() for future in futures):
            if not future.done():
                future.set_exception(NotLeader(self.raft.leader))

    # -- snapshots

    def _is_snapshot_due(self, index: int) -> bool:
        config = self._config
        every = config.snapshot_entries
        return (every > 0 and index - self._snapshot_index >= every) or self.raft.log_bytes >= config.snapshot_log_bytes

    async def _make_snapshots(self) -> None:
        while True:
            with suppress(TimeoutError):
                await self._host.clock.within(self._config.snapshot_interval_s, self._snapshot_wanted.wait())
            if self.raft.applied > self._snapshot_index:
                await self._make_snapshot()
            self._snapshot_wanted.clear()

    async def _make_snapshot(self) -> None:
        """Of the state between two entries, while the flow goes on. The messages are durable before it gets its name:
        the log that would bring them again may begin behind it then."""
        index, copied, restored = self.raft.applied, self._state.copy(), self._restored
        self._report_digest("state", index, self._state.digest())
        self._reached("snapshot-copied", index=index)
        await self._files.sync(snapshots.files(copied))
        self._reached("message-files-synced", index=index)
        if restored != self._restored:
            return  # The leader's snapshot took the place of this state meanwhile, and of its files.
        record = snapshots.encode(copied)
        if not await self.raft.compact(index, record, snapshots.files(copied)):
            return
        self._snapshot_index = max(self._snapshot_index, index)
        self._report_digest("snapshot", index, self._digest_of(record))
        self._reached("snapshot-named", index=index)
        if restored == self._restored:
            in_use = self.raft.files_in_use()
            self._files.remove(name for name in self._files.older_than(copied) if name not in in_use)

    def _restore(self, snapshot: Snapshot) -> None:
        """Raises StorageCorrupt."""
        try:
            copied = snapshots.decode(snapshot.data)
        except ValueError as error:
            raise StorageCorrupt(f"the snapshot of {self.name} at entry {snapshot.index}: {error}") from error
        self._restored += 1
        self._snapshot_index = snapshot.index
        self._reached("about-to-cut-files", index=snapshot.index)
        self._take_over(copied, snapshot.place)
        self._report_digest("restored", snapshot.index, self._state.digest())

    def _take_over(self, copied: CopiedState, place: str) -> None:
        copied = self._files.restore(place, copied)
        self._state = self._parts.state(self._config.file_bytes, self._config.most_queues, copied)
        self._deliveries.clear()

    def _digest_of(self, record: bytes) -> int:
        """Of the state that a record will restore."""
        return self._parts.state(self._config.file_bytes, self._config.most_queues, snapshots.decode(record)).digest()

    # -- what it reports

    def _report_digest(self, event: str, index: int, digest: int) -> None:
        self._host.log(event, group=self.name, index=index, digest=digest)

    def _reached(self, point: str, **values: int) -> None:
        self._host.reached(point, group=self._number, **values)
