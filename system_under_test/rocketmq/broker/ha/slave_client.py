"""A slave's side of replication: shake hands, cut the own log to what the master has, follow, ack.

Order is everything here. Before the first ack the cut is durable, or a loss of power could bring the dirty tail
back under an offset that was acked. A new epoch is recorded before its first bytes, or a crash between the two
would leave bytes of the new epoch counted as the old one's. Bytes are acked after they are appended.

No point in common with the master ends it: to go on would mean throwing away a log that may be the better one.
"""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.appender import Appender
from system_under_test.rocketmq.broker.ha.following import Following, NoCommonPoint
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
from system_under_test.runtime.host import Connection, ConnectionClosed, Host
from system_under_test.storage.epoch_file import EpochMap
from system_under_test.storage.message_store import MessageStore


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
        self._master_epoch = master_epoch
        self._on_other_epoch = on_other_epoch
        self._partial = config.sync_from_last_file and store.max_offset == store.min_offset
        self._following = Following(host, store, config, master_address, self._replicate, encode_ack)

    def start(self) -> None:
        self._following.start()

    async def stop(self) -> None:
        """After it the log is this client's no more."""
        await self._following.stop()

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
            self._following.ack(connection, store.max_offset if store.max_offset > store.min_offset else 0)
            while True:
                transfer = decode_transfer_header(await connection.read_exactly(TRANSFER_HEADER_SIZE))
                body = await connection.read_exactly(transfer.body_size) if transfer.body_size else b""
                self._following.heard()
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
        await self._following.take(connection, appender, transfer.offset, body)
        store.advance_confirm_offset(
            self._parts.slave_confirm_offset(store.confirm_offset, transfer.confirm_offset, store.max_offset)
        )


def _from(offset: int, epochs: EpochMap) -> EpochMap:
    """What `epochs` says of the bytes from `offset` on; an epoch that ended before has none there, but is known."""
    return EpochMap((epoch, max(start, offset)) for epoch, start in epochs)
