"""A slave's side of replication: shake hands, cut the own log to what the master has, follow, ack.

Order is everything here. Before the first ack the cut is durable, or a loss of power could bring the dirty tail
back under an offset that was acked. A new epoch is recorded before its first bytes, or a crash between the two
would leave bytes of the new epoch counted as the old one's. Bytes are acked after they are appended.

No point in common with the master ends it: to go on would mean throwing away a log that may be the better one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.appender import Appender
from system_under_test.rocketmq.broker.ha.wire import (
    MASTER_HANDSHAKE_HEADER_SIZE,
    TRANSFER_HEADER_SIZE,
    SlaveHandshake,
    TransferHeader,
    WireError,
    decode_epoch_entries,
    decode_master_handshake_header,
    decode_transfer_header,
    encode_ack,
    encode_slave_handshake,
)
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, DiskFull, Host
from system_under_test.storage.epoch_file import EpochMap
from system_under_test.storage.errors import BadOffset
from system_under_test.storage.message_store import MessageStore


class NoCommonPoint(Exception):
    """The own log and the master's have no epoch in common: a human has to decide."""


class SlaveClient:
    """Follows one master of one epoch until it is stopped."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        config: BrokerConfig,
        parts: BrokerParts,
        *,
        own_id: int,
        master_address: str,
        master_epoch: int,
        on_other_epoch: Callable[[], None],
    ) -> None:
        self._host = host
        self._store = store
        self._config = config
        self._parts = parts
        self._own_id = own_id
        self._master_address = master_address
        self._master_epoch = master_epoch
        self._on_other_epoch = on_other_epoch
        self._partial = config.sync_from_last_file and store.max_offset == store.min_offset
        self._connection: Connection | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._heard_ns = 0
        self._acked_offset = 0

    def start(self) -> None:
        self._task = self._host.spawn(self._run(), f"slave of {self._master_address}")

    async def stop(self) -> None:
        """After it the log is this client's no more. A cut under way is finished, never left half done."""
        self._stopping = True
        task = self._task
        if task is None or task.done():
            return
        if self._connection is None:
            task.cancel()
        else:
            self._connection.close()
        await asyncio.wait([task])

    async def _run(self) -> None:
        host, config = self._host, self._config
        while not self._stopping:
            try:
                self._connection = await host.network.connect(self._master_address, config.controller_timeout_s)
            except ConnectFailed:
                await host.clock.sleep(config.ha_reconnect_s)
                continue
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
        self._heard_ns = clock.monotonic_ns()
        self._acked_offset = -1
        while not connection.closed:
            await clock.sleep(self._config.ha_heartbeat_s)
            if clock.monotonic_ns() - self._heard_ns > self._config.ha_housekeeping_s * 1e9:
                connection.close()
            elif self._acked_offset >= 0:
                with suppress(ConnectionClosed):
                    connection.write(encode_ack(self._acked_offset))

    async def _replicate(self, connection: Connection) -> None:
        """One connection from handshake to end."""
        store = self._store
        await self._parts.cut_before_following(store)
        connection.write(
            encode_slave_handshake(SlaveHandshake(self._partial, self._config.async_learner, self._own_id))
        )
        self._host.reached("handshake-sent", end=store.max_offset, whole=store.last_message_boundary())
        header = decode_master_handshake_header(await connection.read_exactly(MASTER_HANDSHAKE_HEADER_SIZE))
        entries = decode_epoch_entries(await connection.read_exactly(header.body_size) if header.body_size else b"")
        if header.master_epoch != self._master_epoch:
            # One of the two is behind: an old master that does not know it was deposed, or this slave. To cut the
            # log by the word of an old master could cut what the new one has confirmed.
            if header.master_epoch > self._master_epoch:
                self._on_other_epoch()
            raise WireError(f"master epoch {header.master_epoch}, expected {self._master_epoch}")
        self._host.reached("handshake-answered")
        theirs = EpochMap(entries)
        await self._cut_to(theirs, header.max_offset)
        if self._partial_log(theirs) != self._partial:
            # The master has to know, for a part must not enter the SyncStateSet: say it in a new handshake.
            self._partial = not self._partial
            raise ConnectionClosed("the handshake has to say whether the log is whole")
        appender = self._parts.appender(self._host, store, self._config)
        try:
            self._ack(connection, store.max_offset if store.max_offset > store.min_offset else 0)
            while True:
                transfer = decode_transfer_header(await connection.read_exactly(TRANSFER_HEADER_SIZE))
                body = await connection.read_exactly(transfer.body_size) if transfer.body_size else b""
                self._heard_ns = self._host.clock.monotonic_ns()
                await self._take(connection, appender, transfer, body)
        finally:
            appender.close()

    async def _cut_to(self, theirs: EpochMap, their_end: int) -> None:
        store = self._store
        own_end = store.max_offset
        if own_end == store.min_offset:
            point: int | None = own_end
        else:
            # A log that begins later than the master's can only be compared from where it begins.
            own, comparable = (_from(store.min_offset, epochs) for epochs in (store.epochs.map, theirs))
            point = self._parts.truncation_point(own, own_end, comparable, their_end)
        if point is None:
            raise NoCommonPoint(f"own epochs {store.epochs.map} to {own_end}, the master's {theirs} to {their_end}")
        if point < own_end:
            self._host.reached("about-to-cut-to-master")
            await store.truncate(point)
        await store.epochs.replace(theirs.entries_up_to(point))
        newest = store.epochs.map.last
        if newest is not None:
            self._host.reached("epochs-taken-over", epoch=newest.master_epoch, start=newest.start_offset)

    def _partial_log(self, theirs: EpochMap) -> bool:
        """Whether the own log begins behind the master's, whose first epoch entry begins with its log."""
        store = self._store
        if store.max_offset == store.min_offset:
            return self._config.sync_from_last_file
        return len(theirs) > 0 and store.min_offset > theirs.entries[0].start_offset

    async def _take(self, connection: Connection, appender: Appender, transfer: TransferHeader, body: bytes) -> None:
        store = self._store
        empty = appender.end_offset == store.min_offset
        if transfer.offset != appender.end_offset and not empty:
            raise WireError(f"bytes from {transfer.offset}, the own log ends at {appender.end_offset}")
        newest = store.epochs.map.last
        if newest is None or transfer.master_epoch > newest.master_epoch:
            if transfer.epoch_start_offset < (0 if newest is None else newest.start_offset):
                raise WireError(f"epoch {transfer.master_epoch}:{transfer.epoch_start_offset} cannot follow {newest}")
            self._host.reached("about-to-learn-epoch")
            await store.epochs.append(transfer.master_epoch, transfer.epoch_start_offset)
            self._host.reached("epoch-learnt", epoch=transfer.master_epoch, start=transfer.epoch_start_offset)
        elif (transfer.master_epoch, transfer.epoch_start_offset) != newest:
            raise WireError(f"epoch {transfer.master_epoch}:{transfer.epoch_start_offset}, own newest is {newest}")
        end_offset = self._acked_offset
        if body:
            self._host.reached(
                "batch-received",
                end=store.max_offset,
                confirmed=store.confirm_offset,
                until=transfer.offset + len(body),
            )
            end_offset = await appender.append(transfer.offset, body)
            self._host.reached("batch-appended", end=store.max_offset)
        self._ack(connection, end_offset)
        self._host.reached("ack-sent")
        store.advance_confirm_offset(
            self._parts.slave_confirm_offset(store.confirm_offset, transfer.confirm_offset, store.max_offset)
        )

    def _ack(self, connection: Connection, offset: int) -> None:
        self._acked_offset = offset
        connection.write(encode_ack(offset))


def _from(offset: int, epochs: EpochMap) -> EpochMap:
    """What `epochs` says of the bytes from `offset` on; an epoch that ended before has none there, but is known."""
    return EpochMap((epoch, max(start, offset)) for epoch, start in epochs)
