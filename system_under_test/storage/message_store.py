"""The broker's one storage object: commit log, consume queues, epochs, checkpoint, consumer offsets, kept in step.

What it promises:
- `put` writes to the page cache at once; `flush_to` says when it is durable.
- Readers see a message only when it is whole and lies before the confirm offset, also after a restart.
- The confirm offset never goes back within a process, except below a cut.
- After any crash, `open` finds a log that holds everything flushed and nothing torn, and everything else agrees with
  it: consume queues, epochs, consumer offsets and confirm offset never reach beyond the log.
- `truncate` is durable as a whole before it returns, and a crash before its end leaves what `open` can put right. The
  checkpoint is lowered first (it may lag, never lead), then the log is cut (epochs beyond the log's end are corrected
  at the next open; a log that outlives its epochs would ascribe bytes to the wrong master), then the rest.
- Files are deleted from the log's beginning only, never the last one, and only what is flushed, confirmed and
  dispatched. Queues go on with their offsets whether or not any message of theirs is left; where the log begins is
  durable, with the queues' offsets there, before anything goes.

A device that fails under a write or an fsync raises StorageFailed from then on; the flush task dies of it, and with
it the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.batch import Batch
from system_under_test.storage.checkpoint import Checkpoint, CheckpointFile
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.consume_queue import ConsumeQueue, ConsumeQueues
from system_under_test.storage.errors import BadOffset, MessageTooLarge
from system_under_test.storage.file_ages import FileAges
from system_under_test.storage.file_cleaner import FileAge
from system_under_test.storage.forgotten_topics import ForgottenTopics
from system_under_test.storage.log_beginning import LogBeginning, LogBeginningFile, QueueOffsets
from system_under_test.storage.log_digest import LogDigest
from system_under_test.storage.lookups import Lookups
from system_under_test.storage.message import MessageHeader, decode_header
from system_under_test.storage.message_filter import MAX_FILTERED, MessageFilter
from system_under_test.storage.message_log import MessageLog
from system_under_test.storage.new_message import NewMessage
from system_under_test.storage.store_config import FlushMode, StorageParts, StoreConfig
from system_under_test.storage.store_results import GetResult, GetStatus, PutResult, place_of_read

CONFIRM_LOG_BYTES = 1024
"""The confirm offset moves so far between two events that tell it."""

__all__ = ["FlushMode", "GetResult", "GetStatus", "MessageStore", "PutResult", "StorageParts", "StoreConfig"]


class MessageStore:
    """One replica's store; `open` before anything else, `stop` for a clean end."""

    def __init__(
        self, host: Host, config: StoreConfig, parts: StorageParts | None = None, log: MessageLog | None = None
    ) -> None:
        """`log`: one that somebody else replicates, and reports; usually the store has a commit log of its own."""
        parts = parts or StorageParts()
        directory = config.directory
        self._host = host
        self._disk = host.disk
        self._config = config
        self._parts = parts
        digest = LogDigest(self._written)
        self._log: MessageLog = log or parts.commit_log(
            host.disk, f"{directory}/commitlog", config.segment_bytes, parts.record_format, digest
        )
        self._reports_log = log is None
        self._queues = ConsumeQueues(host.disk, f"{directory}/consumequeue", parts.consume_queue)
        self._index = parts.key_index(host.disk, f"{directory}/index", config.index_slots, config.index_entries)
        self.lookups = Lookups(
            self._log, self._queues, self._index, lambda: self._dispatched_offset, lambda: self.forgotten_topics
        )
        self._checkpoint_file = CheckpointFile(host.disk, f"{directory}/checkpoint")
        self._checkpoint = Checkpoint()
        self._durable_checkpoint: Checkpoint | None = None
        self._abort_path = f"{directory}/abort"
        self._flusher = parts.flusher(config, self._log, host)
        self._queue_offsets: dict[tuple[str, int], int] = {}
        self._topics: dict[str, bytes] = {}
        self._confirm_offset = 0
        self._confirm_due = 0
        self._confirm_reported = 0
        self._dispatched_offset = 0
        self._noted_boundary = 0
        self.cuts = 0
        """How often the log was cut in this life."""
        self._cut_at: int | None = None
        # Held while the checkpoint is written or anything is cut: a checkpoint begun before a cut must not
        # reach the disk after the cut has lowered it.
        self._changes = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self.epochs = parts.epoch_file(host.disk, f"{directory}/epochFileCheckpoint")
        self._beginning = LogBeginningFile(host.disk, f"{directory}/logBeginning")
        self._ages = FileAges(host.disk, f"{directory}/fileAges")
        self._forgotten = ForgottenTopics(host.disk, f"{directory}/config/forgottenTopics.json")
        self.consumer_offsets = parts.consumer_offsets(host.disk, f"{directory}/config/consumerOffset.json")
        self.timer_progress = parts.timer_progress(host.disk, f"{directory}/config/timercheck")
        self.delay_progress = parts.delay_progress(host.disk, f"{directory}/config/delayOffset.json")
        self.unclean_start = False
        """The process before this one did not stop cleanly: its log may be shorter than what it acked."""
        self.needed_from: list[Callable[[], int]] = []
        """Each says from which offset on somebody needs the log: what is behind it stays, however old it is."""
        self.on_dispatched: list[Callable[[str, int, int], None]] = []
        """Each is called as (topic, queue id, new end of the queue) when messages became readable; must not block."""

    @property
    def _own_log(self) -> CommitLog:
        """For what is done to no log that somebody else replicates."""
        assert isinstance(self._log, CommitLog)
        return self._log

    # life

    async def open(self) -> None:
        """Recover, then start flushing and checkpointing. Raises StorageFailed, StorageCorrupt."""
        self.unclean_start = self._disk.exists(self._abort_path)
        known = self._durable_checkpoint = self._checkpoint_file.load()
        self._beginning.load()
        self._ages.load()
        begun = known or self._beginning.current
        self._log.load(None if begun is None else begun.place)
        checkpoint = known if known and known.beginnings == self._log.beginnings else Checkpoint()
        await self._log.recover(checkpoint.checked_offset)
        await self._ages.keep(self._full_segments())
        self._forgotten.load()
        await self._recover_queues(checkpoint)
        self.rebuild_queue_offset_table()
        self.consumer_offsets.load()
        self.delay_progress.load()
        self.timer_progress.load()
        versions_from = self._host.clock.wall_ns()
        self.consumer_offsets.version = versions_from
        self.delay_progress.version = self.timer_progress.version = versions_from
        await self._cut_consumer_offsets()
        await self._recover_epochs()
        self._host.reached("recovered", **self._whole())
        epoch, epoch_start = self.epochs.map.last or (None, None)
        if self._reports_log:
            self._host.log(
                "recovered", start=self.min_offset, end=self.max_offset, epoch=epoch, epoch_start=epoch_start
            )
        await self._write_checkpoint()
        await self._mark_running()
        self._tasks = [
            self._host.spawn(self._flusher.run(), "store flush"),
            self._host.spawn(self._checkpoint_often(), "store checkpoint"),
        ]
        if self._config.cleaning is not None:
            cleaner = self._parts.file_cleaner(self._host, self, self._config.cleaning)
            self._tasks.append(self._host.spawn(cleaner.run(), "file cleaner"))

    async def stop(self) -> None:
        """Flush and checkpoint everything and mark the shutdown as clean; nothing may be written any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.log_confirmed()
        await self._log.flush()
        await self.checkpoint()
        self._disk.remove(self._abort_path)

    # writing

    @property
    def store_host(self) -> bytes:
        """What messages that are put here say of where they were stored."""
        return self._config.store_host

    def put(self, topic: str, queue_id: int, body: bytes, properties: Mapping[str, str] | None = None) -> PutResult:
        """Append a message at the next offset of its queue (page cache only; see `flush_to`).

        Raises MessageTooLarge and DiskFull, when nothing of it was written, and StorageFailed. The log must end
        at a message boundary, as it does from `cut_to_message_boundary` on.
        """
        message = NewMessage(topic=topic, queue_id=queue_id, body=body, properties=properties or {})
        return self.put_all((message,))[0]

    def put_all(self, messages: Sequence[NewMessage]) -> tuple[PutResult, ...]:
        """Append messages, each at the next offset of its queue, with one write: they stay, go and are shown together.

        Raises as `put` does, also where all of them together do not fit into a segment; then nothing was written.
        """
        assert self._cut_at is None, "a put while the log is being cut"
        batch = Batch(messages)
        now_ms = self._host.clock.wall_ns() // 1_000_000
        encoded, results = batch.encode(
            self._queue_offsets,
            physical_offset=self._log.reserve(batch.size),
            store_timestamp_ms=now_ms,
            store_host=self._config.store_host,
        )
        self._log.append(encoded)
        for message, result in zip(messages, results, strict=True):
            self._queue_offsets[message.topic, message.queue_id] = result.queue_offset + 1
        self._flusher.written()
        self.dispatch()
        return results

    def has_room(self, message: NewMessage) -> bool:
        """Whether the log could ever take it."""
        try:
            return self._log.fits(Batch((message,)).size)
        except MessageTooLarge:
            return False

    def append_replicated(self, offset: int, data: bytes) -> None:
        """Append bytes as the master sent them; they may be cut anywhere.

        Raises BadOffset unless `offset` is the log's end, DiskFull, StorageFailed.
        """
        assert self._cut_at is None, "an append while the log is being cut"
        self._own_log.append_raw(offset, data)
        self._flusher.written()
        self.dispatch()

    async def flush_to(self, offset: int, timeout_s: float) -> None:
        """Return when everything before `offset` is durable.

        Raises TimeoutError (it may become durable later), LogTruncated (it was cut), StorageFailed.
        """
        if offset > self._log.flushed_offset:
            await self._host.clock.within(timeout_s, self._flusher.wait(offset))

    # offsets

    @property
    def min_offset(self) -> int:
        return self._log.min_offset

    @property
    def max_offset(self) -> int:
        return self._log.max_offset

    @property
    def flushed_offset(self) -> int:
        return self._log.flushed_offset

    @property
    def start_of_last_file(self) -> int:
        return self._log.start_of_last_file

    @property
    def dispatched_offset(self) -> int:
        """Readers see whole messages up to here; at most the confirm offset, and less only by half a message or a
        segment's blank."""
        return self._dispatched_offset

    @property
    def has_undispatched(self) -> bool:
        """Whether the log holds messages that readers do not see yet; the blank at a segment's end is none."""
        return next(self._headers(self._dispatched_offset, self._log.max_offset), None) is not None

    @property
    def end_of_messages(self) -> int:
        """The end of the last whole message: what readers see up to once all is confirmed, also where a blank ends the
        log."""
        end = self._dispatched_offset
        for header in self._headers(end, self._log.max_offset):
            end = header.physical_offset + header.size
        return end

    @property
    def confirm_offset(self) -> int:
        return self._confirm_offset

    @property
    def is_part(self) -> bool:
        """The log began in the middle of a master's, and lacks messages that had not expired there."""
        beginning = self._beginning.of(self._log.beginnings)
        return beginning is not None and beginning.is_part

    def advance_confirm_offset(self, offset: int) -> None:
        """Take over a confirm offset (at most the log's end) if it is greater, and dispatch up to it."""
        offset = self._parts.confirmable(offset, self._log.max_offset if self._cut_at is None else self._cut_at)
        if offset > self._confirm_offset:
            self._confirm_offset = offset
            self.dispatch()
            if min(self._dispatched_offset, offset) >= self._confirm_due:
                self.log_confirmed()

    def log_confirmed(self) -> None:
        """Tell the event log how far whole messages are confirmed, which is done at intervals while that moves."""
        newest = self.epochs.map.last
        epoch = 0 if newest is None else newest.master_epoch
        self._confirm_reported = self._whole_confirmed_offset()
        if self._reports_log:
            self._host.log("confirmed", offset=self._confirm_reported, master_epoch=epoch)
        self._confirm_due = self._confirm_reported + CONFIRM_LOG_BYTES

    def _headers(self, start: int, end: int) -> Iterator[MessageHeader]:
        """Of the messages that `CommitLog.records` gives."""
        for data, position in self._log.records(start, end):
            yield decode_header(data, position)

    def _whole_confirmed_offset(self) -> int:
        """The end of the last whole message that is confirmed. What readers see counts as that, unless they may see
        more."""
        if not self._config.reads_uncommitted or self._dispatched_offset <= self._confirm_offset:
            return self._dispatched_offset
        end = max(self._log.min_offset, min(self._confirm_reported, self._confirm_offset))
        for header in self._headers(end, self._confirm_offset):
            end = header.physical_offset + header.size
        return end

    def _written(self, start: int, end: int, checksum: int) -> None:
        self._host.log("written", start=start, end=end, checksum=checksum)

    def dispatch(self) -> None:
        """Bring the consume queues up to the confirm offset."""
        end = self._log.max_offset
        limit = end if self._config.reads_uncommitted else self._parts.dispatch_limit(self._confirm_offset, end)
        if limit <= self._dispatched_offset:
            return
        touched: dict[str, ConsumeQueue] = {}
        for header in self._headers(self._dispatched_offset, limit):
            queue = self._queues.get_or_create(header.topic, header.queue_id)
            queue.append(header.queue_offset, header.physical_offset, header.size, header.tags_code)
            self._index.add(header)
            self._dispatched_offset = header.physical_offset + header.size
            touched[queue.name] = queue
        if self._forgotten.offsets:
            self._drop_forgotten(touched.values())
        for listener in self.on_dispatched:
            for queue in touched.values():
                listener(queue.topic, queue.queue_id, queue.max_offset)

    # reading

    def queue_range(self, topic: str, queue_id: int) -> tuple[int, int]:
        """The queue offsets readers may see: [min, max); (0, 0) for a queue without messages."""
        queue = self._queues.get(topic, queue_id)
        return (0, 0) if queue is None else (queue.min_offset, queue.max_offset)

    def queue_end(self, topic: str, queue_id: int) -> int:
        """The queue offset of the next message, as far as this replica knows; what readers do not see yet counts."""
        return max(self._queue_offsets.get((topic, queue_id), 0), self.queue_range(topic, queue_id)[1])

    def get_messages(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_count: int,
        max_bytes: int = 1 << 18,
        wanted: MessageFilter | None = None,
    ) -> GetResult:
        """Up to `max_count` messages from `queue_offset` on, at least one if there is any, else at most `max_bytes`.

        With a filter, those of the next `MAX_FILTERED` that it wants; messages read in vain count as bytes, too.
        Raises DiskError.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return GetResult(status=GetStatus.NO_MATCHED_LOGIC_QUEUE, next_offset=0, min_offset=0, max_offset=0)
        least, end = queue.min_offset, queue.max_offset
        status, next_offset = place_of_read(queue_offset, least, end)
        messages: list[bytes] = []
        end_offset = self._log.max_offset
        if status is GetStatus.FOUND:
            entries = queue.range(queue_offset, max_count if wanted is None else MAX_FILTERED)
            messages, passed = self._parts.select_messages(entries, self._log.read, max_count, max_bytes, wanted)
            next_offset = queue_offset + passed
            if passed:
                last = queue.entry(next_offset - 1)
                end_offset = last.physical_offset + last.size
            if not messages:
                status = GetStatus.NO_MATCHED_MESSAGE
        return GetResult(
            status=status,
            messages=tuple(messages),
            next_offset=next_offset,
            min_offset=least,
            max_offset=end,
            behind_bytes=self._log.max_offset - end_offset,
        )

    def undispatched(self, topic: str) -> Iterator[bytes]:
        """The topic's messages that the log holds and readers do not see yet. Raises DiskError."""
        for header in self._headers(self._dispatched_offset, self._log.max_offset):
            if header.topic == topic:
                yield self._log.read(header.physical_offset, header.size)

    def read_for_transfer(self, offset: int, max_bytes: int) -> bytes:
        """Raw bytes from `offset` on for a slave; ends at the latest where a segment or the log ends."""
        return self._log.read(offset, max_bytes)

    def settle_delay_progress(self) -> None:
        """What was delivered, is confirmed and durable, is progress from now on."""
        safe_end = min(self._confirm_offset, self._log.flushed_offset)
        self.delay_progress.settle(safe_end)
        self.timer_progress.settle(safe_end)

    # topics

    @property
    def forgotten_topics(self) -> Mapping[str, int]:
        """Topic → the physical offset before which it has no messages any more."""
        return self._forgotten.offsets

    async def forget_topic(self, topic: str) -> None:
        """Drop all its messages so far, and what consumer groups have read of it; durable on return.

        A topic of this name that is made later begins where this one ended. Raises StorageFailed, DiskFull.
        """
        async with self._changes:
            living = {name: offset for name, offset in self.forgotten_topics.items() if offset > self.min_offset}
            await self._forget({**living, topic: self.max_offset})
            self.consumer_offsets.drop_topic(topic)
            await self.consumer_offsets.persist()

    async def forget_group(self, group: str) -> None:
        """Drop what a group of consumers has read; durable on return. Raises StorageFailed, DiskFull."""
        self.consumer_offsets.drop_group(group)
        async with self._changes:
            await self.consumer_offsets.persist()

    async def forget_topics(self, offsets: Mapping[str, int]) -> None:
        """Take over what a master has forgotten; durable on return. Raises StorageFailed, DiskFull."""
        async with self._changes:
            await self._forget(offsets)

    async def _forget(self, offsets: Mapping[str, int]) -> None:
        passed_over = [
            topic
            for topic, before in self.forgotten_topics.items()
            if max(offsets.get(topic, 0), self.min_offset) < min(before, self._dispatched_offset)
        ]
        if passed_over:
            # They have messages after all: a restart before this is done has to dispatch them, too.
            await self._save(replace(self._checkpoint, dispatched_offset=self.min_offset))
        await self._forgotten.replace(offsets)
        if passed_over:
            self._dispatch_anew(passed_over)
            self.dispatch()
        self._drop_forgotten(self._queues)

    async def forget_nothing_beyond_the_end(self) -> None:
        """To be called before this replica is the one that writes the log on. Raises StorageFailed, DiskFull."""
        async with self._changes:
            await self._forgotten.replace(self._forgotten.up_to(self.max_offset))

    def topics_with_messages(self) -> dict[str, int]:
        """Topic → how many queues it needs for the messages that the log holds of it, those counted that readers do not
        see yet."""
        topics: dict[str, int] = {}
        for (topic, queue_id), next_offset in self._queue_offsets.items():
            least, end = self.queue_range(topic, queue_id)
            if (end if topic in self.forgotten_topics else max(end, next_offset)) > least:
                topics[topic] = max(topics.get(topic, 0), queue_id + 1)
        return topics

    def _dispatch_anew(self, topics: Iterable[str]) -> None:
        """From the beginning of the log, at the next dispatch; the queues of other topics have those entries."""
        for topic in topics:
            self._queues.drop_topic(topic)
        self._dispatched_offset = self._log.min_offset

    def _drop_forgotten(self, queues: Iterable[ConsumeQueue]) -> None:
        forgotten = self._forgotten.offsets
        for queue in queues:
            if queue.topic in forgotten:
                queue.delete_prefix(forgotten[queue.topic])

    # change of role and truncation

    def rebuild_queue_offset_table(self) -> None:
        """Learn each queue's next offset from the log, messages beyond the confirm offset included."""
        undispatched = self._headers(self._dispatched_offset, self._log.max_offset)
        self._queue_offsets = self._parts.next_queue_offsets(self._queues, undispatched)

    def last_message_boundary(self) -> int:
        """The end of the last whole message."""
        return self._own_log.last_message_boundary()

    async def cut_to_message_boundary(self) -> int:
        """Drop half a message at the tail, and epochs beyond it, durably; returns the log's end."""
        boundary = self._own_log.last_message_boundary()
        if boundary < self._log.max_offset:
            await self.truncate(boundary)
        else:
            await self.epochs.truncate_suffix(boundary)
        return boundary

    async def truncate(self, offset: int) -> None:
        """Cut the log at `offset` and everything that reaches beyond it; durable on return.

        Before the log's first byte that is its beginning anew: nothing is left, and which offsets queues had there is
        not known. Epochs that start beyond `offset` go as well; the caller then takes over its master's. Readers see
        nothing of the cut part from the moment of the call. Waiters for its flush get LogTruncated. Raises
        ValueError beyond the log's end, StorageFailed.
        """
        if offset > self._log.max_offset:
            raise ValueError(f"cannot cut at {offset}: the log ends at {self._log.max_offset}")
        offset = self._own_log.end_after_cut(offset)
        self._host.log("truncated", to=offset, from_=self._log.max_offset)
        self._cut_at = offset
        self._shows_no_more_than(offset)
        async with self._changes:
            self._host.reached("about-to-truncate")
            offset = self._end_after_deletions(offset)
            is_emptied = offset < self._log.min_offset
            if is_emptied:
                await self._beginning.replace(None)
            await self._ages.keep(
                start for start in self._full_segments() if start + self._own_log.segment_bytes <= offset
            )
            await self._lower_checkpoint(offset)
            await self._forgotten.replace(self._forgotten.up_to(offset))
            self._host.reached("checkpoint-lowered")
            await self._own_log.truncate(offset, self._dispatched_offset)
            self._host.reached("log-cut")
            if is_emptied:
                self._queues.begin_anew({})
            await self._queues.persist()
            await self._index.persist()
            self.rebuild_queue_offset_table()
            await self._cut_consumer_offsets()
            await self.epochs.truncate_suffix(offset)
        self._cut_at = None
        if self.forgotten_topics:
            # Queues without messages do not say how far they had come.
            self.dispatch()
        self._host.reached("truncated", **self._whole())

    def _shows_no_more_than(self, offset: int) -> None:
        """Readers see nothing that ends beyond it, and nobody waits for its flush any more."""
        self.cuts += 1
        self._confirm_due = self._confirm_reported = 0
        self._queues.truncate(offset)
        self._index.truncate(offset)
        cut_topics = [topic for topic, before in self.forgotten_topics.items() if before > offset]
        if cut_topics:
            # How many of their messages are left only the log can say.
            self._dispatch_anew(cut_topics)
        elif offset < self._dispatched_offset:
            self._drop_cut_batch()
            self._dispatched_offset = max(
                [self._log.min_offset, *(queue.end_of_last_message for queue in self._queues)]
            )
            self._dispatched_offset = min(self._dispatched_offset, offset)
        self._confirm_offset = min(self._confirm_offset, offset)
        self._noted_boundary = min(self._noted_boundary, self._dispatched_offset)
        self._flusher.truncated(offset)

    def log_was_cut(self, offset: int) -> None:
        """Who replicates the log has cut it at this message boundary, or let it begin anew, then at its beginning.

        What goes with the log follows at once, in memory: a start dispatches such a log anew, whatever was cut.
        """
        self._shows_no_more_than(offset)
        self.rebuild_queue_offset_table()
        self._lower_consumer_offsets()
        if self.forgotten_topics:
            self.dispatch()

    def _end_after_deletions(self, offset: int) -> int:
        """Where a cut at `offset` lets the log end; files may have been deleted since it was asked for."""
        end = self._own_log.end_after_cut(offset)
        if end < offset:
            self._cut_at = end
            self._dispatched_offset = min(self._dispatched_offset, end)
            self._confirm_offset = min(self._confirm_offset, end)
        return end

    def _drop_cut_batch(self) -> None:
        """Of a batch that was shown and is being cut in two nothing stays: the log still says which it was."""
        while True:
            last = max(self._queues, key=lambda queue: queue.end_of_last_message, default=None)
            if last is None or last.end_of_last_message == 0:
                return
            entry = last.entry(last.max_offset - 1)
            if not self._log.goes_on(entry.physical_offset):
                return
            self._queues.truncate(entry.physical_offset)
            self._index.truncate(entry.physical_offset)

    def _whole(self) -> dict[str, int]:
        """How the log, its epochs, its queues and the consumers' offsets go together, for watches."""
        queued = max((queue.end_of_last_message for queue in self._queues), default=0)
        passing = self.consumer_offsets.beyond(self.queue_end)
        newest = self.epochs.map.last
        begun = 0 if newest is None else newest.start_offset
        return {"end": self._log.max_offset, "begun": begun, "queued": queued, "passing": passing}

    async def _lower_checkpoint(self, offset: int) -> None:
        last = self._checkpoint
        await self._save(
            Checkpoint(
                beginnings=last.beginnings,
                min_offset=min(last.min_offset, offset),
                checked_offset=min(last.checked_offset, self._dispatched_offset),
                dispatched_offset=min(last.dispatched_offset, self._dispatched_offset),
                confirm_offset=min(last.confirm_offset, offset),
                queue_entries=self._queues.durable_entries(),
                index_entries=self._index.durable_entries(),
            )
        )

    def _lower_consumer_offsets(self) -> None:
        self.consumer_offsets.clamp(self.queue_end)
        self.delay_progress.cut(self._log.max_offset, self.queue_end)
        self.timer_progress.cut(self._log.max_offset, self.queue_end)

    async def _cut_consumer_offsets(self) -> None:
        self._lower_consumer_offsets()
        await self.consumer_offsets.persist()
        await self.delay_progress.persist()
        await self.timer_progress.persist()

    # files

    def queue_offsets_at(self, offset: int) -> QueueOffsets:
        """Which queue offset each queue's first message has that stands at `offset` or behind it, where that is not 0.

        Raises BadOffset outside of the log.
        """
        if not self.min_offset <= offset <= self.max_offset:
            raise BadOffset(f"the log goes from {self.min_offset} to {self.max_offset}, not to {offset}")
        offsets = self._queues.offsets_at(offset)
        for header in self._headers(self._dispatched_offset, offset):
            offsets[header.topic, header.queue_id] = header.queue_offset + 1
        return offsets

    def knows_beginning_at(self, offset: int) -> bool:
        """Whether the log, if it is empty, can go on at `offset` and give no queue offset twice."""
        beginning = self._beginning.of(self._log.beginnings)
        is_known = offset == 0 if beginning is None else beginning.offset == offset
        return is_known and offset == self._log.max_offset

    async def begin_at(self, offset: int, queues: QueueOffsets, *, is_part: bool) -> None:
        """Let the log, which is empty, begin at a file's start, where queues have these offsets; durable on return.

        Raises BadOffset where it is not empty or no file starts there, StorageFailed, DiskFull.
        """
        async with self._changes:
            self._own_log.check_beginning(offset)
            self._host.reached("about-to-begin-log")
            begun = LogBeginning(
                beginnings=self._log.beginnings + 1, offset=offset, queues=dict(queues), is_part=is_part
            )
            await self._beginning.replace(begun)
            self._host.log("begun", at=offset, is_part=is_part)
            self._own_log.begin_at(offset)
            self._dispatched_offset = self._confirm_offset = self._noted_boundary = offset
            self._queues.begin_anew(queues)
            self.rebuild_queue_offset_table()
            self._host.reached("log-begun")

    async def is_whole_after_all(self) -> None:
        """What this log lacks has expired at its master; durable on return. Raises StorageFailed, DiskFull."""
        async with self._changes:
            beginning = self._beginning.of(self._log.beginnings)
            if beginning is not None:
                await self._beginning.replace(replace(beginning, is_part=False))

    async def delete_files_before(self, offset: int, *, is_forced: bool = False) -> None:
        """Drop the files that end at `offset` or before, as far as they are flushed, confirmed and dispatched; the last
        one stays. Raises StorageFailed, DiskFull; then they are still there after a restart.
        """
        async with self._changes:
            safe = min(self._dispatched_offset, self._confirm_offset, self._log.flushed_offset)
            limit = min(offset, safe, *(needed() for needed in self.needed_from))
            starts = [start for start in self._log.segment_starts() if start <= limit]
            if not starts or starts[-1] <= self._log.min_offset:
                return
            new_min = starts[-1]
            self._host.reached("about-to-delete-files")
            begun = LogBeginning(
                beginnings=self._log.beginnings,
                offset=new_min,
                queues=self._queues.offsets_at(new_min),
                is_part=is_forced and self.is_part,
            )
            await self._beginning.replace(begun)
            self._host.reached("beginning-noted")
            self._host.log("deleted", to=new_min, from_=self._log.min_offset, forced=is_forced)
            self._queues.delete_prefix(new_min)
            self._index.delete_prefix(new_min)
            # Of one state: queues that begin behind messages which the log still has would not show these.
            await self._write_checkpoint(new_min)
            self._own_log.delete_segments_before(new_min)
            self._queues.know_beginnings(begun.queues)
            await self.epochs.delete_prefix(new_min)
            self._host.reached("files-deleted")

    async def full_files(self, elapsed_s: Callable[[], float]) -> list[FileAge]:
        """The files behind which the log goes on, oldest first, each with the time since it was first found full.
        `elapsed_s` is asked at the moment at which that is looked at how many seconds more it is. Raises StorageFailed.
        """
        async with self._changes:
            full = self._full_segments()
            try:
                await self._ages.grow(full, elapsed_s())
            except DiskFull as error:
                self._host.log("ages_skipped", reason=str(error))
            return [FileAge(start + self._own_log.segment_bytes, self._ages.of(start)) for start in full]

    def _full_segments(self) -> tuple[int, ...]:
        return self._log.segment_starts()[:-1]

    # checkpoint

    async def checkpoint(self) -> None:
        """Make consume queues, confirm offset and consumer offsets durable. Raises StorageFailed, DiskFull."""
        async with self._changes:
            await self._write_checkpoint()
            await self.consumer_offsets.persist()
            self.settle_delay_progress()
            await self.delay_progress.persist()
            await self.timer_progress.persist()

    async def _write_checkpoint(self, min_offset: int | None = None) -> None:
        """With `min_offset` for where the log begins, if that is about to change."""
        dispatched, confirm = self._dispatched_offset, self._confirm_offset
        # Only a message boundary will do; the last one noted counts once the flushed offset has passed it.
        if self._log.flushed_offset >= dispatched:
            self._noted_boundary = dispatched
        checked = self._checkpoint.checked_offset
        if checked < self._noted_boundary <= self._log.flushed_offset:
            checked = self._noted_boundary
        self._noted_boundary = dispatched
        await self._save(
            Checkpoint(
                beginnings=self._log.beginnings,
                min_offset=self._log.min_offset if min_offset is None else min_offset,
                checked_offset=checked,
                dispatched_offset=dispatched,
                confirm_offset=confirm,
                queue_entries=await self._queues.persist(),
                index_entries=await self._index.persist(),
            )
        )

    async def _save(self, checkpoint: Checkpoint) -> None:
        if checkpoint != self._durable_checkpoint:
            self._host.reached("about-to-write-checkpoint")
            await self._checkpoint_file.write(checkpoint)
            self._host.reached("checkpoint-written")
            self._checkpoint = self._durable_checkpoint = checkpoint

    async def _checkpoint_often(self) -> None:
        while True:
            await self._host.clock.sleep(self._config.checkpoint_interval_s)
            try:
                await self.checkpoint()
            except DiskFull as error:
                # The old checkpoint stays good; a restart has more to check.
                self._host.log("checkpoint_skipped", reason=str(error))

    async def _recover_queues(self, checkpoint: Checkpoint) -> None:
        dispatched = min(checkpoint.dispatched_offset, self._log.max_offset)
        if dispatched < self._log.min_offset:
            dispatched = self._log.min_offset
        self._checkpoint = checkpoint
        short = self._queues.load(checkpoint.queue_entries)
        self._queues.truncate(dispatched)
        self._queues.delete_prefix(self._log.min_offset)
        beginning = self._beginning.of(self._log.beginnings)
        if beginning is not None:
            self._queues.know_beginnings(beginning.queues)
        elif self._log.min_offset == self._log.max_offset:
            self._queues.begin_anew({})
        self._drop_forgotten(self._queues)
        self._recover_index(checkpoint, dispatched)
        self._dispatched_offset = self._parts.dispatch_resumes_at(dispatched, self._log.max_offset)
        if short:
            # They would hide messages, and the next ones would get offsets that these have.
            self._host.log("queues_cut", topics=list(short))
            self._dispatch_anew(short)
        self._confirm_offset = max(min(checkpoint.confirm_offset, self._log.max_offset), self._log.min_offset)
        self.dispatch()

    def _recover_index(self, checkpoint: Checkpoint, dispatched: int) -> None:
        if self._index.load(checkpoint.index_entries):
            self._index.truncate(dispatched)
            self._index.delete_prefix(self._log.min_offset)
        else:
            for header in self._headers(self._log.min_offset, dispatched):
                self._index.add(header)

    async def _recover_epochs(self) -> None:
        self.epochs.load()
        await self.epochs.truncate_suffix(self._log.max_offset)
        await self.epochs.delete_prefix(self._log.min_offset)
        if not self.epochs.map and self._log.max_offset > self._log.min_offset:
            # Written before there were epochs.
            await self.epochs.append(0, self._log.min_offset)

    async def _mark_running(self) -> None:
        file = self._disk.open(self._abort_path)
        await file.fsync()
        file.close()
