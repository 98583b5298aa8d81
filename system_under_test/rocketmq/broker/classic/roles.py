"""Roles as the configuration says, for as long as the process lives: a master, or a slave of the group's master.

A slave learns where its master is from what NameServers answer when it registers; as long as none has named one, it
registers again soon. It follows the one that was named last, and keeps to it while it is away. Nobody is promoted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.classic.log_comparison import LogComparison
from system_under_test.rocketmq.broker.classic.mastership import ClassicOffice
from system_under_test.rocketmq.broker.classic.slave import ClassicFollower
from system_under_test.rocketmq.broker.config import BrokerRole
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.ha.log_beginnings import NO_EPOCH, LogBeginnings
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.ha.slave_sync import SlaveSync
from system_under_test.rocketmq.broker.ha.wire import HAState
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.role import Role
from system_under_test.rocketmq.version import Version


class ConfiguredRoles:
    """`Roles` without controllers; `on_role` is called when the role is taken."""

    def __init__(
        self, broker: BrokerContext, parts: BrokerParts, ha: HAService, *, on_role: Callable[[], None]
    ) -> None:
        self.role = Role.NONE
        self._host, self._store, self._config, self._tables = broker.host, broker.store, broker.config, broker.tables
        self._parts = parts
        self._ha = ha
        self._on_role = on_role
        self._master: tuple[str, str] | None = None
        """Where the master takes requests, and where slaves."""
        self._master_named = asyncio.Event()
        self._follower: ClassicFollower | None = None
        self._sync: SlaveSync | None = None
        self._log_in_hand = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def broker_id(self) -> int | None:
        return self._config.broker_id

    @property
    def role_id(self) -> int | None:
        return self._config.broker_id

    @property
    def acted_master_epoch(self) -> int:
        return NO_EPOCH

    @property
    def handlers(self) -> Handlers:
        if self._config.version is Version.V4:
            return {}
        return {
            **LogComparison(self._store, self._ha).handlers,
            **LogBeginnings(self._store, self._ha).handlers,
            RequestCode.GET_BROKER_HA_STATUS: lambda command, _: self._ha_status(),
        }

    def _ha_status(self) -> RemotingCommand:
        """As RocketMQ's HARuntimeInfo, as far as there is something to tell; `state` says how a slave is doing."""
        mastership, follower = self._ha.mastership, self._follower
        status: dict[str, object] = {"master": mastership is not None}
        if mastership is not None:
            status |= {"masterCommitLogMaxOffset": self._store.max_offset, "inSyncSlaveNums": mastership.in_sync - 1}
        else:
            status["haClientRuntimeInfo"] = {
                "masterAddr": None if self._master is None else self._master[1],
                "maxOffset": self._store.max_offset,
                "state": HAState.READY.name if follower is None else follower.state.name,
            }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(status).encode())

    def start(self) -> None:
        is_slave = self._config.role is BrokerRole.SLAVE
        self._task = self._host.spawn(self._follow() if is_slave else self._lead(), "configured role")

    async def stop(self) -> None:
        async with self._log_in_hand:
            if self._task is not None:
                self._task.cancel()
            self._ha.end_mastership()
            if self._sync is not None:
                await self._sync.stop()

    def registered(self, answer: Mapping[str, str]) -> bool:
        """What a NameServer answered; whether it need not be asked again soon."""
        if self._config.role is not BrokerRole.SLAVE:
            return True
        master, master_ha = answer.get("masterAddr"), answer.get("haServerAddr")
        if master and master_ha and (master, master_ha) != self._master:
            self._master = master, master_ha
            self._master_named.set()
        return self._master is not None

    async def _lead(self) -> None:
        store = self._store
        async with self._log_in_hand:
            await store.cut_to_message_boundary()
            await store.forget_nothing_beyond_the_end()
            store.rebuild_queue_offset_table()
            await self._tables.keep_topics_with_messages(store, NO_EPOCH)
        mastership = self._parts.classic_mastership(self._host, store, self._config, self._parts.own_acked_offset)
        self._ha.begin_mastership(ClassicOffice(mastership))
        mastership.advance()
        self._take(Role.MASTER)

    async def _follow(self) -> None:
        # Whatever a slave holds came from its master.
        self._store.advance_confirm_offset(self._store.max_offset)
        self._take(Role.SLAVE)
        while True:
            await self._master_named.wait()
            self._master_named.clear()
            assert self._master is not None
            master, master_ha = self._master
            self._host.log("master_named", master=master, master_ha=master_ha)
            async with self._log_in_hand:
                if self._sync is not None:
                    await self._sync.stop()
                self._follower = ClassicFollower(
                    self._host, self._store, self._config, self._parts, master=master, master_ha=master_ha
                )
                await self._ha.follow(self._follower)
                self._sync = SlaveSync(self._host, self._config, self._store, self._tables, master, NO_EPOCH)
                self._sync.start()

    def _take(self, role: Role) -> None:
        self.role = role
        group, broker_id = self._config.group, self._config.broker_id
        self._host.log("identity", group=group, broker_id=broker_id)
        self._host.log(
            "role", group=group, role=role.value, master_epoch=NO_EPOCH, broker_id=broker_id, start_offset=None
        )
        self._host.reached("configured-role-taken")
        self._on_role()
