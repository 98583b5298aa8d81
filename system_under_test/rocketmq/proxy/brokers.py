"""How a proxy finds brokers and asks them: routes from NameServers, requests by remoting."""

from __future__ import annotations

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.nameserver.route import GroupRoute, TopicRoute
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.refusals import Refused
from system_under_test.rocketmq.proxy.v2 import Code
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host


class Brokers:
    """Looks routes up and keeps them a while; whatever goes wrong with a broker makes it look again."""

    def __init__(self, host: Host, config: ProxyConfig, remoting: RemotingClient) -> None:
        self._host = host
        self._config = config
        self._remoting = remoting
        self._routes: dict[str, tuple[TopicRoute, int]] = {}
        self._next_name_server = host.random.randrange(len(config.name_servers))

    async def route(self, topic: str) -> TopicRoute:
        """The groups of the proxy's cluster that hold the topic. Raises Refused."""
        known = self._routes.get(topic)
        if known is not None and self._host.clock.monotonic_ns() < known[1]:
            return known[0]
        route = await self._looked_up(topic)
        groups = tuple(group for group in route.groups if group.cluster == self._config.cluster)
        if not groups:
            raise Refused(Code.TOPIC_NOT_FOUND, f"no broker of cluster {self._config.cluster} holds topic {topic}")
        expires_ns = self._host.clock.monotonic_ns() + int(self._config.route_age_s * 1e9)
        self._routes[topic] = TopicRoute(groups), expires_ns
        return TopicRoute(groups)

    async def group(self, topic: str, broker_name: str) -> GroupRoute:
        """Raises Refused where the topic is not on that group."""
        for group in (await self.route(topic)).groups:
            if group.broker_name == broker_name:
                return group
        self._routes.pop(topic, None)
        raise Refused(Code.BAD_REQUEST, f"topic {topic} is not on broker {broker_name!r}")

    async def ask_master(
        self, topic: str, broker_name: str, command: RemotingCommand, timeout_s: float | None = None
    ) -> RemotingCommand:
        """Raises Refused; PROXY_TIMEOUT and INTERNAL_ERROR leave open whether the request took effect."""
        group = await self.group(topic, broker_name)
        if group.master is None:
            self._routes.pop(topic, None)
            raise Refused(Code.HA_NOT_AVAILABLE, f"{broker_name} has no master")
        try:
            response = await self.ask(group.master, command, timeout_s)
        except Refused:
            self._routes.pop(topic, None)
            raise
        if response.code in (ResponseCode.NOT_MASTER, ResponseCode.SERVICE_NOT_AVAILABLE):
            self._routes.pop(topic, None)
        return response

    async def ask(self, address: str, command: RemotingCommand, timeout_s: float | None = None) -> RemotingCommand:
        """Raises Refused as `ask_master`."""
        timeout_s = self._config.broker_timeout_s if timeout_s is None else timeout_s
        try:
            return await self._remoting.invoke(address, command, timeout_s)
        except ConnectFailed as error:
            raise Refused(Code.HA_NOT_AVAILABLE, f"no connection to {address}: {error}") from error
        except ConnectionClosed as error:
            raise Refused(Code.INTERNAL_ERROR, f"the connection to {address} was lost: {error}") from error
        except TimeoutError as error:
            raise Refused(Code.PROXY_TIMEOUT, f"{address} did not answer within {timeout_s} s") from error

    async def _looked_up(self, topic: str) -> TopicRoute:
        """Of the first NameServer that knows the topic. Raises Refused."""
        command = RemotingCommand.request(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic, "acceptStandardJsonOnly": "true"}
        )
        names = self._config.name_servers
        reasons: list[str] = []
        is_unknown = False
        for _ in names:
            address = names[self._next_name_server]
            self._next_name_server = (self._next_name_server + 1) % len(names)
            try:
                response = await self._remoting.invoke(address, command, self._config.broker_timeout_s / len(names))
                if response.code == ResponseCode.SUCCESS:
                    return TopicRoute.decode(response.body)
                is_unknown = is_unknown or response.code == ResponseCode.TOPIC_NOT_EXIST
                reasons.append(f"{address}: {response.code} {response.remark}")
            except (ConnectFailed, ConnectionClosed, TimeoutError, ValueError) as error:
                reasons.append(f"{address}: {error}")
        if is_unknown:
            raise Refused(Code.TOPIC_NOT_FOUND, f"there is no topic {topic}")
        raise Refused(Code.INTERNAL_SERVER_ERROR, f"no NameServer tells the route of {topic}: {'; '.join(reasons)}")
