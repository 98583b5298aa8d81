"""The other brokers of the own group, as NameServers know them."""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

TIMEOUT_S = 1.0
"""So long one of them may take to answer."""


class Replicas:
    """Who they are is asked anew once that is old, or too few are known; `close` when the broker stops."""

    def __init__(self, host: Host, config: BrokerConfig, own_address: str) -> None:
        self._host = host
        self._config = config
        self._own_address = own_address
        self._admin = AdminClient(host, TIMEOUT_S)
        self._remoting = RemotingClient(host, TIMEOUT_S)
        self._addresses: tuple[str, ...] = ()
        self._asked_ns = 0

    def close(self) -> None:
        self._admin.close()
        self._remoting.close()

    async def others(self) -> Sequence[str]:
        """Their addresses; as many of them as the group is to have at most."""
        now_ns, wanted = self._host.clock.monotonic_ns(), self._config.total_replicas - 1
        is_old = now_ns - self._asked_ns >= self._config.route_lives_s * 1e9
        if len(self._addresses) < wanted or is_old:
            for name_server in self._config.name_servers:
                try:
                    groups = await self._admin.broker_groups(name_server)
                except ClientError:
                    continue
                found = {
                    address
                    for group in groups
                    if (group.cluster, group.name) == (self._config.cluster, self._config.group)
                    for address in group.brokers.values()
                }
                # Who is away for a while is a replica all the same.
                self._addresses = tuple(sorted({*self._addresses, *found} - {self._own_address}))[:wanted]
                self._asked_ns = now_ns
                break
        return self._addresses

    async def ask(self, address: str, command: RemotingCommand) -> RemotingCommand | None:
        """The answer of one, None for a refusal, or for none in time."""
        try:
            answer = await self._remoting.invoke(address, command, TIMEOUT_S)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return None
        return answer if answer.code == ResponseCode.SUCCESS else None
