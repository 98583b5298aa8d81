"""A slave's connection to its master: made, watched, and made again whenever it ends, until the slave stops.

What travels on it is the business of who uses this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.appender import Appender
from system_under_test.rocketmq.broker.ha.wire import WireError
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, DiskFull, Host
from system_under_test.storage.errors import BadOffset
from system_under_test.storage.message_store import MessageStore


class NoCommonPoint(Exception):
    """The own log and the master's have no epoch in common: a human has to decide."""


class Following:
    """`replicate` has a connection from its beginning to its end; `encode_ack` makes an offset what is sent."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        config: BrokerConfig,
        master_address: str,
        replicate: Callable[[Connection], Awaitable[None]],
        encode_ack: Callable[[int], bytes],
    ) -> None:
        self.acked_offset = 0
        self._host = host
        self._store = store
        self._config = config
        self._master_address = master_address
        self._replicate = replicate
        self._encode_ack = encode_ack
        self._connection: Connection | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._heard_ns = 0

    def start(self) -> None:
        self._task = self._host.spawn(self._run(), f"slave of {self._master_address}")

    async def stop(self) -> None:
        """After it the log is nobody's. A cut under way is finished, never left half done."""
        self._stopping = True
        task = self._task
        if task is None or task.done():
            return
        if self._connection is None:
            task.cancel()
        else:
            self._connection.close()
        await asyncio.wait([task])

    def heard(self) -> None:
        self._heard_ns = self._host.clock.monotonic_ns()

    def ack(self, connection: Connection, offset: int) -> None:
        """Raises ConnectionClosed."""
        self.acked_offset = offset
        connection.write(self._encode_ack(offset))

    async def forget_expired(self, master_begin: int) -> None:
        """Empty the log, which ends before all that the master has left; durable on return. Raises StorageFailed."""
        store = self._store
        self._host.log("copied_anew", end=store.max_offset, begin=master_begin)
        self._host.reached("about-to-copy-anew")
        await store.truncate(store.min_offset)

    async def take(self, connection: Connection, appender: Appender, offset: int, body: bytes) -> None:
        """Write what the master sent, if anything, and ack. Raises BadOffset, DiskFull, ConnectionClosed."""
        host, store, end_offset = self._host, self._store, self.acked_offset
        if body:
            until = offset + len(body)
            host.reached("batch-received", end=store.max_offset, confirmed=store.confirm_offset, until=until)
            end_offset = await appender.append(offset, body)
            host.reached("batch-appended", end=store.max_offset)
        self.ack(connection, end_offset)
        host.reached("ack-sent")

    async def _run(self) -> None:
        host, config = self._host, self._config
        while not self._stopping:
            try:
                self._connection = await host.network.connect(self._master_address, config.controller_timeout_s)
            except ConnectFailed:
                await host.clock.sleep(config.ha_reconnect_s)
                continue
            self.heard()
            # Before the watch runs: a slave that compares no logs acks at once.
            self.acked_offset = -1
            watch = host.spawn(self._watch(self._connection), "slave's watch")
            try:
                await self._replicate(self._connection)
            except (ConnectionClosed, TimeoutError):
                pass
            except (WireError, BadOffset, DiskFull) as error:
                host.log("replication_stopped", master=self._master_address, reason=str(error))
            except NoCommonPoint as error:
                host.log("manual_repair_needed", master=self._master_address, reason=str(error))
                return
            finally:
                watch.cancel()
                self._connection.close()
                self._connection = None
            if not self._stopping:
                await host.clock.sleep(config.ha_reconnect_s)

    async def _watch(self, connection: Connection) -> None:
        """Repeat the ack from time to time, and give up a connection that has been silent for too long."""
        clock = self._host.clock
        while not connection.closed:
            await clock.sleep(self._config.ha_heartbeat_s)
            if clock.monotonic_ns() - self._heard_ns > self._config.ha_housekeeping_s * 1e9:
                connection.close()
            elif self.acked_offset >= 0:
                with suppress(ConnectionClosed):
                    connection.write(self._encode_ack(self.acked_offset))
