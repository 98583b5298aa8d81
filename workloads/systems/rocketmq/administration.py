"""What administrators do to brokers while the storm blows: by requests to all masters, as RocketMQ's own tools do.

No act takes a promise away, so nothing is excused by them: topics keep their queues and groups how far they have come,
and the topic that comes and goes is nobody's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.errors import OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, OperationError
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.broker.role import Role
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.topic import TopicConfig
from workloads.systems.rocketmq.clients.connect import message_client, request_timeout_s
from workloads.systems.rocketmq.clients.pop import GROUP as POPPERS
from workloads.systems.rocketmq.clients.queue import GROUP as DEQUEUERS
from workloads.systems.rocketmq.settings import (
    NAMESERVER_PORT,
    RocketmqSettings,
    addresses,
    broker_groups,
    name_server_names,
    node_of,
    topics,
)

GROUPS = (POPPERS, DEQUEUERS, *(f"g{number}" for number in range(8)))
"""The groups of consumers of all workloads: brokers keep no record of a group that nobody ever changed."""
RETRY_QUEUES = 8
"""How many queues for retries a group gets that was made with one."""
PASSING_TOPIC = "passing"
PASSING_QUEUES = 4
PASSING_MESSAGES = 20
LOOK_EVERY_S = 0.1


@dataclass(kw_only=True)
class _OfMasters(ABC):
    """An act whose requests go to the masters of all groups of brokers, and to none unless each group has one."""

    settings: RocketmqSettings
    host: Any

    async def begin(self) -> str:
        return await self._ask(self.do)

    async def end(self) -> str:
        return await self._ask(self.settle)

    @abstractmethod
    async def do(self, admin: AdminClient, masters: Sequence[str]) -> str:
        """Raises ClientError, as `settle` does."""

    async def settle(self, admin: AdminClient, masters: Sequence[str]) -> str:
        return "what was changed stays so"

    async def _ask(self, do: Any) -> str:
        admin = AdminClient(self.host, request_timeout_s(self.settings))
        try:
            masters = await _masters(self.settings, admin)
            try:
                words: str = await do(admin, masters)
            except ClientError as error:
                raise OperationError(OUTCOME_UNKNOWN, error.detail, node=_node(error)) from error
        finally:
            admin.close()
        return words


class MoreQueues(_OfMasters):
    """topics get twice as many queues"""

    async def do(self, admin: AdminClient, masters: Sequence[str]) -> str:
        queues = 2 * self.settings.topic_queues
        for master in masters:
            for topic in topics(self.settings):
                await admin.put_topic(master, TopicConfig.of(topic, queues))
        return f"{', '.join(topics(self.settings))}: {queues} queues instead of {self.settings.topic_queues}"


class MoreRetryQueues(_OfMasters):
    """groups of consumers get more queues for what is to be consumed again"""

    async def do(self, admin: AdminClient, masters: Sequence[str]) -> str:
        for master in masters:
            known = await admin.consumer_groups(master)
            for name in GROUPS:
                group = known.get(name, ConsumerGroup(name=name))
                await admin.put_consumer_group(master, replace(group, retry_queues=RETRY_QUEUES))
        return f"{', '.join(GROUPS)}: {RETRY_QUEUES} queues for retries"


@dataclass(kw_only=True)
class RemadeGroups(_OfMasters):
    """groups of consumers are deleted, but for how far they have come, and made again at the end"""

    _deleted: dict[str, ConsumerGroup] = field(default_factory=dict)

    async def do(self, admin: AdminClient, masters: Sequence[str]) -> str:
        for master in masters:
            known = await admin.consumer_groups(master)
            for name in GROUPS:
                self._deleted.setdefault(name, known.get(name, ConsumerGroup(name=name)))
                await admin.delete_consumer_group(master, name, with_offsets=False)
        return f"{', '.join(GROUPS)} deleted"

    async def settle(self, admin: AdminClient, masters: Sequence[str]) -> str:
        for master in masters:
            for group in self._deleted.values():
                await admin.put_consumer_group(master, group)
        return f"{', '.join(self._deleted)} made again"


class PassingTopic(_OfMasters):
    """another topic is made and filled, and deleted with its messages at the end"""

    async def do(self, admin: AdminClient, masters: Sequence[str]) -> str:
        for master in masters:
            await admin.put_topic(master, TopicConfig.of(PASSING_TOPIC, PASSING_QUEUES))
        client = message_client(self.host, self.settings)
        try:
            await self._until_routed(client)
            for number in range(PASSING_MESSAGES):
                await client.send(PASSING_TOPIC, number % PASSING_QUEUES, b"%d" % number)
        finally:
            client.close()
        return f"{PASSING_TOPIC} made, and {PASSING_MESSAGES} messages sent to it"

    async def _until_routed(self, client: MessageClient) -> None:
        """Brokers tell NameServers of a new topic when they register next."""
        while True:
            try:
                await client.route(PASSING_TOPIC)
            except ClientError:
                await self.host.clock.sleep(LOOK_EVERY_S)
            else:
                return

    async def settle(self, admin: AdminClient, masters: Sequence[str]) -> str:
        for master in masters:
            await admin.delete_topic(master, PASSING_TOPIC)
        for name_server in _name_servers(self.settings):
            await admin.forget_topic(name_server, PASSING_TOPIC)
        return f"{PASSING_TOPIC} deleted"


_ACTS: Mapping[str, type[_OfMasters]] = {
    "more-queues": MoreQueues,
    "more-retry-queues": MoreRetryQueues,
    "remade-groups": RemadeGroups,
    "passing-topic": PassingTopic,
}


def acts(settings: RocketmqSettings) -> Mapping[str, str]:
    """Act -> what it is; those that go with these settings. A static topic's queues are no broker's own."""
    if settings.is_original or settings.requests == "public":
        return {}
    return {
        name: act.__doc__ or "" for name, act in _ACTS.items() if not (settings.static_queues and act is MoreQueues)
    }


def act(settings: RocketmqSettings, host: Any, name: str) -> _OfMasters:
    return _ACTS[name](settings=settings, host=host)


async def until_masters_serve(settings: RocketmqSettings, host: Any) -> None:
    """The master of each group that a NameServer names says itself that it is one."""
    admin = AdminClient(host, request_timeout_s(settings))
    try:
        while not await _masters_serve(settings, admin):
            await host.clock.sleep(LOOK_EVERY_S)
    finally:
        admin.close()


async def _masters_serve(settings: RocketmqSettings, admin: AdminClient) -> bool:
    try:
        roles = [(await admin.runtime_info(master)).get("role") for master in await _masters(settings, admin)]
    except (ClientError, OperationError):
        return False
    return set(roles) == {Role.MASTER.value}


async def _masters(settings: RocketmqSettings, admin: AdminClient) -> list[str]:
    """By the first NameServer that knows them all. Raises OperationError."""
    refusal = ""
    for name_server in _name_servers(settings):
        try:
            known = {group.name: group.brokers for group in await admin.broker_groups(name_server)}
        except ClientError as error:
            refusal = error.detail
            continue
        masters = [known.get(group.name, {}).get(0) for group in broker_groups(settings)]
        found = [master for master in masters if master is not None]
        if len(found) == len(masters):
            return found
        refusal = f"{node_of(name_server)} knows the masters of {len(found)} of {len(masters)} groups of brokers"
    raise OperationError(SERVICE_NOT_AVAILABLE, refusal)


def _name_servers(settings: RocketmqSettings) -> list[str]:
    return addresses(name_server_names(settings), NAMESERVER_PORT)


def _node(error: ClientError) -> str | None:
    return node_of(error.node) if error.node else None
