"""A slave's side of replication: shake hands, cut the own log to what the master has, follow, ack.

Order is everything here. Before the first ack the cut is durable, or a loss of power could bring the dirty tail
back under an offset that was acked. A new epoch is recorded before its first bytes, or a crash between the two
would leave bytes of the new epoch counted as the old one's. Bytes are acked after they are appended.

No point in common with the master suspends it: to go on would mean throwing away a log that may be the better one. That
is not so where the log ends before all that the master has left: what followed has expired there. Then, too, it stops
for manual repair, unless it is told to copy what is left anew.

A log that is empty begins where the master says. Before its first byte there it asks the master where queues stood at
that place, and whether it lacks something that the master has; both are durable before anything is acked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.appender import Appender
from system_under_test.rocketmq.broker.ha.following import Following, NoCommonPoint
from system_under_test.rocketmq.broker.ha.wire import (
    MASTER_HANDSHAKE_HEADER_SIZE,
    TRANSFER_HEADER_SIZE,
    HAState,
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
from system_under_test.runtime.host import Connection, ConnectionClosed, DiskFull, Host
from system_under_test.storage.epoch_file import EpochEntry, EpochMap, common_point, is_before, taken_over
from system_under_test.storage.log_beginning import QueueOffsets
from system_under_test.storage.message_store import MessageStore


class Beginnings(Protocol):
    """What the master says of the places at which a slave's log may begin."""

    async def at(self, offset: int) -> QueueOffsets:
        """Where queues stood there. Raises ConnectionClosed, TimeoutError."""
        ...

    def close(self) -> None: ...


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
        beginnings: Beginnings,
        on_other_epoch: Callable[[], None],
    ) -> None:
        self._host = host
        self._store = store
        self._config = config
        self._parts = parts
        self._own_id = own_id
        self._master_address = master_address
        self._master_epoch = master_epoch
        self._beginnings = beginnings
        self._on_other_epoch = on_other_epoch
        self._state = HAState.READY
        self._their_begin = 0
        self._partial = config.sync_from_last_file if self._is_empty else store.is_part
        self._following = Following(host, store, config, master_address, self._replicate, encode_ack)

    def start(self) -> None:
        self._following.start()

    async def stop(self) -> None:
        """After it the log is this client's no more."""
        self._beginnings.close()
        self._enter(HAState.SHUTDOWN)
        await self._following.stop()

    @property
    def hears_master(self) -> bool:
        """Whether it is connected to its master and follows it."""
        return self._state is HAState.TRANSFER

    @property
    def _is_empty(self) -> bool:
        return self._store.max_offset == self._store.min_offset

    def _enter(self, state: HAState) -> None:
        if state is not self._state and self._state is not HAState.SHUTDOWN:
            self._state = state
            self._host.log("ha_state", master=self._master_address, state=state.name)

    async def _replicate(self, connection: Connection) -> None:
        """One connection from handshake to end."""
        try:
            await self._replicate_until_its_end(connection)
        except (DiskFull, NoCommonPoint):
            self._enter(HAState.SUSPEND)
            raise
        finally:
            if self._state is not HAState.SUSPEND:
                self._enter(HAState.READY)

    async def _replicate_until_its_end(self, connection: Connection) -> None:
        store = self._store
        await self._parts.cut_before_following(store)
        self._enter(HAState.HANDSHAKE)
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
        self._their_begin = theirs.entries[0].start_offset if theirs.entries else 0
        await self._cut_to(theirs, header.max_offset)
        if await self._is_part() != self._partial:
            # The master has to know, for a part must not enter the SyncStateSet: say it in a new handshake.
            self._partial = not self._partial
            raise ConnectionClosed("the handshake has to say whether the log is whole")
        appender = self._parts.appender(self._host, store, self._config)
        self._enter(HAState.TRANSFER)
        try:
            self._following.ack(connection, 0 if self._is_empty else store.max_offset)
            while True:
                transfer = decode_transfer_header(await connection.read_exactly(TRANSFER_HEADER_SIZE))
                body = await connection.read_exactly(transfer.body_size) if transfer.body_size else b""
                self._following.heard()
                await self._take(connection, appender, transfer, body)
        finally:
            appender.close()

    async def _cut_to(self, theirs: EpochMap, their_end: int) -> None:
        store = self._store
        own, own_end = store.epochs.map, store.max_offset
        if not self._is_empty and is_before(own, own_end, theirs):
            await self._forget_expired(own, own_end)
        if self._is_empty:
            point: int | None = store.max_offset
            own = EpochMap()
        else:
            point = common_point(own, store.min_offset, own_end, theirs, their_end, self._parts.truncation_point)
        if point is None:
            raise NoCommonPoint(f"own epochs {own} to {own_end}, the master's {theirs} to {their_end}")
        if point < store.max_offset:
            self._host.reached("about-to-cut-to-master")
            await store.truncate(point)
        known = taken_over(own, theirs, point)
        await store.epochs.replace(known if self._is_empty else known.delete_prefix(store.min_offset))
        newest = store.epochs.map.last
        if newest is not None:
            self._host.reached("epochs-taken-over", epoch=newest.master_epoch, start=newest.start_offset)

    async def _forget_expired(self, own: EpochMap, own_end: int) -> None:
        """Empty a log that ends before what the master has left. Raises NoCommonPoint where a human is to do that."""
        if not self._config.copies_anew_when_expired:
            raise NoCommonPoint(
                f"own epochs {own} to {own_end}, and the master has deleted all before {self._their_begin}: empty this "
                "broker's store but for its identity, or let it do so by copyAnewWhenExpired"
            )
        await self._following.forget_expired(self._their_begin)

    async def _is_part(self) -> bool:
        """Whether the own log lacks what the master has, and had not expired there when it began."""
        store = self._store
        if self._is_empty:
            return self._config.sync_from_last_file
        if store.is_part and not self._parts.holds_a_part(store.min_offset, self._their_begin):
            await store.is_whole_after_all()
        return store.is_part

    async def _begin_at(self, offset: int) -> None:
        """Let the own log, which is empty, begin where the master's bytes do."""
        store = self._store
        if store.knows_beginning_at(offset):
            return
        queues = await self._beginnings.at(offset) if offset else {}
        is_part = self._parts.holds_a_part(offset, self._their_begin)
        await store.begin_at(offset, queues, is_part=is_part)

    def _is_same_epoch(self, transfer: TransferHeader, newest: EpochEntry) -> bool:
        """Whether the header's epoch is the newest known; either log may begin within it."""
        begin = max(self._store.min_offset, self._their_begin)
        starts = max(transfer.epoch_start_offset, begin), max(newest.start_offset, begin)
        return transfer.master_epoch == newest.master_epoch and starts[0] == starts[1]

    async def _take(self, connection: Connection, appender: Appender, transfer: TransferHeader, body: bytes) -> None:
        store = self._store
        if appender.end_offset == store.min_offset:
            await self._begin_at(transfer.offset)
        elif transfer.offset != appender.end_offset:
            raise WireError(f"bytes from {transfer.offset}, the own log ends at {appender.end_offset}")
        newest = store.epochs.map.last
        if newest is None or transfer.master_epoch > newest.master_epoch:
            if transfer.epoch_start_offset < (0 if newest is None else newest.start_offset):
                raise WireError(f"epoch {transfer.master_epoch}:{transfer.epoch_start_offset} cannot follow {newest}")
            self._host.reached("about-to-learn-epoch")
            start = max(transfer.epoch_start_offset, store.min_offset)
            await store.epochs.append(transfer.master_epoch, start)
            self._host.reached("epoch-learnt", epoch=transfer.master_epoch, start=start)
        elif not self._is_same_epoch(transfer, newest):
            raise WireError(f"epoch {transfer.master_epoch}:{transfer.epoch_start_offset}, own newest is {newest}")
        await self._following.take(connection, appender, transfer.offset, body)
        store.advance_confirm_offset(
            self._parts.slave_confirm_offset(store.confirm_offset, transfer.confirm_offset, store.max_offset)
        )
