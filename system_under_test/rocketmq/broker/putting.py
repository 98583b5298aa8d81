"""Puts messages into the log as the serving master, and says when they are safe: for all services that write.

A put is written at once or refused at once. What follows is waiting: `acknowledged` as long as a client is to wait,
`confirmed` as long as the role lasts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.acknowledgement import acknowledged, send_on
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.put_rate import PutRate
from system_under_test.rocketmq.message_id import message_id
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.errors import LogTruncated, MessageTooLarge
from system_under_test.storage.message_store import FlushMode, MessageStore, PutResult
from system_under_test.storage.new_message import NewMessage


@dataclass(frozen=True, slots=True)
class Pending:
    """Messages that are written and not yet known to be safe."""

    mastership: AnyMastership
    puts: tuple[PutResult, ...]
    replicated: asyncio.Future[bool]

    @property
    def put(self) -> PutResult:
        """The last one's, and so, of what is safe, about all."""
        return self.puts[-1]


class Puts:
    def __init__(self, host: Host, store: MessageStore, config: BrokerConfig) -> None:
        self._host = host
        self._store = store
        self._config = config
        self.rate = PutRate(host.clock)

    def put(self, mastership: AnyMastership, *messages: NewMessage) -> Pending:
        """Write them as one: they stay or go together.

        Raises RemotingError: refused, and nothing was written.
        `mastership` must not have ended.
        """
        mastership.require_writable()
        try:
            puts = self._store.put_all(messages)
        except MessageTooLarge as error:
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        self.rate.note(len(puts))
        replicated = send_on(self._host, mastership, puts[-1].end_offset)
        return Pending(mastership, puts, replicated)

    def message_id(self, put: PutResult) -> str:
        return message_id(self._store.store_host, put.offset)

    async def acknowledged(self, pending: Pending) -> tuple[ResponseCode, str | None]:
        """SUCCESS, or a code that leaves open whether the message will stay."""
        return await acknowledged(
            self._host, self._store, self._config, pending.mastership, pending.put.end_offset, pending.replicated
        )

    async def confirmed(self, pending: Pending) -> bool:
        """True once the message is as safe as one that was acknowledged; False if the role is lost before.

        However long it takes: a second copy, written because the first one takes its time, would help nobody.
        """
        while self._config.flush_mode is FlushMode.SYNC:
            try:
                await self._store.flush_to(pending.put.end_offset, self._config.flush_wait_s)
            except TimeoutError:
                if pending.mastership.ended:
                    return False
                continue
            except LogTruncated:
                return False
            pending.mastership.advance()
            break
        replicated = pending.replicated
        while await replicated:
            if pending.mastership.enough_in_sync():
                return True
            # It was replicated while more were, and became durable only now: once they are more again. Waits are for
            # ascending offsets, and others may wait for later ones already.
            replicated = pending.mastership.replicated(self._store.max_offset)
        return False
