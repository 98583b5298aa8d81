"""Where topics lie, as NameServers say: a broker itself knows only of its own queues."""

from __future__ import annotations

from typing import NamedTuple

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.consumer_protocol import MessageQueue
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.topic import READ
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host


class _CachedQueues(NamedTuple):
    queues: tuple[MessageQueue, ...]
    asked_ns: int


class TopicRoutes:
    """Asks when a topic is asked for, and again once its route is `route_lives_s` old; while no NameServer answers the
    last one counts."""

    def __init__(self, host: Host, config: BrokerConfig) -> None:
        self._host = host
        self._config = config
        self._remoting = RemotingClient(host, config.controller_timeout_s)
        self._cache: dict[str, _CachedQueues] = {}

    def close(self) -> None:
        self._remoting.close()

    async def queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """All that may be read, in order; None where no NameServer knows the topic, or none has ever answered."""
        known = self._cache.get(topic)
        now_ns = self._host.clock.monotonic_ns()
        if known is not None and now_ns - known.asked_ns < self._config.route_lives_s * 1e9:
            return known.queues
        for name_server in self._config.name_servers:
            answer = await self._ask(name_server, topic)
            if answer is None:
                continue
            if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                self._cache.pop(topic, None)
                return None
            try:
                known = self._cache[topic] = _CachedQueues(_readable(topic, TopicRoute.decode(answer.body)), now_ns)
            except ValueError as error:
                self._host.log("route_refused", topic=topic, name_server=name_server, reason=str(error))
                continue
            return known.queues
        return None if known is None else known.queues

    async def _ask(self, name_server: str, topic: str) -> RemotingCommand | None:
        """None: it does not say."""
        command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        try:
            answer = await self._remoting.invoke(name_server, command, self._config.controller_timeout_s)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return None
        return answer if answer.code in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST) else None


def _readable(topic: str, route: TopicRoute) -> tuple[MessageQueue, ...]:
    return tuple(
        MessageQueue(topic, group.broker_name, queue_id)
        for group in route.groups
        if group.permission & READ
        for queue_id in range(group.read_queues)
    )
