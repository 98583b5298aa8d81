"""One slave, as its master serves it: what it was sent, what it has acked, how far behind it is.

Nothing polls. `pump` sends what is due whenever the log has grown or an ack has made room; the one task of a
connection reads acks. What is in flight is bounded by a window over unacked bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from system_under_test.rocketmq.broker.ha.lag import CaughtUp
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.replication import SlaveConnection as AnySlaveConnection
from system_under_test.rocketmq.broker.ha.sync_state_set import SlaveProgress
from system_under_test.rocketmq.broker.ha.wire import (
    ACK_SIZE,
    SLAVE_HANDSHAKE_SIZE,
    HAState,
    SlaveHandshake,
    WireError,
    decode_ack,
    decode_slave_handshake,
    encode_master_handshake,
    encode_transfer,
)
from system_under_test.runtime.host import Connection, ConnectionClosed
from system_under_test.storage.epoch_file import EpochEntry

LAGS_BYTES = (1 << 10, 1 << 14, 1 << 18)
"""A slave that falls behind by so much more than before, or catches up so far, is reported."""


def batch_end(entries: Sequence[EpochEntry], position: int, max_offset: int) -> int:
    """Where a batch that begins in the entry at `position` ends at the latest: with its epoch, for a slave learns
    epochs from headers alone."""
    following = position + 1
    return min(max_offset, entries[following].start_offset) if following < len(entries) else max_offset


def holds_a_part(own_begin: int, master_begin: int) -> bool:
    """Whether a slave whose log began at `own_begin` lacks messages that its master has, and must not be elected."""
    return own_begin > master_begin


def is_possible_ack(offset: int, acked_offset: int, max_offset: int) -> bool:
    """Whether a slave that acked `acked_offset` can hold all before `offset`, of a log that ends at `max_offset`."""
    return acked_offset <= offset <= max_offset


class MasterConnection:
    """Life: handshake received, first ack fixes where the transfer begins, then batches one way and acks the other."""

    def __init__(
        self,
        mastership: Mastership,
        connection: Connection,
        handshake: SlaveHandshake,
        batch_end: Callable[[Sequence[EpochEntry], int, int], int] = batch_end,
        *,
        holds_a_part: Callable[[int, int], bool] = holds_a_part,
        is_possible_ack: Callable[[int, int, int], bool] = is_possible_ack,
    ) -> None:
        self.broker_id = handshake.broker_id
        self.acked_offset: int | None = None
        """None until the first ack."""
        self._mastership = mastership
        self._connection = connection
        self._handshake = handshake
        self._batch_end = batch_end
        self._holds_a_part = holds_a_part
        self._is_possible_ack = is_possible_ack
        self._state = HAState.READY
        self._store = mastership.store
        self._config = mastership.config
        self._clock = mastership.host.clock
        self._caught_up = CaughtUp(mastership.catch_up_now_ns())
        self.heard_ns = self._sent_ns = self._clock.monotonic_ns()
        self._partial = handshake.sync_from_last_file
        self._begin_offset = mastership.store.min_offset
        self._next_offset = 0
        self._window_start = 0
        self._sent_confirm_offset = -1
        self._entries = self._store.epochs.map.entries
        self._position = 0
        self._lag = -1

    @property
    def progress(self) -> SlaveProgress | None:
        """None until the first ack."""
        if self.acked_offset is None:
            return None
        return SlaveProgress(
            acked_offset=self.acked_offset,
            caught_up_ns=self._caught_up.caught_up_ns,
            electable=not (self._handshake.async_learner or self._partial),
        )

    def close(self) -> None:
        self._connection.close()
        self._enter(HAState.SHUTDOWN)

    def _enter(self, state: HAState) -> None:
        if state is not self._state:
            self._state = state
            self._mastership.host.log("ha_state", slave=self.broker_id, state=state.name)

    async def run(self) -> None:
        """Tell the handshake, then take acks until the connection ends. Raises ConnectionClosed, WireError."""
        connection = self._connection
        self._enter(HAState.HANDSHAKE)
        self._mastership.host.reached("handshake-received")
        connection.write(encode_master_handshake(self._store.max_offset, self._mastership.master_epoch, self._entries))
        self._begin(decode_ack(await connection.read_exactly(ACK_SIZE)))
        while True:
            self._take(decode_ack(await connection.read_exactly(ACK_SIZE)))

    def pump(self) -> None:
        """Send all that is due and fits the window. Never blocks, never raises for a connection that has ended."""
        max_offset = self._store.max_offset
        if self.acked_offset is None:
            return
        self._note_lag(max_offset - self.acked_offset)
        if self._next_offset >= max_offset or self._connection.closed:
            return
        try:
            while (
                self._next_offset < max_offset and self._next_offset - self._window_start < self._config.ha_window_bytes
            ):
                self._send_batch(max_offset)
        except ConnectionClosed:
            self._connection.close()

    def tell_confirm_offset(self) -> None:
        """A heartbeat, if the slave does not know the confirm offset yet."""
        if self._sent_confirm_offset != self._mastership.confirm_offset:
            self.heartbeat()

    def housekeep(self, now_ns: int) -> None:
        """Close a connection that has been silent for too long, or has to begin anew; a heartbeat on one that was sent
        nothing."""
        is_silent = now_ns - self.heard_ns > self._config.ha_housekeeping_s * 1e9
        # A slave that holds a part has to hear that the log begins later now: it may hold all of it.
        if is_silent or (self._partial and self._store.min_offset != self._begin_offset):
            self._connection.close()
        elif now_ns - self._sent_ns > self._config.ha_heartbeat_s * 5e8:
            self.heartbeat()

    def heartbeat(self) -> None:
        """An empty transfer: tells epoch and confirm offset, and asks for an ack."""
        if self.acked_offset is None or self._connection.closed:
            return
        try:
            self._send(b"")
        except ConnectionClosed:
            self._connection.close()

    def _begin(self, acked_offset: int) -> None:
        """The first ack is where the slave's log ends; one that holds nothing is given a start."""
        store = self._store
        self.heard_ns = self._clock.monotonic_ns()
        start = acked_offset
        if acked_offset == 0:
            last_file = self._handshake.sync_from_last_file
            start = store.start_of_last_file if last_file else store.min_offset
            self._partial = self._holds_a_part(start, store.min_offset)
        if not store.min_offset <= start <= store.max_offset:
            raise WireError(
                f"slave {self.broker_id} ends at {acked_offset}, outside of {store.min_offset}..{store.max_offset}"
            )
        self._next_offset = self._window_start = start
        self._advance_epoch()
        self.acked_offset = acked_offset
        self._enter(HAState.TRANSFER)
        self._mastership.host.reached("first-ack-received")
        self._mastership.acked(self, acked_offset)
        self.pump()
        self.tell_confirm_offset()

    def _take(self, offset: int) -> None:
        self.heard_ns = self._clock.monotonic_ns()
        acked_offset = self.acked_offset
        assert acked_offset is not None
        if not self._is_possible_ack(offset, acked_offset, self._store.max_offset):
            raise WireError(
                f"slave {self.broker_id} acked {offset} after {acked_offset}; the log ends at {self._store.max_offset}"
            )
        self._caught_up.acked(offset)
        if offset > acked_offset:
            self._mastership.host.reached("ack-received")
            self.acked_offset = offset
            self._window_start = max(self._window_start, offset)
            self._mastership.acked(self, offset)
            self.pump()

    def _note_lag(self, behind_bytes: int) -> None:
        lag = bisect_right(LAGS_BYTES, behind_bytes)
        if lag != self._lag:
            self._lag = lag
            self._mastership.host.log("slave_lag", broker_id=self.broker_id, lag=lag)

    def _send_batch(self, max_offset: int) -> None:
        if self._next_offset < self._store.min_offset:
            self._mastership.host.log("slave_left_behind", broker_id=self.broker_id, at=self._next_offset)
            raise ConnectionClosed("what the slave lacks has expired and was deleted")
        end = self._batch_end(self._entries, self._position, max_offset)
        size = min(end - self._next_offset, self._config.ha_batch_bytes)
        body = self._store.read_for_transfer(self._next_offset, size)
        assert body, "the log is shorter than its max offset"
        self._send(body)
        self._next_offset += len(body)
        self._advance_epoch()

    def _send(self, body: bytes) -> None:
        mastership = self._mastership
        entry = self._entries[self._position]
        confirm_offset = mastership.confirm_offset
        self._connection.write(
            encode_transfer(self._next_offset, entry.master_epoch, entry.start_offset, confirm_offset, body)
        )
        self._sent_confirm_offset = confirm_offset
        self._sent_ns = self._clock.monotonic_ns()
        self._caught_up.note(mastership.catch_up_offset(self._next_offset + len(body)), mastership.catch_up_now_ns())

    def _advance_epoch(self) -> None:
        """To the newest epoch that the next byte belongs to."""
        entries = self._entries
        while self._position + 1 < len(entries) and entries[self._position + 1].start_offset <= self._next_offset:
            self._position += 1


