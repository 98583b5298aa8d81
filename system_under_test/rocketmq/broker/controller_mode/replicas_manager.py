"""From the start of the process to a role, and from one role to the next, as the controller says.

Life: get an id, register with the controller, beat to every controller, ask for an election where there is no master,
take the role announced. Notices and polls announce roles alike; only a newer master epoch than the one acted upon since
the start of the process changes anything, so late notices and repeated polls are harmless.

Losing mastership takes effect in the very moment the newer epoch is seen: the mastership ends, puts that wait end
without an answer, and everything that needs time (another role's files and connections) comes after that.

A broker that finds itself master of an epoch from before its start goes on in it only after a clean stop. After an
unclean one its log may be shorter than what it acked, so it gives the mastership up, and the controller elects anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.controller_mode.identity import Identity, obtain_identity
from system_under_test.rocketmq.broker.controller_mode.isr_manager import SetKeeper
from system_under_test.rocketmq.broker.ha.log_beginnings import LogBeginnings, MastersBeginnings
from system_under_test.rocketmq.broker.ha.master_connection import ElectedOffice
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.ha.slave_client import SlaveClient
from system_under_test.rocketmq.broker.ha.slave_sync import SlaveSync
from system_under_test.rocketmq.broker.ha.sync_state_set import controller_says
from system_under_test.rocketmq.broker.parts import Acted, BrokerParts
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.role import Role
from system_under_test.rocketmq.client.controller_client import ControllerClient, ControllerRefusal
from system_under_test.rocketmq.controller.protocol import BrokerReport, MalformedRequest, ReplicaInfo
from system_under_test.storage.message_store import FlushMode


class ReplicasManager:
    """`on_role` is called after each role taken; `observe` may be called by all code that hears of the group's
    state."""

    def __init__(
        self, broker: BrokerContext, parts: BrokerParts, ha: HAService, *, address: str, on_role: Callable[[], None]
    ) -> None:
        self.role = Role.NONE
        self._acted = Acted(0, None)
        self._host, self._store, self._config, self._tables = broker.host, broker.store, broker.config, broker.tables
        self._parts = parts
        self._ha = ha
        self._sync: SlaveSync | None = None
        self._address = address
        self._on_role = on_role
        self._controllers = ControllerClient(self._host, self._config.controllers, self._config.controller_timeout_s)
        self._beating: set[str] = set()
        """Controllers to which heartbeats go."""
        self._keeper = SetKeeper(self._host, self._config, parts, self._controllers, self.observe)
        self._identity: Identity | None = None
        self._incarnation = f"{self._host.clock.wall_ns()}-{self._host.random.getrandbits(64):016x}"
        self._registered_master_epoch = 0
        self._newest_info: ReplicaInfo | None = None
        self._mastership: Mastership | None = None
        self._role_due = asyncio.Event()
        self._poll_due = asyncio.Event()
        self._log_in_hand = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._store.needed_from.append(self._needed_from)
        self._keeping: asyncio.Task[None] | None = None

    @property
    def broker_id(self) -> int | None:
        """The controller's id, once there is one."""
        return None if self._identity is None else self._identity.broker_id

    @property
    def acted_master_epoch(self) -> int:
        """The newest master epoch acted upon since the start of the process."""
        return self._acted.master_epoch

    @property
    def role_id(self) -> int | None:
        """What NameServers and clients call this broker: 0 for the master."""
        return self._parts.role_id(self.broker_id, self.role is Role.MASTER)

    def start(self) -> None:
        self._spawn(self._come_online(), "coming online")

    async def stop(self) -> None:
        """No role is taken any more; the log is left alone from here on."""
        async with self._log_in_hand:
            self._depose()
            if self._sync is not None:
                await self._sync.stop()
            for task in self._tasks:
                task.cancel()
        self._controllers.close()

    def observe(self, info: ReplicaInfo) -> None:
        """Somebody has heard what the controller says of the group."""
        known = self._newest_info
        if self._identity is None or (known is not None and info.master_epoch < known.master_epoch):
            return
        if known is not None and info.master_epoch == known.master_epoch and info.master_id is None:
            return
        self._newest_info = info
        mastership = self._mastership
        if mastership is not None and info.master_epoch == mastership.master_epoch:
            view = controller_says(mastership.view, info.sync_state_set)
            if view is not mastership.view:
                mastership.change_view(view)
        if self._is_due(info):
            self._host.reached("role-due")
            self._depose()
            self._role_due.set()

    @property
    def handlers(self) -> Handlers:
        """What controllers ask of brokers, and slaves of their masters."""
        return {
            RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._role_notice,
            **LogBeginnings(self._store, self._ha).handlers,
        }

    def _role_notice(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        try:
            info = ReplicaInfo.from_answer(command.ext_fields, command.body)
        except MalformedRequest as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from error
        self.notified(info)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def notified(self, info: ReplicaInfo) -> None:
        """A role notice. Before the first word of the controller it is ignored: it may be from an earlier life."""
        if self._newest_info is not None:
            self.observe(info)

    def poll_soon(self) -> None:
        self._poll_due.set()

    def _needed_from(self) -> int:
        """As long as it is not known which part of the log is the group's, all of it: where the two part could lie in a
        file that has expired, and without that the master's log and this one could not be compared any more."""
        is_known = self.role is Role.MASTER or self._ha.hears_master
        return self._store.max_offset if is_known else self._store.min_offset

    def _is_due(self, info: ReplicaInfo) -> bool:
        return self._parts.role_is_due(self._acted, info, self.role is Role.MASTER)

    def _depose(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None
        self._ha.end_mastership()
        self._mastership = None
        if self.role is Role.MASTER:
            self.role = Role.NONE

    async def _come_online(self) -> None:
        config = self._config
        self._identity = await obtain_identity(
            self._host,
            self._controllers,
            cluster=config.cluster,
            group=config.group,
            address=self._address,
            store_path=config.store_path,
            retry_s=config.retry_s,
        )
        self._host.reached("identity-persisted")
        self._host.log("identity", group=config.group, broker_id=self._identity.broker_id)
        self._spawn(self._change_roles(), "roles")
        info = await self._register()
        self._registered_master_epoch = info.master_epoch
        self._beat_to_all()
        self._spawn(self._keep_looking_for_controller(), "active controller")
        self.observe(info)
        await self._poll()

    async def _keep_looking_for_controller(self) -> None:
        """A controller that leads no more may be silent, and each question to it would take as long as it may."""
        while True:
            await self._host.clock.sleep(self._config.sync_controller_metadata_s)
            before = self._controllers.active
            try:
                active = await self._controllers.look_for_active()
            except ClientError:
                self._host.reached("no-active-controller")
                continue
            if active != before:
                self._host.log("active_controller", address=active)

    async def _register(self) -> ReplicaInfo:
        while True:
            try:
                info = await self._controllers.register_broker(self._report())
            except ClientError as error:
                self._host.log("not_registered", reason=str(error))
                await self._host.clock.sleep(self._config.retry_s)
                continue
            self._host.reached("registered-with-controller", end=self._store.max_offset)
            return info

    def _beat_to_all(self) -> None:
        """Controllers may come and go; who is gone is sent nothing any more."""
        for controller in self._controllers.controllers:
            if controller not in self._beating:
                self._beating.add(controller)
                self._spawn(self._beat(controller), f"heartbeats to {controller}")

    async def _beat(self, controller: str) -> None:
        while controller in self._controllers.controllers:
            with suppress(ClientError):
                if not await self._controllers.heartbeat(controller, self._report()):
                    # What an earlier process of this broker sent when it registered came only now.
                    self.observe(await self._register())
            self._beat_to_all()
            await self._host.clock.sleep(self._config.controller_heartbeat_s)
        self._beating.discard(controller)

    async def _poll(self) -> None:
        """Ask what holds, often until there is a role, then in case a notice was lost."""
        while True:
            try:
                info = await self._controllers.get_replica_info(self._config.group)
                self.observe(info)
                if info.master_id is None and not self._config.async_learner:
                    assert self._identity is not None
                    self.observe(
                        await self._controllers.elect_master(
                            self._config.cluster, self._config.group, self._identity.broker_id
                        )
                    )
            except ClientError:
                self._host.reached("poll-failed")
            settled = self.role is not Role.NONE
            period_s = self._config.sync_broker_metadata_s if settled else self._config.retry_s
            with suppress(TimeoutError):
                await self._host.clock.within(period_s, self._poll_due.wait())
                await self._host.clock.sleep(self._config.retry_s)
            self._poll_due.clear()

    async def _change_roles(self) -> None:
        while True:
            await self._role_due.wait()
            self._role_due.clear()
            info = self._newest_info
            assert info is not None
            if not self._is_due(info):
                continue
            self._acted = Acted(info.master_epoch, info.master_id)
            if info.master_id is None:
                await self._wait_for_master()
            elif info.master_id != self.broker_id:
                await self._become_slave(info)
            elif self._parts.gives_up(self._store.unclean_start, info.master_epoch, self._registered_master_epoch):
                await self._give_up(info)
            else:
                await self._become_master(info)

    async def _wait_for_master(self) -> None:
        async with self._log_in_hand:
            await self._end_following()
        self.role = Role.NONE
        self._host.log("masterless", master_epoch=self.acted_master_epoch)
        self.poll_soon()

    async def _become_slave(self, info: ReplicaInfo) -> None:
        if self._parts.turns_to_new_master(self._ha.hears_master):
            await self._follow(info)
        self._taken(Role.SLAVE, info)

    async def _follow(self, info: ReplicaInfo) -> None:
        broker_id, master_address = self.broker_id, info.master_address
        assert broker_id is not None and master_address is not None
        async with self._log_in_hand:
            await self._end_following()
            beginnings = MastersBeginnings(
                self._host, master_address, info.master_epoch, self._config.controller_timeout_s
            )
            await self._ha.follow(
                SlaveClient(
                    self._host,
                    self._store,
                    self._config,
                    self._parts,
                    own_id=broker_id,
                    master_address=self._ha_address(master_address),
                    master_epoch=info.master_epoch,
                    beginnings=beginnings,
                    on_other_epoch=self.poll_soon,
                )
            )
            self._sync = SlaveSync(
                self._host, self._config, self._store, self._tables, master_address, info.master_epoch
            )
            self._sync.start()

    async def _end_following(self) -> None:
        """After it neither the log nor what goes with it is another broker's copy."""
        await self._ha.end_following()
        if self._sync is not None:
            await self._sync.stop()
            self._sync = None

    async def _become_master(self, info: ReplicaInfo) -> None:
        store, broker_id = self._store, self.broker_id
        assert broker_id is not None
        async with self._log_in_hand:
            await self._end_following()
            self._host.reached("about-to-become-master")
            await store.cut_to_message_boundary()
            await store.forget_nothing_beyond_the_end()
            if self._config.flush_mode is FlushMode.SYNC and not await self._flush_all(info):
                return
            entry = await self._parts.enter_epoch(self._host, store.epochs, info.master_epoch, store.max_offset)
            store.rebuild_queue_offset_table()
            await self._tables.keep_topics_with_messages(store, info.master_epoch)
        if self._superseded(info):
            return
        known = self._newest_info
        announced = info.sync_state_set if known is None else known.sync_state_set
        mastership = self._parts.mastership(
            self._host,
            store,
            self._config,
            own_id=broker_id,
            master_epoch=info.master_epoch,
            epoch_start_offset=entry.start_offset,
            view=self._parts.first_view(broker_id, announced),
            own_acked_offset=self._parts.own_acked_offset,
        )
        office = ElectedOffice(
            mastership,
            self._parts.batch_end,
            holds_a_part=self._parts.holds_a_part,
            is_possible_ack=self._parts.is_possible_ack,
        )
        self._ha.begin_mastership(office)
        self._mastership = mastership
        self._keeping = self._spawn(self._keeper.keep(mastership), "SyncStateSet")
        self._taken(Role.MASTER, info)

    async def _flush_all(self, info: ReplicaInfo) -> bool:
        """What becomes confirmed by taking the role must be durable; False if a newer epoch came meanwhile."""
        while not self._superseded(info):
            try:
                await self._store.flush_to(self._store.max_offset, self._config.flush_wait_s)
                return True
            except TimeoutError:
                self._host.reached("promotion-flush-timed-out")
        return False

    async def _give_up(self, info: ReplicaInfo) -> None:
        broker_id = self.broker_id
        assert broker_id is not None
        self._host.reached("about-to-give-up-mastership")
        self._host.log("mastership_given_up", master_epoch=info.master_epoch)
        while not self._superseded(info):
            try:
                self.observe(
                    await self._controllers.give_up_mastership(
                        self._config.cluster, self._config.group, broker_id, info.master_epoch
                    )
                )
            except ControllerRefusal as refusal:
                if refusal.response_code != ResponseCode.CONTROLLER_ELECT_MASTER_FAILED:
                    self.poll_soon()
            except ClientError:
                self._host.reached("giving-up-failed")
            if not self._superseded(info):
                await self._host.clock.sleep(self._config.retry_s)

    def _superseded(self, info: ReplicaInfo) -> bool:
        return self._newest_info is not None and self._parts.supersedes(self._newest_info, info)

    def _taken(self, role: Role, info: ReplicaInfo) -> None:
        if self._superseded(info):
            return
        self.role = role
        newest = self._store.epochs.map.last
        self._host.log(
            "role",
            group=self._config.group,
            role=role.value,
            master_epoch=info.master_epoch,
            broker_id=self.broker_id,
            start_offset=None if newest is None or role is not Role.MASTER else newest.start_offset,
        )
        if role is Role.MASTER:
            self._host.reached(
                "became-master",
                end=self._store.max_offset,
                confirmed=self._store.confirm_offset,
                epoch=info.master_epoch,
                noted=0 if newest is None else newest.master_epoch,
            )
        else:
            self._host.reached("became-slave")
        self._on_role()

    def _report(self) -> BrokerReport:
        identity, store, newest = self._identity, self._store, self._store.epochs.map.last
        assert identity is not None
        return BrokerReport(
            cluster=self._config.cluster,
            group=self._config.group,
            broker_id=identity.broker_id,
            address=self._address,
            incarnation=self._incarnation,
            master_epoch=0 if newest is None else newest.master_epoch,
            max_offset=store.max_offset,
            confirm_offset=store.confirm_offset,
            priority=self._config.priority,
            is_learner=self._config.async_learner,
            timeout_ms=self._config.controller_patience_ms,
        )

    def _ha_address(self, address: str) -> str:
        name, _, port = address.rpartition(":")
        return f"{name}:{int(port) + self._config.ha_listen_port - self._config.listen_port}"

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._host.spawn(coroutine, name)
        self._tasks = [*(other for other in self._tasks if not other.done()), task]
        return task
