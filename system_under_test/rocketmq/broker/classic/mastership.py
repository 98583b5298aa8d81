"""What a configured master waits for and shows, and how its slaves are served.

An asynchronous master waits for nobody. A synchronous one (dual write) answers a send with success only when a slave
has acked it: where no slave is connected, or none keeps up, it says so at once, and where the ack does not come in
time, after that time; in both cases the message is written and may stay.

What a slave is sent, and what consumers see, is what a loss of power cannot take from the master as configured: under
synchronous flush what is durable, under asynchronous flush all. So under synchronous flush no slave ever runs ahead of
what its master comes back with. Consumers of a synchronous master see only what a slave has acked, as long as one is
connected that keeps up; while there is none they go on with what is durable at the master.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable

from system_under_test.rocketmq.broker.classic.wire import ACK_SIZE, decode_ack, encode_transfer
from system_under_test.rocketmq.broker.config import BrokerConfig, BrokerRole
from system_under_test.rocketmq.broker.ha.batch_push import BatchPush
from system_under_test.rocketmq.broker.ha.master_connection import LAGS_BYTES
from system_under_test.rocketmq.broker.ha.replication import SlaveConnection
from system_under_test.rocketmq.broker.ha.waiting_puts import WaitingPuts, never_replicated
from system_under_test.rocketmq.broker.ha.wire import WireError
from system_under_test.runtime.host import Connection, ConnectionClosed, Host
from system_under_test.storage.message_store import MessageStore


class ClassicMastership:
    """`AnyMastership` of a broker that its configuration makes master."""

    master_epoch = 0

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        config: BrokerConfig,
        own_acked_offset: Callable[[MessageStore, BrokerConfig], int],
    ) -> None:
        self.host = host
        self.store = store
        self.config = config
        self.ended = False
        self.confirm_offset = store.confirm_offset
        self.confirm_moved = asyncio.Event()
        self.on_end: list[Callable[[], None]] = []
        self._own_acked_offset = own_acked_offset
        self._is_dual_write = config.role is BrokerRole.SYNC_MASTER
        self._connections: list[ClassicSlave] = []
        self._waiting = WaitingPuts()
        self._push = BatchPush(host, self._pump).due if config.batch_push else self._pump

    @property
    def in_sync(self) -> int:
        return 1 + len(self._acks())

    def require_writable(self) -> None:
        """A message is written whether or not a slave is there."""

    def enough_in_sync(self) -> bool:
        return True

    def slave_available(self) -> bool:
        return not self._is_dual_write or self._foremost_ack() is not None

    def sendable_offset(self) -> int:
        """All before it may be sent to slaves."""
        return self._own_acked_offset(self.store, self.config)

    def advance(self) -> None:
        if self.ended:
            return
        self._push()
        end = self.sendable_offset()
        acked = self._foremost_ack()
        confirm_offset = self.confirmable_offset(end, acked)
        if confirm_offset > self.confirm_offset:
            self.confirm_offset = confirm_offset
            self.store.advance_confirm_offset(confirm_offset)
        self._waiting.release(self.replicated_offset(acked))

    def _pump(self) -> None:
        end = self.sendable_offset()
        for connection in list(self._connections):
            connection.pump(end)

    def confirmable_offset(self, end: int, acked: int | None) -> int:
        """How far consumers may see a log that may be sent up to `end`, while the foremost slave has acked `acked`;
        None: no slave is there that keeps up."""
        if not self._is_dual_write:
            return end
        return min(end, self.store.flushed_offset if acked is None else acked)

    def replicated_offset(self, acked: int | None) -> int:
        """The end of what is replicated as configured, while the foremost slave has acked `acked`; None: no slave is
        there that keeps up. -1 for nothing."""
        if not self._is_dual_write:
            return self.store.max_offset
        return -1 if acked is None else acked

    def replicated(self, end_offset: int) -> asyncio.Future[bool]:
        if self.ended:
            return never_replicated()
        future = self._waiting.add(end_offset)
        self.advance()
        return future

    def attach(self, connection: ClassicSlave) -> None:
        self._connections.append(connection)

    def detach(self, connection: ClassicSlave) -> None:
        """Its acks go with it: who comes back may hold less than it acked. What that changes is looked at soon."""
        if connection in self._connections:
            self._connections.remove(connection)
            self.host.log("follower_gone", follower=connection.slave)
            self.host.reached("classic-slave-gone")

    def tell_confirm_offset(self) -> None:
        """Slaves of this protocol show what they have."""

    def housekeep(self) -> None:
        now_ns = self.host.clock.monotonic_ns()
        for connection in list(self._connections):
            connection.housekeep(now_ns)
        self.advance()

    def end(self) -> None:
        self.ended = True
        self.store.log_confirmed()
        for connection in list(self._connections):
            connection.close()
        self._connections.clear()
        self._waiting.give_up()
        for call in self.on_end:
            call()

    def _foremost_ack(self) -> int | None:
        """Of the slaves that keep up, how far the one that holds most does; None if there is none.

        One that has just begun to copy a long log is not waited for: consumers would see nothing new all that time.
        """
        acked = max(self._acks(), default=None)
        if acked is None or self.store.max_offset - acked >= self.config.ha_max_gap_bytes:
            return None
        return acked

    def _acks(self) -> list[int]:
        return [slave.acked_offset for slave in self._connections if slave.acked_offset is not None]


class ClassicSlave:
    """`SlaveConnection`: the first ack says where the transfer begins, then batches go one way and acks the other."""

    def __init__(self, mastership: ClassicMastership, connection: Connection) -> None:
        self.slave = connection.remote
        self.acked_offset: int | None = None
        """None until the first ack."""
        self._mastership = mastership
        self._store = mastership.store
        self._config = mastership.config
        self._clock = mastership.host.clock
        self._connection = connection
        self.heard_ns = self._sent_ns = self._clock.monotonic_ns()
        self._next_offset = 0
        self._lag = -1

    def close(self) -> None:
        self._connection.close()

    async def run(self) -> None:
        """Raises ConnectionClosed, WireError."""
        self._begin(decode_ack(await self._connection.read_exactly(ACK_SIZE)))
        while True:
            self._take(decode_ack(await self._connection.read_exactly(ACK_SIZE)))

    def pump(self, end: int) -> None:
        """Send all before `end` that fits the window. Never blocks, never raises for a connection that has ended."""
        acked = self.acked_offset
        if acked is None:
            return
        self._note_lag(self._store.max_offset - acked)
        # An empty slave's first ack is 0, wherever the log begins.
        window_end = max(acked, self._store.min_offset) + self._config.ha_window_bytes
        while self._next_offset < min(end, window_end) and not self._connection.closed:
            if self._next_offset < self._store.min_offset:
                self._mastership.host.log("follower_left_behind", follower=self.slave, at=self._next_offset)
                self._connection.close()
                return
            size = min(end - self._next_offset, self._config.ha_batch_bytes)
            self._send(self._store.read_for_transfer(self._next_offset, size))

    def housekeep(self, now_ns: int) -> None:
        """Close a connection that has been silent for too long; a heartbeat on one that was sent nothing."""
        if now_ns - self.heard_ns > self._config.ha_housekeeping_s * 1e9:
            self._connection.close()
        elif self.acked_offset is not None and now_ns - self._sent_ns > self._config.ha_heartbeat_s * 5e8:
            self._send(b"")

    def _begin(self, acked_offset: int) -> None:
        """A log that holds nothing is given a start, one that ends elsewhere than within this one is turned away."""
        store = self._store
        self.heard_ns = self._clock.monotonic_ns()
        start = acked_offset
        if acked_offset == 0:
            start = store.start_of_last_file if self._config.sync_from_last_file else store.min_offset
        end = self._mastership.sendable_offset()
        if start > end:
            self._mastership.host.log("follower_ahead", follower=self.slave, follower_end=acked_offset, own_end=end)
        if not store.min_offset <= start <= end:
            raise WireError(f"slave {self.slave} ends at {acked_offset}, outside of {store.min_offset}..{end}")
        self._next_offset = start
        self.acked_offset = acked_offset
        self._mastership.host.reached("classic-slave-begun")
        self._mastership.advance()

    def _take(self, offset: int) -> None:
        self.heard_ns = self._clock.monotonic_ns()
        acked_offset = self.acked_offset
        assert acked_offset is not None
        if offset > max(self._next_offset, acked_offset) or offset < acked_offset:
            raise WireError(f"slave {self.slave} acked {offset} after {acked_offset}, and was sent {self._next_offset}")
        if offset > acked_offset:
            self._mastership.host.reached("classic-ack-received")
            self.acked_offset = offset
            self._mastership.advance()

    def _send(self, body: bytes) -> None:
        try:
            self._connection.write(encode_transfer(self._next_offset, body))
        except ConnectionClosed:
            self._connection.close()
            return
        self._next_offset += len(body)
        self._sent_ns = self._clock.monotonic_ns()

    def _note_lag(self, behind_bytes: int) -> None:
        lag = bisect_right(LAGS_BYTES, behind_bytes)
        if lag != self._lag:
            self._lag = lag
            self._mastership.host.log("follower_lag", follower=self.slave, lag=lag)


class ClassicOffice:
    """`Office` of a configured master: every broker that connects is a slave."""

    def __init__(self, mastership: ClassicMastership) -> None:
        self.mastership = mastership

    async def meet(self, connection: Connection) -> ClassicSlave:
        slave = ClassicSlave(self.mastership, connection)
        self.mastership.attach(slave)
        return slave

    def part(self, slave: SlaveConnection) -> None:
        assert isinstance(slave, ClassicSlave)
        self.mastership.detach(slave)
