"""A slave's copy of what its master keeps beside its log: topics, groups of consumers, which of them pop, how far these
have read, and how far delayed messages are delivered.

Asked for when the slave begins to follow and periodically from then on; a table travels only if its version is not the
one that was copied last, or if something else than copying has changed the own one since: a cut of the log lowers
offsets, and what a deposed master was about to change may be done late. Only the master of the epoch that the slave
follows answers, so what a deposed master still holds is never copied over what its successor holds.

Consumers' offsets are copied as far as the own queues reach: beyond that a group would pass over messages, if this
slave became master and wrote others there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.topics.administration import (
    FORGOTTEN,
    KNOWN_VERSION,
    MASTER_EPOCH,
    MODES_VERSION,
    OFFSETS,
    VERSION,
)
from system_under_test.rocketmq.broker.topics.tables import Tables
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, DiskFull, Host
from system_under_test.storage.delay_progress import decode_progress
from system_under_test.storage.forgotten_topics import checked
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.timer_progress import decode_checkpoint


class NotTheMaster(Exception):
    """Who was asked is not, or not yet, the master of this epoch."""


class SlaveSync:
    """Copies from one master of one epoch until it is stopped."""

    def __init__(
        self, host: Host, config: BrokerConfig, store: MessageStore, tables: Tables, master: str, master_epoch: int
    ) -> None:
        self._host = host
        self._config = config
        self._store = store
        self._tables = tables
        self._master = master
        self._master_epoch = master_epoch
        self._remoting = RemotingClient(host, config.controller_timeout_s)
        self._copied: dict[RequestCode, tuple[str, object]] = {}
        """The master's version, and what copying has made of the own table."""
        self._is_taking = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._host.spawn(self._run(), f"copy of {self._master}'s tables")

    async def stop(self) -> None:
        """After it nothing of that master is taken any more. What is being written is written to its end."""
        task, self._task = self._task, None
        self._remoting.close()
        if task is not None and not task.done():
            if not self._is_taking:
                task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        clock, config = self._host.clock, self._config
        while self._task is not None:
            wait_s = config.slave_sync_s
            try:
                await self._copy()
            except NotTheMaster:
                wait_s = config.retry_s
            except (ConnectFailed, ConnectionClosed, TimeoutError):
                self._host.reached("copy-failed")
            except (ValueError, KeyError, TypeError, AttributeError, DiskFull) as error:
                self._host.log("copy_refused", master=self._master, reason=str(error))
            if self._task is not None:
                await clock.sleep(wait_s)

    async def _copy(self) -> None:
        await self._copy_one(RequestCode.GET_ALL_TOPIC_CONFIG, self._take_topics)
        beside = await self._copy_one(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._take_groups)
        if MODES_VERSION in beside:
            await self._copy_one(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, self._take_request_modes)
        await self._copy_one(RequestCode.GET_ALL_CONSUMER_OFFSET, self._take_offsets)
        await self._copy_one(RequestCode.GET_ALL_DELAY_OFFSET, self._take_delay_progress)
        await self._copy_one(RequestCode.GET_TIMER_CHECK_POINT, self._take_timer_progress)

    async def _copy_one(self, code: RequestCode, take: Callable[[bytes], Awaitable[bool]]) -> Mapping[str, str]:
        """What the master says beside the table."""
        known, left = self._copied.get(code, (None, None))
        if left != self._own(code):
            known = None
        fields = {MASTER_EPOCH: str(self._master_epoch), **({} if known is None else {KNOWN_VERSION: known})}
        command = RemotingCommand.request(code, fields)
        answer = await self._remoting.invoke(self._master, command, self._config.controller_timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            raise NotTheMaster(answer.remark)
        version = answer.ext_fields[VERSION]
        if version == known or self._task is None:
            return answer.ext_fields
        self._copied.pop(code, None)
        self._is_taking = True
        try:
            if await take(answer.body):
                self._copied[code] = version, self._own(code)
        finally:
            self._is_taking = False
        return answer.ext_fields

    def _own(self, code: RequestCode) -> object:
        """Which state the own table is in."""
        if code is RequestCode.GET_ALL_TOPIC_CONFIG:
            return self._tables.topics.version, self._store.forgotten_topics
        if code is RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG:
            return self._tables.groups.version
        if code is RequestCode.GET_ALL_MESSAGE_REQUEST_MODE:
            return self._tables.request_modes.version
        if code is RequestCode.GET_ALL_DELAY_OFFSET:
            return self._store.delay_progress.version
        if code is RequestCode.GET_TIMER_CHECK_POINT:
            return self._store.timer_progress.version
        return self._store.consumer_offsets.version

    async def _take_topics(self, body: bytes) -> bool:
        await self._store.forget_topics(checked(decode_json(body)[FORGOTTEN]))
        await self._tables.topics.take(body)
        self._host.reached("topics-copied")
        return True

    async def _take_groups(self, body: bytes) -> bool:
        await self._tables.groups.take(body)
        return True

    async def _take_request_modes(self, body: bytes) -> bool:
        await self._tables.request_modes.take(body)
        return True

    async def _take_offsets(self, body: bytes) -> bool:
        offsets: dict[tuple[str, str, int], int] = {}
        for key, queues in decode_json(body)[OFFSETS].items():
            topic, _, group = key.partition("@")
            for queue_id, offset in queues.items():
                if type(offset) is not int or offset < 0:
                    raise ValueError(f"an offset of {offset!r}")
                offsets[group, topic, int(queue_id)] = offset
        is_whole = self._store.consumer_offsets.take(offsets, self._store.queue_end)
        self._host.reached("consumer-offsets-copied")
        return is_whole

    async def _take_timer_progress(self, body: bytes) -> bool:
        store = self._store
        return store.timer_progress.take(decode_checkpoint(body), store.max_offset, store.queue_end)

    async def _take_delay_progress(self, body: bytes) -> bool:
        store = self._store
        return store.delay_progress.take(decode_progress(decode_json(body)), store.max_offset, store.queue_end)
