"""POP under one mastership: gives messages out, and takes what consumers say of them.

What it promises, whatever is killed, cut off or loses its power:
- A message is given out only when its checkpoint is as safe as a send that is acknowledged. Until then no offset of the
  group that a slave could copy, or this broker find again after a restart, has passed it.
- A message comes again unless it was acknowledged, and not before its invisible time is over (`revival.py`).
- A message whose acknowledgement was confirmed does not come again.

How: each step is one append to the log, or two without anything between them, and the ledger changes with it. Nobody
gets between reading a position and writing the checkpoint, so the step is the lock of the queue; what takes time comes
after it. The order of the log does the rest: whatever of it survives is a beginning of it.

A new master first waits until all that its log held is confirmed, and reads the revive log from where all before is
settled. So it knows what its predecessor knew, and refuses to serve before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.acknowledgement import acknowledged, send_on
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.pop.context import PopContext
from system_under_test.rocketmq.broker.pop.ledger import Commit, Ledger, OpenCheckpoint, Progress, RevivePosition
from system_under_test.rocketmq.broker.pop.positions import Positions
from system_under_test.rocketmq.broker.pop.queue_read import QueueKey, QueueRead, read_queue
from system_under_test.rocketmq.broker.pop.records import (
    REVIVE_QUEUES,
    Checkpoint,
    CheckpointKey,
    Ordered,
    Record,
    Settlement,
)
from system_under_test.rocketmq.broker.pop.revival import Revival
from system_under_test.rocketmq.broker.pop.revive_log import ReviveLog
from system_under_test.rocketmq.pop_protocol import (
    ORDERED_REVIVE_QUEUE,
    InitMode,
    PopAnswer,
    PoppedQueue,
    PopRequest,
    retry_topic,
)
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.message_filter import MessageFilter
from system_under_test.storage.message_store import PutResult

MAX_GIVEN_OUT = 100_000
"""Messages that were given out and are not settled; beyond it nothing more is given out."""
MAX_ANSWER_BYTES = 1 << 20
RETRY_EVERY = 5
"""One pop of so many looks into the retry topic first, so that neither starves."""


class PopService:
    """`begin` when the role is taken, `end` when it is lost; `dispatched` whenever messages became readable."""

    revival_type: ClassVar[type[Revival]] = Revival

    def __init__(self, context: PopContext, mastership: AnyMastership) -> None:
        self.mastership = mastership
        self.is_ready = False
        self._context = context
        self._host = context.host
        self._store = context.store
        self._old_end = context.store.end_of_messages
        self._log = ReviveLog(context.host, context.store, context.config.cluster)
        self._ledger = Ledger()
        self._progress = Progress()
        self._revival = self.revival_type(
            context, mastership, self._log, self._ledger, self._progress, self.check_writable
        )
        self._positions = Positions(context.store.consumer_offsets)
        self._turn = 0

    # life

    def begin(self) -> None:
        self._get_ready()

    def end(self) -> None:
        self.is_ready = False
        self._revival.stop()
        self._context.polls.wake_all()

    def dispatched(self) -> None:
        """The log is confirmed further than before."""
        if not self.is_ready:
            self._get_ready()
        elif not self.mastership.ended:
            self._commit_confirmed()

    def _get_ready(self) -> None:
        if self.mastership.ended or self._store.dispatched_offset < self._old_end:
            return
        for queue_id in range(REVIVE_QUEUES):
            for place, record in self._log.records(queue_id, self.first_unread(queue_id)):
                self.replay(record, place)
        self._ledger.begin_anew(self._host.clock.monotonic_ns())
        for found in self._ledger.all_open():
            self._progress.found(found.place)
        self._positions.commit_all()
        self.is_ready = True
        if self._ledger.messages:
            self._host.reached("pop-resumed")
            self._revival.look()

    def first_unread(self, queue_id: int) -> int:
        """Where a new master begins to read a queue of the revive log."""
        return self._log.settled(queue_id)

    def replay(self, record: Record, place: RevivePosition) -> None:
        """Know what a predecessor has written."""
        if isinstance(record, Settlement):
            found = self._ledger.open(record.key)
            self._ledger.settle(record.key, self._log.really_settled(record))
            if found is not None and found.checkpoint.ordered is not None:
                self._positions.raise_to(_queue_of(record.key), _first_left(found))
            return
        self._ledger.add(record, place, 0)
        if record.ordered is not None:
            self._positions.raise_to(_queue_of(record.key), record.key.start_offset)
        elif record.replaces is None:
            self._positions.raise_to(_queue_of(record.key), record.next_offset)

    # what clients ask for

    async def pop(self, request: PopRequest, queues: int, wanted: MessageFilter | None) -> PopAnswer | None:
        """What there is to give out of a topic with so many queues, once it may be given out; None if there is nothing.

        Raises RemotingError.
        """
        await self._context.ensure_topic(self._log.topic)
        while True:
            self.check_writable()
            if self._ledger.messages >= MAX_GIVEN_OUT:
                raise RemotingError(ResponseCode.SYSTEM_BUSY, f"{MAX_GIVEN_OUT} messages are given out and not settled")
            try:
                reads = (self._ordered_reads if request.is_ordered else self._reads)(request, queues, wanted)
                answer, end_offset = self._give_out(request, reads)
            except DiskFull as error:
                raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
            if answer.queues:
                break
            if not reads:
                return None
            # All that was looked at is unwanted, and passed over; others may go on meanwhile.
            await self._host.clock.sleep(0)
        self._host.reached("pop-checkpointed")
        await self.confirm(end_offset)
        self._host.reached("about-to-give-out")
        return answer

    def has_messages(self, request: PopRequest, queues: int) -> bool:
        """Whether a pop would find something, whatever its subscription."""
        now_ns = self._host.clock.monotonic_ns()
        for key in self._turns(request, queues):
            last = self._ledger.ordered(*key)
            is_closed = request.is_ordered and (
                key[1] != request.topic or (last is not None and self.is_blocked(last, request, now_ns))
            )
            if not is_closed and self._store.queue_range(key[1], key[2])[1] > self._position(key):
                return True
        return False

    def peek(self, request: PopRequest, queues: int) -> tuple[tuple[bytes, ...], int]:
        """What a pop would find, and how much beside it; nothing is given out."""
        found: list[bytes] = []
        total = 0
        for key in self._turns(request, queues):
            _, topic, queue_id = key
            offset = self._position(key)
            total += max(0, self._store.queue_range(topic, queue_id)[1] - offset)
            if len(found) < request.max_count:
                found += self._store.get_messages(topic, queue_id, offset, request.max_count - len(found)).messages
        return tuple(found), max(0, total - len(found))

    async def acknowledge(self, deliveries: Sequence[tuple[CheckpointKey, tuple[int, ...]]]) -> int:
        """Settle what these deliveries still hold of these messages; how many that are. Raises RemotingError."""
        self.check_writable()
        settled, put = 0, None
        for named, offsets in deliveries:
            key = self._standing(named)
            held = tuple(sorted({offset for offset in offsets if self._ledger.holds(key, offset)}))
            try:
                if held:
                    put = self._append_settlement(key, held)
                    settled += len(held)
            except DiskFull as error:
                if put is None:
                    raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
                break
        if put is not None:
            self._host.reached("pop-ack-appended")
            await self.confirm_acknowledgement(put.end_offset)
        return settled

    async def change_invisible_time(self, key: CheckpointKey, offset: int, invisible_ms: int) -> Checkpoint | None:
        """Another invisible time from now on: the delivery under a new checkpoint, None if it holds no more.

        Raises RemotingError.
        """
        self.check_writable()
        key = self._standing(key)
        if not self.may_change(key, offset):
            return None
        checkpoint = self.renewal(key, offset, invisible_ms)
        try:
            put = self._append_checkpoint(checkpoint, None)
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        self._host.reached("pop-renewal-appended")
        await self.confirm(put.end_offset)
        return checkpoint

    def _standing(self, key: CheckpointKey) -> CheckpointKey:
        """Of messages that are popped in order RocketMQ's handles may name any of them as the checkpoint's first."""
        found = self._ledger.ordered(key.group, key.topic, key.queue_id)
        is_meant = found is not None and found.checkpoint.key.pop_time_ms == key.pop_time_ms
        return found.checkpoint.key if found is not None and is_meant else key

    def may_change(self, key: CheckpointKey, offset: int) -> bool:
        """Whether this delivery may get another invisible time: if it still stands."""
        return self._ledger.holds(key, offset)

    def renewal(self, key: CheckpointKey, offset: int, invisible_ms: int) -> Checkpoint:
        """The checkpoint that takes the place of that one for this message; in order it keeps its name."""
        found = self._ledger.open(key)
        if found is not None and found.checkpoint.ordered is not None:
            times = found.times(offset) - 1
            ordered = found.checkpoint.ordered._replace(times=(times,))
            return replace(found.checkpoint, invisible_ms=invisible_ms, offsets=(offset,), ordered=ordered)
        name = key._replace(start_offset=offset)
        return Checkpoint(
            key=name._replace(pop_time_ms=self._free_pop_time([name])),
            invisible_ms=invisible_ms,
            offsets=(offset,),
            broker_name=self._context.config.group,
            replaces=key,
        )

    def check_writable(self) -> None:
        """Raises RemotingError where nothing can be written now."""
        mastership = self.mastership
        if mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        if not self.is_ready:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, "the master has not read the revive log yet")
        mastership.require_writable()

    async def confirm_acknowledgement(self, end_offset: int) -> None:
        """As `confirm`."""
        await self.confirm(end_offset)

    async def confirm(self, end_offset: int) -> None:
        """Return when what was appended is as safe as a send that is acknowledged. Raises RemotingError otherwise: it
        may stay, and it may go."""
        mastership, config = self.mastership, self._context.config
        replicated = send_on(self._host, mastership, end_offset)
        code, remark = await acknowledged(self._host, self._store, config, mastership, end_offset, replicated)
        if code is not ResponseCode.SUCCESS:
            raise RemotingError(code, remark or "")

    # reading

    def _reads(self, request: PopRequest, queues: int, wanted: MessageFilter | None) -> list[QueueRead]:
        """Queue by queue until there is enough. Raises DiskFull."""
        reads: list[QueueRead] = []
        count, size = request.max_count, MAX_ANSWER_BYTES
        for key in self._turns(request, queues):
            if count == 0 or size <= 0:
                break
            is_retried = key[1] != request.topic
            offset = self._position(key) if is_retried else self._begin(key, request)
            read = read_queue(
                self._store, key, offset, wanted=wanted, is_retried=is_retried, max_count=count, max_bytes=size
            )
            if read is not None:
                count -= len(read.offsets)
                size -= sum(map(len, read.messages))
                reads.append(read)
        return reads

    def _ordered_reads(self, request: PopRequest, queues: int, wanted: MessageFilter | None) -> list[QueueRead]:
        """Of queues of which nothing is given out that is still invisible: what is left, and what follows it. All that
        is left comes again together, however much is asked for; where there is no room for that, with a later pop.
        Raises DiskFull."""
        reads: list[QueueRead] = []
        count, size, now_ns = request.max_count, MAX_ANSWER_BYTES, self._host.clock.monotonic_ns()
        for key in self._turns(request, queues):
            if key[1] != request.topic:
                continue
            last = self.last_ordered(key)
            if last is not None and self.is_blocked(last, request, now_ns):
                continue
            if count <= 0 or size <= 0:
                break
            begin, most = self._begin(key, request), count
            if last is not None:
                begin = last.left[0]
                most = last.checkpoint.next_offset - begin + max(0, count - len(last.left))
            read = read_queue(self._store, key, begin, wanted=wanted, is_retried=False, max_count=most, max_bytes=size)
            if read is not None and (last is None or read.next_offset >= last.checkpoint.next_offset):
                read = read if last is None else _without_settled(read, last)
                count -= len(read.offsets)
                size -= sum(map(len, read.messages))
                reads.append(read)
        return reads

    def last_ordered(self, key: QueueKey) -> OpenCheckpoint | None:
        """What was popped in order of this queue and is not settled; what retention has deleted is. Raises DiskFull."""
        last = self._ledger.ordered(*key)
        least, _ = self._store.queue_range(key[1], key[2])
        gone = () if last is None else tuple(offset for offset in last.left if offset < least)
        if last is not None and gone:
            put = self._append_settlement(last.checkpoint.key, gone)
            send_on(self._host, self.mastership, put.end_offset)
        return self._ledger.ordered(*key)

    def is_blocked(self, last: OpenCheckpoint, request: PopRequest, now_ns: int) -> bool:
        """Whether nothing of its queue may be given out for this request."""
        ordered = last.checkpoint.ordered
        assert ordered is not None
        is_same_attempt = request.attempt_id != "" and ordered.attempt_id == request.attempt_id
        return last.is_blocking(now_ns) and not is_same_attempt

    def _ordered(self, request: PopRequest, read: QueueRead) -> Ordered | None:
        """How often the messages have come before, where they are popped in order."""
        if not request.is_ordered:
            return None
        last = self._ledger.ordered(*read.key)
        if last is None:
            return Ordered((0,) * len(read.offsets), request.attempt_id, read.next_offset)
        ordered = last.checkpoint.ordered
        again = 1 if ordered is not None and request.attempt_id and ordered.attempt_id == request.attempt_id else 0
        times = tuple(max(0, last.times(offset) - again) for offset in read.offsets)
        return Ordered(times, request.attempt_id, read.next_offset)

    def _turns(self, request: PopRequest, queues: int) -> list[QueueKey]:
        """The queues in the order in which a pop looks into them: each begins at another one."""
        self._turn += 1
        group, topic = request.consumer_group, request.topic
        if request.queue_id >= 0:
            keys = [(group, topic, request.queue_id)]
        else:
            keys = [(group, topic, (self._turn + number) % queues) for number in range(queues)]
        again = (group, retry_topic(group, topic), 0)
        return [again, *keys] if self._turn % RETRY_EVERY == 0 else [*keys, again]

    def _begin(self, key: QueueKey, request: PopRequest) -> int:
        """Where the group goes on, or begins. Raises DiskFull."""
        is_new = request.init_mode is InitMode.MAX and self._positions.of(key) is None
        return self._begin_at_the_end(key) if is_new else self._position(key)

    def _position(self, key: QueueKey) -> int:
        position = self._positions.of(key)
        return self._store.queue_range(key[1], key[2])[0] if position is None else position

    def _begin_at_the_end(self, key: QueueKey) -> int:
        """With the last message, as RocketMQ does. It is written down, or the next master might let the group begin
        later. Raises DiskFull."""
        least, end = self._store.queue_range(key[1], key[2])
        begin = max(least, end - 1)
        put = self._append_checkpoint(self._checkpoint(key, begin, (), self._free_pop_time([]), 0), begin)
        send_on(self._host, self.mastership, put.end_offset)
        return begin

    # writing

    def _give_out(self, request: PopRequest, reads: Sequence[QueueRead]) -> tuple[PopAnswer, int]:
        """One checkpoint for each queue; where the disk fills up before the last one, those that have one. Also where
        the last of them ends. Raises DiskFull."""
        pop_time_ms = self._free_pop_time([CheckpointKey(*read.key, read.start_offset, 0) for read in reads])
        given: list[QueueRead] = []
        end_offset = 0
        for read in reads:
            if not read.offsets:
                self._pass_over(read)
                continue
            checkpoint = replace(
                self._checkpoint(read.key, read.start_offset, read.offsets, pop_time_ms, request.invisible_ms),
                ordered=self._ordered(request, read),
            )
            next_offset = None if request.is_ordered else read.next_offset
            try:
                end_offset = self._append_checkpoint(checkpoint, next_offset).end_offset
            except DiskFull:
                if not given:
                    raise
                break
            given.append(read if checkpoint.ordered is None else replace(read, times=checkpoint.ordered.times))
        return self._answer(request, given, pop_time_ms), end_offset

    def _answer(self, request: PopRequest, reads: Sequence[QueueRead], pop_time_ms: int) -> PopAnswer:
        return PopAnswer(
            pop_time_ms=pop_time_ms,
            invisible_ms=request.invisible_ms,
            revive_queue=ORDERED_REVIVE_QUEUE
            if request.is_ordered
            else self._log.queue_of(request.consumer_group, request.topic),
            queues=tuple(
                PoppedQueue(read.is_retried, read.key[2], read.start_offset, read.offsets, read.times) for read in reads
            ),
            data=b"".join(message for read in reads for message in read.messages),
            rest=sum(read.rest for read in reads),
        )

    def _checkpoint(
        self, key: QueueKey, start_offset: int, offsets: tuple[int, ...], pop_time_ms: int, invisible_ms: int
    ) -> Checkpoint:
        return Checkpoint(
            key=CheckpointKey(*key, start_offset, pop_time_ms),
            invisible_ms=invisible_ms,
            offsets=offsets,
            broker_name=self._context.config.group,
        )

    def _free_pop_time(self, names: Sequence[CheckpointKey]) -> int:
        """Now, by the wall clock, or a little later where that names a checkpoint already."""
        pop_time_ms = self._host.clock.wall_ns() // 1_000_000
        while any(name._replace(pop_time_ms=pop_time_ms) in self._ledger for name in names):
            pop_time_ms += 1
        return pop_time_ms

    def _append_checkpoint(self, checkpoint: Checkpoint, next_offset: int | None) -> PutResult:
        """After it the group goes on at `next_offset`; None where it stays. Raises DiskFull."""
        group, topic, queue_id, _, _ = checkpoint.key
        put = self._log.append(checkpoint, self._log.queue_of(group, topic))
        place = RevivePosition(self._log.queue_of(group, topic), put.queue_offset)
        commit = None if next_offset is None else Commit(group, topic, queue_id, next_offset)
        self._progress.written(put.end_offset, place, commit)
        settled = self._ledger.add(checkpoint, place, self._host.clock.monotonic_ns())
        self._progress.settled(put.end_offset, settled)
        if commit is not None:
            self._positions.move((group, topic, queue_id), commit.offset)
        self._revival.look()
        return put

    def _append_settlement(self, key: CheckpointKey, offsets: tuple[int, ...]) -> PutResult:
        """Raises DiskFull."""
        found = self._ledger.open(key)
        assert found is not None
        settlement = Settlement(key=key, offsets=offsets, broker_name=self._context.config.group)
        put = self._log.append(settlement, found.place.queue_id)
        self._progress.settled(put.end_offset, self._ledger.settle(key, offsets))
        if found.checkpoint.ordered is not None:
            next_offset = _first_left(found)
            self._positions.move(_queue_of(key), next_offset)
            self._progress.moved(put.end_offset, Commit(key.group, key.topic, key.queue_id, next_offset))
            if not found.left:
                self._context.polls.wake(key.topic)
        return put

    def _pass_over(self, read: QueueRead) -> None:
        """Nothing of it is wanted."""
        self._positions.move(read.key, read.next_offset)
        self._progress.passed(Commit(*read.key, read.next_offset))
        self._commit_confirmed()

    def _commit_confirmed(self) -> None:
        """Let groups' offsets follow the confirmed log, and the revive log's own."""
        for commit in self._progress.confirmed(self._store.dispatched_offset):
            self._positions.commit(commit)
        for queue_id in self._progress.queues():
            self._log.note_settled(queue_id, self._progress.revive_offset(queue_id, self._log.end(queue_id)))


def _without_settled(read: QueueRead, last: OpenCheckpoint) -> QueueRead:
    """Of what the last ordered checkpoint gave out only what is left of it."""
    end = last.checkpoint.next_offset
    kept = [i for i, offset in enumerate(read.offsets) if offset >= end or offset in last.left]
    return replace(read, offsets=tuple(read.offsets[i] for i in kept), messages=tuple(read.messages[i] for i in kept))


def _queue_of(key: CheckpointKey) -> QueueKey:
    return key.group, key.topic, key.queue_id


def _first_left(found: OpenCheckpoint) -> int:
    return found.left[0] if found.left else found.checkpoint.next_offset
