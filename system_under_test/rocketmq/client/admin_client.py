"""What administrators ask of brokers and NameServers; what they ask of controllers is in `controller_client`.

One call is one request; nothing is retried. Every failure is a ClientError that says whether the request may have taken
effect, also where an answer is not what it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.consumer_group import ConsumerGroup, groups_from_json
from system_under_test.rocketmq.consumer_protocol import RequestModeSetting
from system_under_test.rocketmq.controller.protocol import json_body
from system_under_test.rocketmq.message_protocol import QueueRequest
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.static_topic.mapping import StaticTopic
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

T = TypeVar("T")

_INDEFINITE = frozenset({ResponseCode.SYSTEM_ERROR, ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT})


class AdminRefusal(ClientError):
    """A broker or a NameServer answered, but not with success."""

    def __init__(self, response_code: int, remark: str, node: str) -> None:
        definite = response_code not in _INDEFINITE
        super().__init__("refused" if definite else "outcome-unknown", definite, f"{response_code}: {remark}", node)
        self.response_code = response_code


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerGroup:
    cluster: str
    name: str
    brokers: Mapping[int, str]
    """Addresses by role id, 0 being the master; sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEntry:
    master_epoch: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEpochs:
    """The epoch file of one broker."""

    cluster: str
    group: str
    broker_id: int | None
    """The controller's; None as long as it has none."""
    entries: tuple[EpochEntry, ...]
    confirm_offset: int | None
    """Its confirm offset; None if the broker does not say."""


