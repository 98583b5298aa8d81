"""A configured slave's side of replication: make sure that the own log is a part of the master's, then follow and ack.

In this order: connect; compare; say where the own log ends. A master that starts anew after the comparison ends the
connection, so what was compared holds for as long as it lasts.

A slave that has more than its master, or something else (the master lost the end of its log, with its power or its
disk), never goes on as if nothing were. Where the two logs have a beginning in common, what the slave has beyond it is
kept in a file of its own, durably, before the log is cut there: messages may be in it that were acknowledged and that
the master lost. Where they have none, the log is left as it is, and read as before, until a human decides; the slave
looks again at intervals. So it is where the master has deleted all that the slave has, for it has expired there, unless
the slave is told to copy what is left anew. A log that was not compared, for one of the two is of version 4, is taken
for parted where what the master sends begins in the middle of a message.

A log that is empty begins where the master's bytes do; where queues stood there the slave asks first.
"""

from __future__ import annotations

from system_under_test.remoting.client import RemotingClient
from system_under_test.rocketmq.broker.classic.log_comparison import Expired, NotComparable, QuestionUnknown
from system_under_test.rocketmq.broker.classic.surplus import set_aside
from system_under_test.rocketmq.broker.classic.wire import TRANSFER_HEADER_SIZE, decode_transfer_header, encode_ack
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.appender import Appender
from system_under_test.rocketmq.broker.ha.following import Following
from system_under_test.rocketmq.broker.ha.log_beginnings import NO_EPOCH, MastersBeginnings
from system_under_test.rocketmq.broker.ha.wire import HAState, WireError
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.version import Version
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.message_store import MessageStore


class ClassicFollower:
    """`Follower` of the master that takes requests at `master` and slaves at `master_ha`."""

    def __init__(
        self, host: Host, store: MessageStore, config: BrokerConfig, parts: BrokerParts, *, master: str, master_ha: str
    ) -> None:
        self.state = HAState.READY
        """SUSPEND while a human has to decide, TRANSFER once the master knows where this log ends."""
        self._host = host
        self._store = store
        self._config = config
        self._parts = parts
        self._master = master
        self._remoting = RemotingClient(host, config.controller_timeout_s)
        self._beginnings = MastersBeginnings(host, master, NO_EPOCH, config.controller_timeout_s)
        self._is_served = False
        self._is_compared = False
        self._following = Following(host, store, config, master_ha, self._replicate, encode_ack)

    def start(self) -> None:
        self._following.start()

    async def stop(self) -> None:
        self._remoting.close()
        self._beginnings.close()
        await self._following.stop()

    @property
    def hears_master(self) -> bool:
        """Whether the master lives; also while a human has to decide, for consumers are to go to it."""
        return self._is_served

    async def _replicate(self, connection: Connection) -> None:
        """One connection from its beginning to its end."""
        try:
            await self._replicate_until_its_end(connection)
        finally:
            self._is_served = False
            if self.state is not HAState.SUSPEND:
                self.state = HAState.READY

    async def _replicate_until_its_end(self, connection: Connection) -> None:
        host, store = self._host, self._store
        try:
            common = await self._end_in_common()
        except (ConnectFailed, NotComparable) as error:
            host.log("log_not_compared", master=self._master, reason=str(error))
            raise ConnectionClosed("the logs could not be compared") from error
        self._is_served = True
        if common is None:
            self._wait_for_a_human("no part of the logs is equal")
            # Without a first ack the master sends nothing, and ends the connection when it has been silent for long.
            await connection.read_exactly(1)
            raise WireError("the master sent something before it was asked from where on")
        if common < store.max_offset:
            await self._cut_at(common)
        begun = store.max_offset
        appender = self._parts.appender(host, store, self._config)
        try:
            self._show_all()
            self.state = HAState.TRANSFER
            self._following.ack(connection, store.max_offset if store.max_offset > store.min_offset else 0)
            while True:
                header = decode_transfer_header(await connection.read_exactly(TRANSFER_HEADER_SIZE))
                body = await connection.read_exactly(header.size) if header.size else b""
                self._following.heard()
                await self._take(connection, appender, header.offset, body)
        except StorageCorrupt as error:
            if self._is_compared or store.dispatched_offset < begun:
                raise
            await self._part(connection, str(error))
        finally:
            appender.close()

    async def _part(self, connection: Connection, reason: str) -> None:
        """What a master sends whose log was not compared begins in the middle of a message: a human has to decide.

        Nothing is acked, so that the master ends the connection; it may have learned to compare when asked again.
        """
        self._following.acked_offset = -1
        await self._store.truncate(self._store.dispatched_offset)
        self._wait_for_a_human(reason)
        while True:
            await connection.read_exactly(1)

    def _wait_for_a_human(self, reason: str) -> None:
        self.state = HAState.SUSPEND
        self._host.log("parted", start=self._store.min_offset, end=self._store.max_offset)
        self._host.log("manual_repair_needed", master=self._master, reason=reason)

    async def _end_in_common(self) -> int | None:
        """A slave, or a master, of version 4 trusts that a slave's log is a part of its master's."""
        store = self._store
        self._is_compared = self._config.version is not Version.V4
        if not self._is_compared:
            return store.max_offset
        try:
            return await self._parts.end_in_common(
                store, self._remoting, self._master, self._config.controller_timeout_s
            )
        except Expired as expired:
            return await self._forget_expired(expired.master_begin)
        except QuestionUnknown:
            self._is_compared = False
            self._host.log("log_not_compared", master=self._master, reason="the master is of a version that cannot")
            return store.max_offset

    async def _forget_expired(self, master_begin: int) -> int | None:
        """Empty a log that ends before what the master has left, where it may be emptied; returns its end then."""
        store = self._store
        if not self._config.copies_anew_when_expired:
            return None
        await self._following.forget_expired(master_begin)
        return store.max_offset

    async def _begin_at(self, offset: int) -> None:
        """Let the own log, which is empty, begin where the master's bytes do."""
        if self._store.knows_beginning_at(offset):
            return
        asks = offset and self._config.version is not Version.V4
        queues = await self._beginnings.at(offset) if asks else {}
        await self._store.begin_at(offset, queues, is_part=self._config.sync_from_last_file and offset > 0)

    async def _cut_at(self, common: int) -> None:
        """To a message boundary, so that the log is whole messages up to its end."""
        host, store = self._host, self._store
        path = await set_aside(host, store, self._config.store_path, common)
        host.log("set_aside", path=path, start=common, end=store.max_offset)
        host.reached("surplus-set-aside")
        await store.truncate(common)
        await store.cut_to_message_boundary()

    async def _take(self, connection: Connection, appender: Appender, offset: int, body: bytes) -> None:
        if appender.end_offset == self._store.min_offset:
            await self._begin_at(offset)
        elif offset != appender.end_offset:
            raise WireError(f"bytes from {offset}, the own log ends at {appender.end_offset}")
        await self._following.take(connection, appender, offset, body)
        self._show_all()

    def _show_all(self) -> None:
        """What a master sends, consumers may see."""
        self._store.advance_confirm_offset(self._store.max_offset)
