"""The node programs: what a process of each kind is composed of.

- `nameserver`: a NameServer, and a controller beside it where `enableControllerInNamesrv` is on.
- `controller`: a controller alone.
- `broker`: a broker, and a proxy in front of it where `enableProxy` is on.
- `proxy`: a proxy alone.

Each takes the JSON config of its process, with RocketMQ's setting names, plus `mutant`: the name of a planted
bug to run with. A wrong or unknown setting raises ValueError that names it, before anything is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from system_under_test.dledger import mutants as mutants_of_dledger
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.assembly import Assembly, Service
from system_under_test.node.settings import Settings, read_config
from system_under_test.remoting.server import RemotingServer
from system_under_test.rocketmq import mutants
from system_under_test.rocketmq.broker.broker import Broker
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.controller import Controller
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.nameserver.config import NameServerConfig
from system_under_test.rocketmq.nameserver.parts import NameServerParts
from system_under_test.rocketmq.nameserver.server import NameServer
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.proxy import Proxy
from system_under_test.runtime.host import Host

PLANTED = (mutants, mutants_of_dledger)
"""Packages of planted bugs."""


async def nameserver(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, *PLANTED)
    services: list[Service] = [
        NameServer(host, read_config(NameServerConfig, node.config), node.parts(NameServerParts))
    ]
    if Settings(node.config).flag("enableControllerInNamesrv", False):
        services.append(_controller(host, node))
    await node.run(services)


async def controller(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, *PLANTED)
    await node.run([_controller(host, node)])


async def broker(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, *PLANTED)
    services: list[Service] = [Broker(host, read_config(BrokerConfig, node.config), _broker_parts(node))]
    if Settings(node.config).flag("enableProxy", False):
        services.append(_proxy(host, node))
    await node.run(services)


def _broker_parts(node: Assembly) -> BrokerParts:
    return replace(node.parts(BrokerParts), member=node.parts(MemberParts))


async def proxy(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, *PLANTED)
    await node.run([_proxy(host, node)])


class ControllerService:
    """A controller with the server that takes its requests."""

    def __init__(self, host: Host, config: ControllerConfig, parts: ControllerParts) -> None:
        self._controller = Controller(host, config, parts)
        self._server = RemotingServer(host, self._controller.handle, self._controller.on_close)

    async def start(self) -> None:
        """Raises OSError if a port is taken."""
        await self._controller.start(self._server)

    async def stop(self) -> None:
        self._server.close()
        await self._controller.stop()


def _controller(host: Host, node: Assembly) -> ControllerService:
    return ControllerService(host, read_config(ControllerConfig, node.config), node.parts(ControllerParts))


def _proxy(host: Host, node: Assembly) -> Proxy:
    return Proxy(host, read_config(ProxyConfig, node.config), node.parts(ProxyParts))
