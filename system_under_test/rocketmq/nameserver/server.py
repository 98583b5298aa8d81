"""The NameServer: a route table behind remoting. In memory, available rather than consistent."""

from __future__ import annotations

import asyncio

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.remoting.server import Peer, RemotingServer
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.config import NameServerConfig
from system_under_test.rocketmq.nameserver.parts import NameServerParts
from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.rocketmq.nameserver.route import encode_json
from system_under_test.rocketmq.nameserver.route_table import RouteTable
from system_under_test.rocketmq.version import Version
from system_under_test.runtime.host import Host

STANDARD_JSON_VERSION = 401
"""4.9.4: from there on clients read routes in standard JSON."""


class NameServer:
    def __init__(self, host: Host, config: NameServerConfig, parts: NameServerParts | None = None) -> None:
        self._host = host
        self._config = config
        self._table = RouteTable(config.broker_expiry_s, (parts or NameServerParts()).outranks, config.version)
        self._server = RemotingServer(host, self.handle, self.on_close)
        self._scan: asyncio.Task[None] | None = None
        self._announced: dict[str, Registration | None] = {}
        """Group -> its master as it was told last."""

    async def start(self) -> None:
        """Raises OSError if the port is taken."""
        await self._server.start(self._config.listen_port)
        self._scan = self._host.spawn(self._expire_brokers(), "scan of silent brokers")

    async def stop(self) -> None:
        self._server.close()
        if self._scan is not None:
            self._scan.cancel()

    def handle(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        now_ns = self._host.clock.monotonic_ns()
        match command.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                return RemotingCommand.response(ResponseCode.SUCCESS, body=self._route(command))
            case RequestCode.REGISTER_BROKER:
                return self._register(Registration.decode(command), peer, now_ns)
            case RequestCode.QUERY_DATA_VERSION:
                return self._data_version(command, now_ns)
            case RequestCode.BROKER_HEARTBEAT if self._config.version is not Version.V4:
                self._table.heartbeat(_field(command, "brokerAddr"), now_ns)
                return RemotingCommand.response(ResponseCode.SUCCESS)
            case RequestCode.UNREGISTER_BROKER:
                address = _field(command, "brokerAddr")
                self._table.unregister(address)
                self._host.log("broker_unregistered", address=address)
                self._tell_masters()
                return RemotingCommand.response(ResponseCode.SUCCESS)
            case RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
                return RemotingCommand.response(
                    ResponseCode.SUCCESS, body=encode_json({"brokerAddr": None, "topicList": self._table.topics()})
                )
            case RequestCode.DELETE_TOPIC_IN_NAMESRV:
                self._table.forget_topic(_field(command, "topic"))
                return RemotingCommand.response(ResponseCode.SUCCESS)
            case RequestCode.GET_BROKER_CLUSTER_INFO:
                return RemotingCommand.response(ResponseCode.SUCCESS, body=self._table.encoded_cluster_info())
            case code:
                raise RemotingError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f"request code {code} not supported")

    def on_close(self, peer: Peer) -> None:
        for address in self._table.disconnected(peer):
            self._host.log("broker_disconnected", address=address)
        self._tell_masters()

    def _route(self, command: RemotingCommand) -> bytes:
        topic = _field(command, "topic")
        body = self._table.encoded_route(topic)
        if body is None:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"no route info of this topic: {topic}")
        wants_standard = command.ext_fields.get("acceptStandardJsonOnly", "false").lower() == "true"
        if command.version >= STANDARD_JSON_VERSION or wants_standard:
            return body
        route = self._table.route(topic)
        assert route is not None
        return route.encode_for_old_clients()

    def _data_version(self, command: RemotingCommand, now_ns: int) -> RemotingCommand:
        """A sign of life, with the question whether the broker has to register its topics again."""
        address = _field(command, "brokerAddr")
        try:
            told = DataVersion.from_json(decode_json(command.body))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"not a data version: {error!r}") from error
        self._table.heartbeat(address, now_ns)
        known = self._table.version(address)
        fields = {"changed": "true" if known != told else "false"}
        return RemotingCommand.response(
            ResponseCode.SUCCESS, fields, b"" if known is None else encode_json(known.as_json())
        )

    def _register(self, registration: Registration, peer: Peer, now_ns: int) -> RemotingCommand:
        is_taken = self._table.register(registration, peer, now_ns)
        self._announced.setdefault(registration.broker_name, None)
        self._tell_masters()
        if not is_taken:
            self._host.log("registration_refused", address=registration.address, version=registration.state_version)
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "register broker failed: its id is held by a newer claim")
        self._host.reached("broker-announced")
        fields: dict[str, str] = {}
        master = self._table.master(registration.broker_name)
        if master is not None and master.address != registration.address:
            fields = {"masterAddr": master.address, "haServerAddr": master.ha_address}
        return RemotingCommand.response(ResponseCode.SUCCESS, fields)

    def _tell_masters(self) -> None:
        """To the event log: to whom clients are led from here on, where that has changed."""
        for group, told in self._announced.items():
            master = self._table.master(group)
            if _claim(master) != _claim(told):
                self._announced[group] = master
                address, version = _claim(master)
                self._host.log("route", group=group, master=address, version=version)

    async def _expire_brokers(self) -> None:
        while True:
            await self._host.clock.sleep(self._config.scan_interval_s)
            for address in self._table.expire(self._host.clock.monotonic_ns()):
                self._host.reached("announcement-expired")
                self._host.log("broker_expired", address=address)
            self._tell_masters()


def _claim(master: Registration | None) -> tuple[str, int] | tuple[None, None]:
    return (None, None) if master is None else (master.address, master.state_version)


def _field(command: RemotingCommand, name: str) -> str:
    value = command.ext_fields.get(name)
    if not value:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, f"{name} is missing")
    return value
