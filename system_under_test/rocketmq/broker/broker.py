"""One broker: its parts put together, started and stopped in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from system_under_test.remoting.server import RemotingServer
from system_under_test.rocketmq.broker.classic.roles import ConfiguredRoles
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.controller_mode.replicas_manager import ReplicasManager
from system_under_test.rocketmq.broker.dledger.group import DledgerGroup
from system_under_test.rocketmq.broker.dledger.roles import DledgerRoles
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.name_servers import NameServerRegistrations, contented
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.processor import Processor
from system_under_test.rocketmq.broker.public_codes import use_public_code
from system_under_test.rocketmq.broker.role import Role, Roles
from system_under_test.rocketmq.broker.services import Services
from system_under_test.rocketmq.broker.topics.tables import Tables
from system_under_test.rocketmq.message_id import host_bytes
from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore, StoreConfig


class Broker:
    """`start` returns when requests are taken; the role comes later, in controller mode when it is announced."""

    def __init__(self, host: Host, config: BrokerConfig, parts: BrokerParts) -> None:
        self._host = host
        self._config = config
        self._address = config.address or f"{host.name}:{config.listen_port}"
        group = DledgerGroup(host, config, parts.member) if config.dledger.is_on else None
        self.store = MessageStore(
            host,
            StoreConfig(
                directory=config.store_path,
                segment_bytes=config.file_bytes,
                flush_mode=config.flush_mode,
                reads_uncommitted=config.reads_uncommitted,
                # Nothing of a replicated log expires: who is wiped has to get all of it.
                cleaning=None if group is not None else config.cleaning,
                index_slots=config.index_slots,
                index_entries=config.index_entries,
                store_host=host_bytes(f"{config.ip}:{config.listen_port}" if config.ip else self._address),
            ),
            parts.storage,
            None if group is None else group.log,
        )
        self.tables = Tables(host, config)
        service = HAService(host, config)
        self.ha = service if group is None else group
        context = BrokerContext(host=host, store=self.store, config=config, tables=self.tables, ha=self.ha)
        answered: Callable[[Mapping[str, str]], bool] = contented
        if group is not None:
            self.roles: Roles = DledgerRoles(context, group, on_role=self._role_taken)
        elif config.controller_mode:
            self.roles = ReplicasManager(context, parts, service, address=self._address, on_role=self._role_taken)
        else:
            configured = ConfiguredRoles(context, parts, service, on_role=self._role_taken)
            self.roles, answered = configured, configured.registered
        self._name_servers = NameServerRegistrations(
            host,
            config.name_servers,
            self._registration,
            period_s=config.register_name_server_s,
            timeout_s=config.controller_timeout_s,
            retry_s=config.retry_s,
            answered=answered,
            compresses=config.compresses_registration,
        )
        places = parts.places(config.running_requests)
        self._services = Services(context, parts, self.roles, self._address, places, self._name_servers.changed)
        processor = Processor(context, self.roles, self._services.put_rate, self._services.handlers)
        self._server = RemotingServer(
            host, processor.handle, self._services.closed, translate=use_public_code, places=places
        )
        self._opened = False

    async def start(self) -> None:
        """Raises OSError if a port is taken, StorageFailed, StorageCorrupt."""
        self.tables.load()
        await self.store.open()
        self._opened = True
        await self.ha.start()
        await self._server.start(self._config.listen_port)
        self._name_servers.start()
        self._services.start()
        self.roles.start()

    async def stop(self) -> None:
        """A clean stop: nothing is taken any more, then all that was taken is made durable."""
        self._server.close()
        self._services.stop()
        await self._name_servers.stop()
        await self.roles.stop()
        await self.ha.stop()
        if self._opened:
            await self.store.stop()

    def _role_taken(self) -> None:
        self._services.role_taken()
        self._name_servers.changed()

    def _registration(self) -> Registration | None:
        """None until the first role is taken: before that the broker is not open for clients."""
        role_id = self.roles.role_id
        if role_id is None or not self._has_had_role():
            return None
        name, _, _ = self._address.rpartition(":")
        static = self._services.static
        return Registration(
            cluster=self._config.cluster,
            broker_name=self._config.group,
            broker_id=role_id,
            address=self._address,
            ha_address=f"{name}:{self._config.ha_listen_port}",
            version=replace(self.tables.topics.version, state_version=self.roles.acted_master_epoch),
            topics={**self.tables.topics.entries, **static.configs()},
            mappings=static.infos(),
            version_of_broker=self._config.version,
        )

    def _has_had_role(self) -> bool:
        return self.roles.role is not Role.NONE
