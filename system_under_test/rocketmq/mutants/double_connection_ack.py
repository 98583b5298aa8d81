"""Acks are counted by connection: a slave that has two of them counts twice.

A put ends well once as many connections of members have acked it as there are members, itself included. A slave that
connected anew before its old connection was known to have ended so acks for another one as well. Broken rule: acks
count by distinct members.
"""

from __future__ import annotations

from functools import cached_property

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.ha.mastership import Mastership, SlaveConnection
from system_under_test.rocketmq.broker.parts import BrokerParts


class MastershipByConnections(Mastership):
    @cached_property
    def older(self) -> list[SlaveConnection]:
        """Connections of slaves that have a newer one, as long as they are not known to have ended."""
        return []

    def superseded(self, connection: SlaveConnection) -> None:
        self.older.append(connection)

    def detach(self, connection: SlaveConnection) -> None:
        if connection in self.older:
            self.older.remove(connection)
        super().detach(connection)

    def acked(self, connection: SlaveConnection, offset: int) -> None:
        super().acked(connection, offset)
        self.advance()

    def housekeep(self) -> None:
        now_ns = self.host.clock.monotonic_ns()
        for connection in list(self.older):
            connection.housekeep(now_ns)
        super().housekeep()

    def end(self) -> None:
        for connection in list(self.older):
            connection.close()
        super().end()

    def replicated_offset(self, least: int | None) -> int:
        all_of_them = self.config.all_ack_in_sync_state_set
        members = self.must_ack() if all_of_them else self.view.members
        count = len(members) if all_of_them else self.config.in_sync_replicas
        progress = (c.progress for c in (*self._connections.values(), *self.older) if c.broker_id in members)
        acked = [self._acked[self.own_id], *(slave.acked_offset for slave in progress if slave is not None)]
        return sorted(acked, reverse=True)[count - 1] if len(acked) >= count else -1


MUTANT = Mutant(
    name="double-connection-ack",
    breaks="distinct members hold an acked message",
    parts=(BrokerParts(mastership=MastershipByConnections),),
)