class AdminClient:
    def __init__(self, host: Host, timeout_s: float = 3.0) -> None:
        self._timeout_s = timeout_s
        self._remoting = RemotingClient(host, timeout_s)

    def close(self) -> None:
        self._remoting.close()

    # NameServers

    async def broker_groups(self, name_server: str) -> list[BrokerGroup]:
        """All of them, by cluster and name."""
        answer = await self._ask(name_server, RemotingCommand.request(RequestCode.GET_BROKER_CLUSTER_INFO))
        return _decoded(name_server, lambda: broker_groups_from_json(decode_json(answer.body)))

    async def topics(self, name_server: str) -> list[str]:
        command = RemotingCommand.request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        answer = await self._ask(name_server, command)
        return _decoded(name_server, lambda: sorted(str(topic) for topic in decode_json(answer.body)["topicList"]))

    async def route(self, name_server: str, topic: str) -> TopicRoute:
        answer = await self._ask(
            name_server, RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        )
        return _decoded(name_server, lambda: TopicRoute.decode(answer.body))

    async def forget_topic(self, name_server: str, topic: str) -> None:
        """Brokers that still have it make it known again."""
        await self._ask(name_server, RemotingCommand.request(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic}))

    # brokers

    async def epochs(self, broker: str) -> BrokerEpochs:
        answer = await self._ask(broker, RemotingCommand.request(RequestCode.GET_BROKER_EPOCH_CACHE))
        return _decoded(broker, lambda: epochs_from_json(decode_json(answer.body)))

    async def is_master(self, broker: str) -> bool:
        """What the broker itself takes its part to be, elected or not."""
        answer = await self._ask(broker, RemotingCommand.request(RequestCode.GET_BROKER_HA_STATUS))
        return _decoded(broker, lambda: decode_json(answer.body)["master"] is True)

    async def runtime_info(self, broker: str) -> dict[str, str]:
        """By name; what a broker says of itself."""
        answer = await self._ask(broker, RemotingCommand.request(RequestCode.GET_BROKER_RUNTIME_INFO))
        return _decoded(
            broker, lambda: {str(name): str(value) for name, value in sorted(decode_json(answer.body)["table"].items())}
        )

    async def put_topic(self, broker: str, topic: TopicConfig) -> None:
        """Make it, or change it. Only masters do."""
        await self._ask(broker, RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, topic.as_fields()))

    async def delete_topic(self, broker: str, topic: str) -> None:
        await self._ask(broker, RemotingCommand.request(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic}))

    async def static_topic(self, broker: str, topic: str) -> StaticTopic | None:
        """What its group knows of it, for certain; None of a topic that is not static, or that it does not have."""
        try:
            answer = await self._ask(broker, RemotingCommand.request(RequestCode.GET_TOPIC_CONFIG, {"topic": topic}))
        except AdminRefusal as refusal:
            if refusal.response_code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise
        return _decoded(broker, lambda: _mapping(answer.body))

    async def has_topic(self, broker: str, topic: str) -> bool:
        """Whether this broker itself knows of it: a slave hears of topics from its master at intervals."""
        try:
            await self._ask(broker, RemotingCommand.request(RequestCode.GET_TOPIC_CONFIG, {"topic": topic}))
        except AdminRefusal as refusal:
            if refusal.response_code == ResponseCode.TOPIC_NOT_EXIST:
                return False
            raise
        return True

    async def change_static_topic(self, broker: str, group: str, change: StaticTopic) -> None:
        """Tell the master of a group of new states of queues. They are safe there when this returns."""
        fields = TopicConfig.of(change.name, change.physical_queues).as_fields()
        command = RemotingCommand.request(
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, {**fields, "force": "false"}, change.encode(group)
        )
        await self._ask(broker, command)

    async def queue_range(self, broker: str, topic: str, queue_id: int) -> tuple[int, int]:
        """The least offset, and the one behind the greatest."""
        request = QueueRequest(topic=topic, queue_id=queue_id)
        least = await self._ask(broker, request.encode(RequestCode.GET_MIN_OFFSET))
        end = await self._ask(broker, request.encode(RequestCode.GET_MAX_OFFSET))
        return _decoded(broker, lambda: (_offset(least), _offset(end)))

    async def put_consumer_group(self, broker: str, group: ConsumerGroup) -> None:
        """Make it, or change it. Only masters do."""
        await self._ask(
            broker,
            RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, json_body(group.as_json())),
        )

    async def consumer_groups(self, broker: str) -> dict[str, ConsumerGroup]:
        """Those that were ever made or changed, by their names."""
        answer = await self._ask(broker, RemotingCommand.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        return _decoded(
            broker,
            lambda: groups_from_json(decode_json(answer.body)["subscriptionGroupTable"]),
        )

    async def delete_consumer_group(self, broker: str, group: str, *, with_offsets: bool) -> None:
        fields = {"groupName": group, "cleanOffset": "true" if with_offsets else "false"}
        await self._ask(broker, RemotingCommand.request(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields))

    async def set_request_mode(self, broker: str, setting: RequestModeSetting) -> None:
        """Only masters do."""
        await self._ask(broker, setting.encode())

    async def _ask(self, address: str, command: RemotingCommand) -> RemotingCommand:
        try:
            answer = await self._remoting.invoke(address, command, self._timeout_s)
        except ConnectFailed as error:
            raise ClientError("connect-failed", True, str(error), address) from error
        except ConnectionClosed as error:
            raise ClientError("connection-lost", False, str(error), address) from error
        except TimeoutError as error:
            raise ClientError("client-timeout", False, str(error), address) from error
        if answer.code != ResponseCode.SUCCESS:
            raise AdminRefusal(answer.code, answer.remark or "", address)
        return answer


def _decoded(node: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClientError("outcome-unknown", False, f"malformed answer: {error!r}", node) from error


def _mapping(body: bytes) -> StaticTopic | None:
    detail = decode_json(body).get("mappingDetail")
    return None if detail is None else StaticTopic.from_json(detail)


def broker_groups_from_json(info: Mapping[str, Any]) -> list[BrokerGroup]:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    groups = [
        BrokerGroup(
            cluster=str(entry["cluster"]),
            name=str(name),
            brokers=dict(sorted((int(role_id), str(address)) for role_id, address in entry["brokerAddrs"].items())),
        )
        for name, entry in info["brokerAddrTable"].items()
    ]
    return sorted(groups, key=lambda group: (group.cluster, group.name))


def epochs_from_json(value: Mapping[str, Any]) -> BrokerEpochs:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    broker_id, confirmed = value["brokerId"], value.get("confirmOffset")
    starts = [(_whole(entry["epoch"]), _whole(entry["startOffset"])) for entry in value["epochList"]]
    ends = [*(start for _, start in starts[1:]), _whole(value["maxOffset"])]
    return BrokerEpochs(
        cluster=str(value["clusterName"]),
        group=str(value["brokerName"]),
        broker_id=None if broker_id is None else _whole(broker_id),
        entries=tuple(
            EpochEntry(master_epoch=epoch, start_offset=start, end_offset=end)
            for (epoch, start), end in zip(starts, ends, strict=False)
        ),
        confirm_offset=None if confirmed is None else _whole(confirmed),
    )


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def _offset(answer: RemotingCommand) -> int:
    return int(answer.ext_fields["offset"][:20])