class ElectedOffice:
    """`Office` of a master that the controllers have named: slaves say who they are by a handshake."""

    def __init__(
        self,
        mastership: Mastership,
        batch_end: Callable[[Sequence[EpochEntry], int, int], int] = batch_end,
        *,
        holds_a_part: Callable[[int, int], bool] = holds_a_part,
        is_possible_ack: Callable[[int, int, int], bool] = is_possible_ack,
    ) -> None:
        self.mastership = mastership
        self._batch_end = batch_end
        self._holds_a_part = holds_a_part
        self._is_possible_ack = is_possible_ack

    async def meet(self, connection: Connection) -> MasterConnection:
        """Raises ConnectionClosed, WireError, TimeoutError."""
        mastership = self.mastership
        handshake = decode_slave_handshake(
            await mastership.host.clock.within(
                mastership.config.ha_housekeeping_s, connection.read_exactly(SLAVE_HANDSHAKE_SIZE)
            )
        )
        if mastership.ended:
            raise ConnectionClosed("this broker is the master no more")
        slave = MasterConnection(
            mastership,
            connection,
            handshake,
            self._batch_end,
            holds_a_part=self._holds_a_part,
            is_possible_ack=self._is_possible_ack,
        )
        mastership.attach(slave)
        return slave

    def part(self, slave: AnySlaveConnection) -> None:
        assert isinstance(slave, MasterConnection)
        slave.close()
        self.mastership.detach(slave)
