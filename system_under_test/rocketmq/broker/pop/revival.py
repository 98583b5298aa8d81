"""Lets messages come again whose invisible time is over, and which nobody has acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.acknowledgement import send_on
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.pop.context import PopContext
from system_under_test.rocketmq.broker.pop.ledger import Ledger, OpenCheckpoint, Progress
from system_under_test.rocketmq.broker.pop.records import Again, CheckpointKey, Settlement
from system_under_test.rocketmq.broker.pop.redelivery import DEFAULT_RETRIES, PutAgain, put_again, written_again
from system_under_test.rocketmq.broker.pop.revive_log import ReviveLog
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.message import Message, MessageInvalid, decode_message
from system_under_test.storage.message_store import GetStatus, PutResult


class Revival:
    """Under one mastership. `look` whenever something may be due earlier; `check_writable` raises RemotingError where
    nothing may be written."""

    def __init__(
        self,
        context: PopContext,
        mastership: AnyMastership,
        log: ReviveLog,
        ledger: Ledger,
        progress: Progress,
        check_writable: Callable[[], None],
    ) -> None:
        self._context = context
        self._host = context.host
        self._store = context.store
        self._mastership = mastership
        self._log = log
        self._ledger = ledger
        self._progress = progress
        self._check_writable = check_writable
        self._due_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        if self._task is None:
            self._task = self._host.spawn(self._run(), "POP revival")
        self._due_changed.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        clock = self._host.clock
        while not self._mastership.ended:
            now_ns = clock.monotonic_ns()
            found = self._ledger.due(now_ns)
            if found is not None and found.checkpoint.ordered is not None:
                # A client that waits for the queue may have it now.
                self._ledger.forget_due()
                self._context.polls.wake(found.checkpoint.key.topic)
                continue
            if found is not None:
                if not await self._let_come_again(found):
                    await clock.sleep(self._context.config.retry_s)
                continue
            due_ns = self._ledger.next_due_ns()
            self._due_changed.clear()
            if due_ns is None:
                await self._due_changed.wait()
            else:
                with suppress(TimeoutError):
                    await clock.within((due_ns - now_ns) / 1e9, self._due_changed.wait())

    async def _let_come_again(self, found: OpenCheckpoint) -> bool:
        """Put what is left of it where the group finds it; False if that cannot be done now."""
        key = found.checkpoint.key
        group = self._context.groups(key.group)
        retries = DEFAULT_RETRIES if group is None else group.retry_max_times
        try:
            self._check_writable()
            messages = self.messages_left(found)
            wanted = {offset: put_again(message, key, offset, retries) for offset, message in messages.items()}
            wanted = self._with_room(found, messages, wanted)
            topics = sorted({again.topic for again in wanted.values()})
            for topic in topics:
                await self._context.ensure_topic(TopicConfig.of(topic, 1))
            self._check_writable()
            for topic in topics:
                # What was acknowledged while the topic was made stays acknowledged.
                offsets = [o for o, again in wanted.items() if again.topic == topic and self._ledger.holds(key, o)]
                self._put_again(key, topic, {offset: (messages[offset], wanted[offset]) for offset in offsets})
        except (DiskFull, RemotingError):
            self._host.reached("pop-not-revived")
            return False
        if self._ledger.open(key) is found:
            # Rotten here; the next master may have it whole.
            self._ledger.put_off(found, self._host.clock.monotonic_ns() + found.checkpoint.invisible_ms * 1_000_000)
        return True

    def messages_left(self, found: OpenCheckpoint) -> dict[int, Message]:
        """The messages that have to come again, by their offsets. What retention has deleted is settled."""
        key = found.checkpoint.key
        messages: dict[int, Message] = {}
        gone: list[int] = []
        for offset in found.left:
            read = self._store.get_messages(key.topic, key.queue_id, offset, 1)
            if offset < read.min_offset or read.status is GetStatus.NO_MATCHED_LOGIC_QUEUE:
                gone.append(offset)
            elif read.messages:
                with suppress(MessageInvalid):
                    messages[offset] = decode_message(read.messages[0], 0)
        if gone:
            self._settle("popped_messages_deleted", found, tuple(gone))
        return messages

    def _with_room(
        self, found: OpenCheckpoint, messages: Mapping[int, Message], wanted: Mapping[int, PutAgain]
    ) -> dict[int, PutAgain]:
        """How they come again: without the properties that say why, where these leave no room. What the log could not
        even take then is set aside, and holds up no other."""
        fitting: dict[int, PutAgain] = {}
        aside: list[int] = []
        for offset, how in wanted.items():
            message = messages[offset]
            for each in (how, how._replace(properties=message.properties)):
                if self._store.has_room(written_again(message, each)):
                    fitting[offset] = each
                    break
            else:
                aside.append(offset)
        if aside:
            self._settle("popped_messages_set_aside", found, tuple(aside))
        return fitting

    def _settle(self, event: str, found: OpenCheckpoint, offsets: tuple[int, ...]) -> None:
        """They do not come again, and `event` says why."""
        key = found.checkpoint.key
        self._host.log(event, topic=key.topic, queue=key.queue_id, offsets=list(offsets))
        settlement = Settlement(key=key, offsets=offsets, broker_name=self._context.config.group)
        with suppress(DiskFull):
            put = self._log.append(settlement, found.place.queue_id)
            self._progress.settled(put.end_offset, self._ledger.settle(key, offsets))
            send_on(self._host, self._mastership, put.end_offset)

    def _put_again(self, key: CheckpointKey, topic: str, wanted: Mapping[int, tuple[Message, PutAgain]]) -> None:
        """Say first where they will be, then put them there. Raises DiskFull; what was put by then is settled."""
        if not wanted:
            return
        found = self._ledger.open(key)
        assert found is not None
        begin = self._store.queue_end(topic, 0)
        again = Again(topic, tuple(range(begin, begin + len(wanted))))
        settlement = Settlement(key=key, offsets=tuple(wanted), broker_name=self._context.config.group, again=again)
        put = self._log.append(settlement, found.place.queue_id)
        self._host.reached("pop-revival-appended")
        try:
            for offset, (message, how) in wanted.items():
                put = self._put_message(message, how)
                self._progress.settled(put.end_offset, self._ledger.settle(key, (offset,)))
            self._host.reached("pop-revived")
        finally:
            send_on(self._host, self._mastership, put.end_offset)

    def _put_message(self, message: Message, again: PutAgain) -> PutResult:
        return self._store.put_all((written_again(message, again),))[0]
