"""Puts messages into the log as the serving master, and says when they are safe: for whoever has something to write.

A put is written at once or refused at once. What follows is waiting: `acknowledged` as long as a client is to wait,
`confirmed` as long as the role lasts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.acknowledgement import acknowledged
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.new_message import NewMessage
from system_under_test.runtime.host import DiskFull, Host
from system_under_test.storage.errors import LogTruncated, MessageTooLarge
from system_under_test.storage.message_store import FlushMode, MessageStore, PutResult


@dataclass(frozen=True, slots=True)
class Pending:
    """A message that is written and not yet known to be safe."""

    mastership: Mastership
    put: PutResult
    replicated: asyncio.Future[bool]


class Puts:
    def __init__(self, host: Host, store: MessageStore, config: BrokerConfig) -> None:
        self._host = host
        self._store = store
        self._config = config

    def put(self, mastership: Mastership, *messages: NewMessage) -> Pending:
        """Write them one after the other, in one step; what comes back is about the last one, and so about all.

        Raises RemotingError: refused, and nothing was written; SYSTEM_ERROR if there was room for some of them only.
        `mastership` must not have ended.
        """
        if not mastership.enough_in_sync():
            raise RemotingError(
                ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH,
                f"in-sync replicas {list(mastership.view.members)}, at least "
                f"{self._config.min_in_sync_replicas} are needed",
            )
        put = None
        try:
            for message in messages:
                put = self._write(message)
        except (MessageTooLarge, DiskFull) as error:
            if put is not None:
                mastership.appended()
                raise RemotingError(ResponseCode.SYSTEM_ERROR, f"written in part: {error}") from error
            code = ResponseCode.DISK_FULL if isinstance(error, DiskFull) else ResponseCode.MESSAGE_ILLEGAL
            raise RemotingError(code, str(error)) from error
        assert put is not None, "there is something to write"
        self._host.reached("put-appended", end=put.end_offset, in_sync=len(mastership.view.members))
        replicated = mastership.replicated(put.end_offset)
        mastership.appended()
        self._host.reached("put-sent-on")
        return Pending(mastership, put, replicated)

    def _write(self, message: NewMessage) -> PutResult:
        return self._store.put(
            message.topic,
            message.queue_id,
            message.body,
            message.properties,
            born_timestamp_ms=message.born_timestamp_ms,
            born_host=message.born_host,
            flag=message.flag,
            sys_flag=message.sys_flag,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
        )

    async def acknowledged(self, pending: Pending) -> tuple[ResponseCode, str | None]:
        """SUCCESS, or a code that leaves open whether the message will stay."""
        code, remark = await acknowledged(
            self._host, self._store, self._config, pending.mastership, pending.put.end_offset, pending.replicated
        )
        if code is ResponseCode.SUCCESS:
            self._host.reached("put-confirmed", end=pending.put.end_offset)
        else:
            self._host.reached("put-unconfirmed")
        return code, remark

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
        return await pending.replicated
