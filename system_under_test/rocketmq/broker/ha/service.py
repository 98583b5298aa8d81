"""Replication of one broker, whichever role it has: a listener for slaves, or a client of the master.

Slaves that connect while there is no mastership are turned away and try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.master_connection import MasterConnection
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.slave_client import Beginnings, SlaveClient
from system_under_test.rocketmq.broker.ha.wire import SLAVE_HANDSHAKE_SIZE, WireError, decode_slave_handshake
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.runtime.host import Connection, ConnectionClosed, Host, Listener
from system_under_test.storage.message_store import MessageStore


class HAService:
    """At most one of `mastership` and the slave client is there at a time."""

    def __init__(self, host: Host, store: MessageStore, config: BrokerConfig, parts: BrokerParts) -> None:
        self.mastership: Mastership | None = None
        self._host = host
        self._store = store
        self._config = config
        self._parts = parts
        self._listener: Listener | None = None
        self._client: SlaveClient | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def hears_master(self) -> bool:
        """Whether this broker is a slave whose master serves it now."""
        return self._client is not None and self._client.hears_master

    async def start(self) -> None:
        self._listener = await self._host.network.listen(self._config.ha_listen_port, self._accept)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self.end_mastership()
        await self.end_following()

    def begin_mastership(self, mastership: Mastership) -> None:
        """Slaves are served from now on."""
        self.end_mastership()
        self.mastership = mastership
        self._tasks = [
            self._host.spawn(self._housekeep(mastership), "HA housekeeping"),
            self._host.spawn(self._tell_confirm_offset(mastership), "confirm offset notices"),
        ]

    def end_mastership(self) -> None:
        if self.mastership is not None:
            self.mastership.end()
            self.mastership = None
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def follow(
        self,
        own_id: int,
        master_address: str,
        master_epoch: int,
        beginnings: Beginnings,
        on_other_epoch: Callable[[], None],
    ) -> None:
        """Replicate from the master whose HA port is at `master_address`."""
        await self.end_following()
        self._client = SlaveClient(
            self._host,
            self._store,
            self._config,
            self._parts,
            own_id=own_id,
            master_address=master_address,
            master_epoch=master_epoch,
            beginnings=beginnings,
            on_other_epoch=on_other_epoch,
        )
        self._client.start()

    async def end_following(self) -> None:
        if self._client is not None:
            await self._client.stop()
            self._client = None

    async def _accept(self, connection: Connection) -> None:
        mastership = self.mastership
        slave: MasterConnection | None = None
        try:
            if mastership is None:
                return
            handshake = decode_slave_handshake(
                await self._host.clock.within(
                    self._config.ha_housekeeping_s, connection.read_exactly(SLAVE_HANDSHAKE_SIZE)
                )
            )
            if mastership.ended:
                return
            slave = MasterConnection(
                mastership,
                connection,
                handshake,
                self._parts.batch_end,
                holds_a_part=self._parts.holds_a_part,
                is_possible_ack=self._parts.is_possible_ack,
            )
            mastership.attach(slave)
            await slave.run()
        except (ConnectionClosed, TimeoutError):
            pass
        except WireError as error:
            self._host.log("slave_turned_away", remote=connection.remote, reason=str(error))
        finally:
            connection.close()
            if mastership is not None and slave is not None:
                slave.close()
                mastership.detach(slave)

    async def _housekeep(self, mastership: Mastership) -> None:
        while not mastership.ended:
            await self._host.clock.sleep(self._config.ha_heartbeat_s)
            mastership.housekeep()

    async def _tell_confirm_offset(self, mastership: Mastership) -> None:
        """Idle slaves hear of a confirm offset that moved a little later: most often the next batch tells it."""
        while not mastership.ended:
            await mastership.confirm_moved.wait()
            await self._host.clock.sleep(self._config.ha_confirm_notice_s)
            mastership.confirm_moved.clear()
            mastership.tell_confirm_offset()
