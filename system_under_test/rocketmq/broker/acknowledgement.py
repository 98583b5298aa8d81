"""What becomes of all that a master appends: it is sent on to slaves, and may be told to a client once it will stay.

Watches learn here of everything that a broker appends unasked.
"""

from __future__ import annotations

import asyncio

from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.runtime.host import Host
from system_under_test.storage.errors import LogTruncated
from system_under_test.storage.message_store import FlushMode, MessageStore


def send_on(host: Host, mastership: AnyMastership, end_offset: int) -> asyncio.Future[bool]:
    """To be called after each append, or after some without anything between them. The result: true once all before
    `end_offset` is replicated as configured, false if the role is lost before."""
    host.reached("put-appended", end=end_offset, in_sync=mastership.in_sync)
    replicated = mastership.replicated(end_offset)
    host.reached("put-sent-on")
    return replicated


async def acknowledged(
    host: Host,
    store: MessageStore,
    config: BrokerConfig,
    mastership: AnyMastership,
    end_offset: int,
    replicated: asyncio.Future[bool],
) -> tuple[ResponseCode, str | None]:
    """SUCCESS once all before `end_offset` is durable and replicated as configured, or a code that leaves open whether
    it will stay. `replicated` is what `send_on` gave."""
    code, remark = await _acknowledged(host, store, config, mastership, end_offset, replicated)
    if code is ResponseCode.SUCCESS:
        host.reached("put-confirmed", end=end_offset, in_sync=mastership.in_sync)
    else:
        host.reached("put-unconfirmed")
    return code, remark


async def _acknowledged(
    host: Host,
    store: MessageStore,
    config: BrokerConfig,
    mastership: AnyMastership,
    end_offset: int,
    replicated: asyncio.Future[bool],
) -> tuple[ResponseCode, str | None]:
    if config.flush_mode is FlushMode.SYNC:
        try:
            await store.flush_to(end_offset, config.flush_wait_s)
        except TimeoutError:
            replicated.cancel()
            return ResponseCode.FLUSH_DISK_TIMEOUT, "not durable in time"
        except LogTruncated:
            replicated.cancel()
            return ResponseCode.FLUSH_DISK_TIMEOUT, "the role was lost and the log cut"
        host.reached("put-flushed")
        mastership.advance()
    if not mastership.slave_available():
        replicated.cancel()
        return ResponseCode.SLAVE_NOT_AVAILABLE, "no slave is there that keeps up"
    try:
        if not replicated.done():
            await host.clock.within(config.replication_wait_s, replicated)
    except TimeoutError:
        return ResponseCode.FLUSH_SLAVE_TIMEOUT, "not replicated in time"
    if not replicated.result():
        return ResponseCode.FLUSH_SLAVE_TIMEOUT, "the role was lost before the message was replicated"
    if not mastership.enough_in_sync():
        # It was replicated while more were, and became durable here only now.
        return ResponseCode.FLUSH_SLAVE_TIMEOUT, "too few replicas are in sync by now"
    return ResponseCode.SUCCESS, None
