"""The node programs: what a process of each kind is composed of.

- `nameserver`: a NameServer, and a controller beside it where `enableControllerInNamesrv` is on.
- `controller`: a controller alone.
- `broker`: a broker, and a proxy in front of it where `enableProxy` is on.
- `proxy`: a proxy alone.

Each takes the JSON config of its process, with RocketMQ's setting names, plus `mutant`: the name of a planted
bug to run with. A wrong or unknown setting raises ValueError that names it, before anything is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from system_under_test.remoting.server import RemotingServer
from system_under_test.rocketmq.broker.broker import Broker
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.controller import Controller
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.mutants import Mutant, mutant
from system_under_test.rocketmq.nameserver.config import NameServerConfig
from system_under_test.rocketmq.nameserver.parts import NameServerParts
from system_under_test.rocketmq.nameserver.server import NameServer
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.proxy import Proxy
from system_under_test.rocketmq.settings import Settings, WatchedConfig
from system_under_test.runtime.host import Host


class Service(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None:
        """A clean stop; also after a `start` that failed or was cancelled."""


async def nameserver(host: Host, config: Mapping[str, Any]) -> None:
    watched = WatchedConfig(config)
    bug = _mutant(watched)
    parts = NameServerParts()
    if bug is not None and bug.nameserver is not None:
        parts = bug.nameserver(parts)
    services: list[Service] = [NameServer(host, NameServerConfig.from_json(watched), parts)]
    if Settings(watched).flag("enableControllerInNamesrv", False):
        services.append(_controller(host, watched, bug))
    watched.refuse_unknown()
    await _run_until_cancelled(host, services)


async def controller(host: Host, config: Mapping[str, Any]) -> None:
    watched = WatchedConfig(config)
    services = [_controller(host, watched, _mutant(watched))]
    watched.refuse_unknown()
    await _run_until_cancelled(host, services)


async def broker(host: Host, config: Mapping[str, Any]) -> None:
    watched = WatchedConfig(config)
    bug = _mutant(watched)
    parts = BrokerParts()
    if bug is not None and bug.broker is not None:
        parts = bug.broker(parts)
    services: list[Service] = [Broker(host, BrokerConfig.from_json(watched), parts)]
    if Settings(watched).flag("enableProxy", False):
        services.append(_proxy(host, watched, bug))
    watched.refuse_unknown()
    await _run_until_cancelled(host, services)


async def proxy(host: Host, config: Mapping[str, Any]) -> None:
    watched = WatchedConfig(config)
    services = [_proxy(host, watched, _mutant(watched))]
    watched.refuse_unknown()
    await _run_until_cancelled(host, services)


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


def _controller(host: Host, config: Mapping[str, Any], bug: Mutant | None) -> ControllerService:
    parts = ControllerParts()
    if bug is not None and bug.controller is not None:
        parts = bug.controller(parts)
    return ControllerService(host, ControllerConfig.from_json(config), parts)


def _proxy(host: Host, config: Mapping[str, Any], bug: Mutant | None) -> Proxy:
    parts = ProxyParts()
    if bug is not None and bug.proxy is not None:
        parts = bug.proxy(parts)
    return Proxy(host, ProxyConfig.from_json(config), parts)


def _mutant(config: Mapping[str, Any]) -> Mutant | None:
    name = config.get("mutant")
    if name is None:
        return None
    if not isinstance(name, str):
        raise ValueError(f"mutant: expected a name, got {name!r}")
    try:
        return mutant(name)
    except ValueError as error:
        raise ValueError(f"mutant: {error}") from error


async def _run_until_cancelled(host: Host, services: Sequence[Service]) -> None:
    """Start in order, then wait; when cancelled stop in the opposite order, those that were still starting too."""
    begun: list[Service] = []
    try:
        for service in services:
            begun.append(service)
            await service.start()
        host.log("running")
        await asyncio.Event().wait()
    finally:
        for service in reversed(begun):
            await service.stop()
