"""One term of office: from taking the role under a master epoch to losing it.

Holds all that belongs to this epoch alone: the slaves' connections, their acks, the view of the SyncStateSet,
the puts that wait. When the role is lost the whole object ends, so no ack gathered under one epoch can ever
complete a put of another, and nobody has to remember to reset anything.

Why a put that ends well here is safe although there is no lease: it ends well only when everybody the
controller may elect from has acked it (allAckInSyncStateSet), and a slave that has taken another role, or
another master, has closed the connection its acks came on. If it acked before that, its log holds the message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.batch_push import BatchPush
from system_under_test.rocketmq.broker.ha.confirm_offset import acked_by, least_acked_offset, master_confirm_offset
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView, SlaveProgress, wanted_members
from system_under_test.rocketmq.broker.ha.waiting_puts import WaitingPuts, never_replicated
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore


class SlaveConnection(Protocol):
    """What a mastership needs of the connection to one of its slaves."""

    broker_id: int
    heard_ns: int

    @property
    def progress(self) -> SlaveProgress | None:
        """None until the first ack."""
        ...

    def pump(self) -> None: ...

    def tell_confirm_offset(self) -> None: ...

    def housekeep(self, now_ns: int) -> None: ...

    def close(self) -> None: ...


class Mastership:
    """Acks come in by `acked`, the log's growth by `replicated`, whose results are what replies wait for."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        config: BrokerConfig,
        *,
        own_id: int,
        master_epoch: int,
        epoch_start_offset: int,
        view: SetView,
        own_acked_offset: Callable[[MessageStore, BrokerConfig], int],
    ) -> None:
        self.host = host
        self.store = store
        self.config = config
        self.own_id = own_id
        self.master_epoch = master_epoch
        self.epoch_start_offset = epoch_start_offset
        self.confirm_offset = store.confirm_offset
        self.ended = False
        self.last_newcomer = 0
        """Who was proposed to join the SyncStateSet last."""
        self.set_due = asyncio.Event()
        """The SyncStateSet may have to change."""
        self.confirm_moved = asyncio.Event()
        self.on_end: list[Callable[[], None]] = []
        """Each is called when the role is lost; must not block."""
        self._own_acked_offset = own_acked_offset
        self._view = view
        self._must_ack = view.must_ack
        self._connections: dict[int, SlaveConnection] = {}
        self._acked: dict[int, int] = {}
        self._waiting = WaitingPuts()
        self._push = BatchPush(host, self._pump).due if config.batch_push else self._pump
        host.log("sync_state_set", members=list(view.members), epoch=view.confirmed.epoch)
        self.advance()

    @property
    def view(self) -> SetView:
        return self._view

    def change_view(self, view: SetView) -> None:
        """The set that has to ack is another from here on."""
        if view.confirmed != self._view.confirmed:
            self.host.log("sync_state_set", members=list(view.members), epoch=view.confirmed.epoch)
        if view.proposed != self._view.proposed:
            self.host.log("alter", proposed=None if view.proposed is None else list(view.proposed))
        self._view = view
        self._must_ack = view.must_ack
        self.advance()

    @property
    def in_sync(self) -> int:
        return len(self._view.members)

    def require_writable(self) -> None:
        if not self.enough_in_sync():
            raise RemotingError(
                ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH,
                f"{self.in_sync} replicas are in sync, at least {self.config.min_in_sync_replicas} are needed",
            )

    def enough_in_sync(self) -> bool:
        """Whether a put may be written at all, or acknowledged."""
        return self.in_sync >= self.config.min_in_sync_replicas

    def slave_available(self) -> bool:
        """The SyncStateSet decides whom a put waits for; where its members are all that is needed, there is no lack."""
        return True

    def attach(self, connection: SlaveConnection) -> None:
        """A slave has shaken hands. Of two connections of one slave the newest counts."""
        older = self._connections.pop(connection.broker_id, None)
        if older is not None:
            self._acked.pop(connection.broker_id, None)
            self.superseded(older)
        self._connections[connection.broker_id] = connection

    def superseded(self, connection: SlaveConnection) -> None:
        """The slave has shaken hands on a newer connection than this one."""
        connection.close()

    def detach(self, connection: SlaveConnection) -> None:
        """The connection has ended. Its acks go with it: who comes back may hold less than it acked."""
        if self._connections.get(connection.broker_id) is connection:
            del self._connections[connection.broker_id]
            self._acked.pop(connection.broker_id, None)
            self.host.log("slave_gone", broker_id=connection.broker_id)
            self.host.reached("slave-gone")
            self.set_due.set()

    def acked(self, connection: SlaveConnection, offset: int) -> None:
        broker_id = connection.broker_id
        if self.ended or self._connections.get(broker_id) is not connection:
            return
        self._acked[broker_id] = offset
        if broker_id in self._must_ack:
            self.advance()
        elif self._view.proposed is None and offset >= max(self.confirm_offset, self.epoch_start_offset):
            self.set_due.set()

    def advance(self) -> None:
        """Acks, the own log or the set have changed: move the confirm offset and let go the puts that are done."""
        if self.ended:
            return
        acked = self._acked
        acked[self.own_id] = self._own_acked_offset(self.store, self.config)
        must_ack = self.must_ack()
        least = least_acked_offset(must_ack, acked)
        confirm_offset = self.confirmable_offset(least)
        if confirm_offset != self.confirm_offset:
            self.confirm_offset = confirm_offset
            self.store.advance_confirm_offset(confirm_offset)
            self.host.reached("confirm-offset-advanced")
            self.confirm_moved.set()
        waiting = self._waiting
        if waiting:
            waiting.release(self.replicated_offset(least))

    def confirmable_offset(self, least_acked: int | None) -> int:
        """How far the log is confirmed while all who must ack have acked `least_acked`; None: one is disconnected."""
        return master_confirm_offset(self.confirm_offset, least_acked)

    def must_ack(self) -> tuple[int, ...]:
        return self._must_ack

    def replicated(self, end_offset: int) -> asyncio.Future[bool]:
        """The log has grown up to `end_offset`: send it on. True once all before that is replicated as configured;
        False if the role is lost before.

        To be called in the order of the offsets.
        """
        if self.ended:
            return never_replicated()
        future = self._waiting.add(end_offset)
        self.advance()
        self._push()
        return future

    def _pump(self) -> None:
        for connection in list(self._connections.values()):
            connection.pump()

    def was_heard(self, broker_id: int, since_ns: int) -> bool:
        """Whether the slave was heard of after `since_ns`."""
        connection = self._connections.get(broker_id)
        return connection is not None and connection.heard_ns > since_ns

    def has_just_shown_all(self, broker_id: int) -> bool:
        """Whether the slave said a moment ago that it holds the whole log."""
        recent_ns = int(self.config.max_time_slave_not_caught_up_s * 1e9) // 3
        if not self.was_heard(broker_id, self.host.clock.monotonic_ns() - recent_ns):
            return False
        return self._acked.get(broker_id) == self.store.max_offset

    def slaves(self) -> dict[int, SlaveProgress]:
        """All slaves that have acked at least once on a connection that lives, by ascending id."""
        progress = ((broker_id, self._connections[broker_id].progress) for broker_id in sorted(self._connections))
        return {broker_id: slave for broker_id, slave in progress if slave is not None}

    def wanted_members(self) -> tuple[int, ...] | None:
        """The SyncStateSet to propose now, or None."""
        return wanted_members(
            self._view,
            self.slaves(),
            own_id=self.own_id,
            confirm_offset=self.confirm_offset,
            epoch_start_offset=self.epoch_start_offset,
            now_ns=self.catch_up_now_ns(),
            max_time_not_caught_up_ns=int(self.config.max_time_slave_not_caught_up_s * 1e9),
            last_newcomer=self.last_newcomer,
        )

    def catch_up_now_ns(self) -> int:
        """The time by which slaves count as caught up."""
        return self.host.clock.monotonic_ns()

    def catch_up_offset(self, sent_end: int) -> int:
        """What a slave has to ack to have been caught up when it was sent the bytes before `sent_end`."""
        return self.store.max_offset

    def tell_confirm_offset(self) -> None:
        for connection in list(self._connections.values()):
            connection.tell_confirm_offset()

    def housekeep(self) -> None:
        now_ns = self.host.clock.monotonic_ns()
        for connection in list(self._connections.values()):
            connection.housekeep(now_ns)
        self.advance()

    def end(self) -> None:
        """The role is lost: connections close, puts that wait end without an answer to their question."""
        self.ended = True
        self.host.log("deposed", master_epoch=self.master_epoch)
        self.host.reached("deposed")
        self.store.log_confirmed()
        for connection in list(self._connections.values()):
            connection.close()
        self._connections.clear()
        self._acked.clear()
        self._waiting.give_up()
        for call in self.on_end:
            call()

    def replicated_offset(self, least: int | None) -> int:
        """The end of what is replicated as configured; -1 for nothing.

        The set may have become too small since a put was let in. The put is written, so it cannot be refused any more;
        it waits for the set to grow again, and if that is too late, nobody says what becomes of it.
        """
        if not self.enough_in_sync():
            return -1
        if self.config.all_ack_in_sync_state_set:
            return -1 if least is None else least
        return acked_by(self.config.in_sync_replicas, self._view.members, self._acked)
