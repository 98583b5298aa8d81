"""Replication of one broker, whichever role it has: a listener for slaves, or a client of the master.

Slaves that connect while there is no mastership are turned away and try again.
"""

from __future__ import annotations

import asyncio

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.replication import AnyMastership, Follower, Office, SlaveConnection
from system_under_test.rocketmq.broker.ha.wire import WireError
from system_under_test.runtime.host import Connection, ConnectionClosed, Host, Listener


class HAService:
    """At most one of an office and a follower is there at a time."""

    def __init__(self, host: Host, config: BrokerConfig) -> None:
        self._host = host
        self._config = config
        self._listener: Listener | None = None
        self._office: Office | None = None
        self._follower: Follower | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def mastership(self) -> AnyMastership | None:
        """None while this broker is not the master."""
        return None if self._office is None else self._office.mastership

    @property
    def hears_master(self) -> bool:
        """Whether this broker is a slave whose master serves it now."""
        return self._follower is not None and self._follower.hears_master

    async def start(self) -> None:
        self._listener = await self._host.network.listen(self._config.ha_listen_port, self._accept)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self.end_mastership()
        await self.end_following()

    def begin_mastership(self, office: Office) -> None:
        """Slaves are served from now on."""
        self.end_mastership()
        self._office = office
        self._tasks = [
            self._host.spawn(self._housekeep(office.mastership), "HA housekeeping"),
            self._host.spawn(self._tell_confirm_offset(office.mastership), "confirm offset notices"),
        ]

    def end_mastership(self) -> None:
        if self._office is not None:
            self._office.mastership.end()
            self._office = None
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def follow(self, follower: Follower) -> None:
        """Copy a master's log."""
        await self.end_following()
        self._follower = follower
        follower.start()

    async def end_following(self) -> None:
        if self._follower is not None:
            await self._follower.stop()
            self._follower = None

    async def _accept(self, connection: Connection) -> None:
        office = self._office
        slave: SlaveConnection | None = None
        try:
            if office is None:
                return
            slave = await office.meet(connection)
            await slave.run()
        except (ConnectionClosed, TimeoutError):
            pass
        except WireError as error:
            self._host.log("slave_turned_away", remote=connection.remote, reason=str(error))
        finally:
            connection.close()
            if office is not None and slave is not None:
                office.part(slave)

    async def _housekeep(self, mastership: AnyMastership) -> None:
        while not mastership.ended:
            await self._host.clock.sleep(self._config.ha_heartbeat_s)
            mastership.housekeep()

    async def _tell_confirm_offset(self, mastership: AnyMastership) -> None:
        """Idle slaves hear of a confirm offset that moved a little later: most often the next batch tells it."""
        while not mastership.ended:
            await mastership.confirm_moved.wait()
            await self._host.clock.sleep(self._config.ha_confirm_notice_s)
            mastership.confirm_moved.clear()
            mastership.tell_confirm_offset()
