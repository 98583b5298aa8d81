"""A client for messages: finds routes, sends, pulls, keeps consumer offsets.

One call is at most one request that can take effect; nothing is retried hidden. Looking up a route takes no
effect, so that may ask one NameServer after the other. After any error the topic's route is forgotten and
the next call looks it up again, at another NameServer, for the one asked last may be cut off together with
a deposed master.

Every failure is a ClientError that says whether the request may have taken effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.client.replica_choice import ReplicaChoice
from system_under_test.rocketmq.compression import Compression, NotCompressed, compress_body, decompress_body
from system_under_test.rocketmq.message_batch import BatchedMessage, encode_batch
from system_under_test.rocketmq.message_protocol import (
    KeyQuery,
    PullAnswer,
    PullRequest,
    QueueRequest,
    SendAnswer,
    SendRequest,
)
from system_under_test.rocketmq.nameserver.route import GroupRoute, TopicRoute
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from system_under_test.storage.message import MessageInvalid, queue_entry

ROUTE_AGE_LIMIT_S = 30.0
"""A route is looked up again after this time even if all goes well."""

_REFUSALS: dict[int, tuple[str, bool]] = {
    ResponseCode.FLUSH_DISK_TIMEOUT: ("flush-disk-timeout", False),
    ResponseCode.FLUSH_SLAVE_TIMEOUT: ("flush-slave-timeout", False),
    ResponseCode.SLAVE_NOT_AVAILABLE: ("flush-slave-timeout", False),
    ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH: ("in-sync-replicas-not-enough", True),
    ResponseCode.NOT_MASTER: ("not-master", True),
    ResponseCode.SERVICE_NOT_AVAILABLE: ("service-not-available", True),
    ResponseCode.NO_PERMISSION: ("service-not-available", True),
    ResponseCode.SYSTEM_BUSY: ("service-not-available", True),
    ResponseCode.NOT_LEADER_FOR_QUEUE: ("not-leader", True),
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: ("service-not-available", True),
    ResponseCode.MESSAGE_ILLEGAL: ("message-illegal", True),
    ResponseCode.INVALID_PARAMETER: ("message-illegal", True),
    ResponseCode.DISK_FULL: ("disk-full", True),
    ResponseCode.TOPIC_NOT_EXIST: ("no-route", True),
    ResponseCode.QUERY_NOT_FOUND: ("not-found", True),
    ResponseCode.NO_MESSAGE: ("not-held", True),
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: ("service-not-available", True),
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: ("service-not-available", True),
}
"""Response code → (error code, definite). What is not here may have taken effect."""

_PULL_CODES = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The message is at `queue_offset` of its queue. `broker` is the address that said so.

    Of a batch `message_id` has the ids of all messages, with commas between.
    """

    queue_id: int
    queue_offset: int
    message_id: str
    broker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """`messages` are (queue offset, body), none where there is nothing yet.

    Without messages a `next_offset` other than the one asked for says that this lay outside of the queue, or that the
    subscription names none of those before `next_offset`.
    """

    messages: tuple[tuple[int, bytes], ...]
    next_offset: int
    min_offset: int
    max_offset: int
    broker: str
    suggested_broker_id: int = 0
    """Whom to ask next, by its role id."""


class _TopicUnknown(ClientError):
    """A NameServer says that there is no such topic."""


class MessageClient:
    """`nameservers`: addresses `name:port`. `timeout_s` bounds each call as a whole.

    With a `default_topic` a message for a topic that NameServers do not know goes to where that one is, for a broker
    there may make the topic after it.

    Bodies that are at least `compress_from_bytes` long are compressed, unless they come in a batch; zlib is what every
    reader knows.

    Where a topic lies on several broker groups, calls have to name theirs by `broker_name`.
    """

    def __init__(
        self,
        host: Host,
        nameservers: Sequence[str],
        timeout_s: float = 3.0,
        *,
        default_topic: str | None = None,
        compress_from_bytes: int | None = None,
        compression: Compression = Compression.ZLIB,
    ) -> None:
        if not nameservers:
            raise ValueError("at least one NameServer address is needed")
        self._host = host
        self._nameservers = tuple(nameservers)
        self._timeout_s = timeout_s
        self._default_topic = default_topic
        self._compress_from_bytes = compress_from_bytes
        self._compression = compression
        self._remoting = RemotingClient(host)
        self._routes: dict[str, tuple[TopicRoute, int]] = {}
        self._choice = ReplicaChoice()
        self._next_nameserver = host.random.randrange(len(self._nameservers))

    def wait_at_least(self, timeout_s: float) -> None:
        """For each answer, from now on."""
        self._timeout_s = max(self._timeout_s, timeout_s)

    def close(self) -> None:
        self._remoting.close()

    async def route(self, topic: str) -> TopicRoute:
        """The route as far as known, looked up if it is not. Raises ClientError `no-route`, definite."""
        return await self._route(topic, self._deadline_ns())

    def forget_route(self, topic: str) -> None:
        """The next call looks it up again."""
        self._routes.pop(topic, None)

    def forget_routes(self) -> None:
        """Look them up again at the next call."""
        self._routes.clear()

    async def send(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        *,
        properties: str = "",
        sys_flag: int = 0,
        broker_name: str | None = None,
    ) -> SendResult:
        if self._compress_from_bytes is not None and len(body) >= self._compress_from_bytes:
            body, compressed = compress_body(body, self._compression)
            sys_flag |= compressed
        request = SendRequest(
            topic=topic,
            queue_id=queue_id,
            body=body,
            born_timestamp_ms=self._host.clock.wall_ns() // 1_000_000,
            properties=properties,
            sys_flag=sys_flag,
        )
        return await self._sent(request, broker_name)

    async def send_batch(
        self, topic: str, queue_id: int, messages: Sequence[BatchedMessage], *, broker_name: str | None = None
    ) -> SendResult:
        """All of them or none. The result is of the first; the others follow it in the queue."""
        request = SendRequest(
            topic=topic,
            queue_id=queue_id,
            body=encode_batch(messages),
            born_timestamp_ms=self._host.clock.wall_ns() // 1_000_000,
            is_batch=True,
        )
        return await self._sent(request, broker_name)

    async def _sent(self, request: SendRequest, broker_name: str | None) -> SendResult:
        topic = request.topic
        broker, response = await self._ask(topic, request.encode(), broker_name, None, self._default_topic)
        self._expect_success(topic, broker, response)
        try:
            answer = SendAnswer.decode(response)
        except RemotingError as error:
            raise self._failed(topic, "outcome-unknown", False, error.remark, broker) from error
        return SendResult(
            queue_id=answer.queue_id, queue_offset=answer.queue_offset, message_id=answer.message_id, broker=broker
        )

    async def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        group: str,
        address: str | None = None,
        *,
        broker_name: str | None = None,
        subscription: str = "*",
        expression_type: str = "TAG",
    ) -> PullResult:
        """Messages from `offset` on, at most `max_count`, from the master or from the replica at `address`; with a
        subscription only those that it names."""
        request = PullRequest(
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_count=max_count,
            consumer_group=group,
            subscription=subscription,
            expression_type=expression_type,
        )
        return await self._pull(request, broker_name, address, self._deadline_ns())

    async def consume(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        group: str,
        *,
        broker_name: str | None = None,
        subscription: str = "*",
        expression_type: str = "TAG",
    ) -> PullResult:
        """As `pull`, from the replica that was suggested last for this queue; from slaves while the master is away.

        Where one does not answer the next call asks another.
        """
        request = PullRequest(
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_count=max_count,
            consumer_group=group,
            subscription=subscription,
            expression_type=expression_type,
        )
        deadline_ns = self._deadline_ns()
        route = self._group(await self._route(topic, deadline_ns), topic, broker_name)
        queue = topic, route.broker_name, queue_id
        replica = self._choice.among(queue, route.brokers)
        if replica is None:
            raise self._failed(topic, "no-route", True, f"{route.broker_name} has no broker", None)
        try:
            pulled = await self._pull(request, broker_name, route.brokers[replica], deadline_ns)
        except ClientError:
            self._choice.failed(queue, replica, route.brokers)
            raise
        self._choice.suggested(queue, pulled.suggested_broker_id)
        return pulled

    async def _pull(
        self, request: PullRequest, broker_name: str | None, address: str | None, deadline_ns: int
    ) -> PullResult:
        topic = request.topic
        broker, response = await self._ask(topic, request.encode(), broker_name, address, deadline_ns=deadline_ns)
        if response.code not in _PULL_CODES:
            raise self._refused(topic, broker, response)
        try:
            answer = PullAnswer.decode(response)
            messages = tuple((offset + answer.offset_delta, body) for offset, body in _messages(answer.data))
        except (RemotingError, MessageInvalid, NotCompressed) as error:
            raise self._failed(topic, "outcome-unknown", False, f"malformed answer: {error}", broker) from error
        return PullResult(
            messages=messages,
            next_offset=answer.next_offset,
            min_offset=answer.min_offset,
            max_offset=answer.max_offset,
            broker=broker,
            suggested_broker_id=answer.suggested_broker_id,
        )

    async def ha_status(self, broker: str) -> Mapping[str, Any]:
        """How replication goes at a broker outside of controller mode, as its administrators are told."""
        command = RemotingCommand.request(RequestCode.GET_BROKER_HA_STATUS)
        try:
            response = await self._remoting.invoke(broker, command, self._timeout_s)
            if response.code == ResponseCode.SUCCESS:
                status: Mapping[str, Any] = decode_json(response.body)
                return status
        except (ConnectFailed, ConnectionClosed, TimeoutError, ValueError) as error:
            raise ClientError("outcome-unknown", False, str(error), broker) from error
        is_unknown = response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        code = "not-supported" if is_unknown else "service-not-available"
        raise ClientError(code, True, f"{response.code} {response.remark}", broker)

    async def find(
        self, topic: str, key: str, address: str | None = None, *, broker_name: str | None = None
    ) -> tuple[tuple[int, bytes], ...]:
        """(queue offset, body) of the messages with this key, at the master or at the replica at `address`."""
        broker, response = await self._ask(topic, KeyQuery(topic=topic, key=key).encode(), broker_name, address)
        if response.code == ResponseCode.QUERY_NOT_FOUND:
            return ()
        self._expect_success(topic, broker, response)
        try:
            return _messages(response.body)
        except (MessageInvalid, NotCompressed) as error:
            raise self._failed(topic, "outcome-unknown", False, f"malformed answer: {error}", broker) from error

    async def query_offset(
        self, group: str, topic: str, queue_id: int, *, broker_name: str | None = None, address: str | None = None
    ) -> int | None:
        """The offset the group has committed at the master, or as the replica at `address` knows; None for none."""
        request = QueueRequest(topic=topic, queue_id=queue_id, consumer_group=group, is_zero_if_unknown=False)
        broker, response = await self._ask(
            topic, request.encode(RequestCode.QUERY_CONSUMER_OFFSET), broker_name, address
        )
        if response.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return self._offset(topic, broker, response)

    async def update_offset(
        self, group: str, topic: str, queue_id: int, offset: int, *, broker_name: str | None = None
    ) -> None:
        request = QueueRequest(topic=topic, queue_id=queue_id, consumer_group=group, commit_offset=offset)
        broker, response = await self._ask(topic, request.encode(RequestCode.UPDATE_CONSUMER_OFFSET), broker_name, None)
        self._expect_success(topic, broker, response)

    async def max_offset(self, topic: str, queue_id: int, *, broker_name: str | None = None) -> int:
        """One past the last message of the queue that consumers may see, at the master."""
        request = QueueRequest(topic=topic, queue_id=queue_id)
        broker, response = await self._ask(topic, request.encode(RequestCode.GET_MAX_OFFSET), broker_name, None)
        return self._offset(topic, broker, response)

    async def min_offset(self, topic: str, queue_id: int, *, broker_name: str | None = None) -> int:
        """The first message the queue still holds, at the master."""
        request = QueueRequest(topic=topic, queue_id=queue_id)
        broker, response = await self._ask(topic, request.encode(RequestCode.GET_MIN_OFFSET), broker_name, None)
        return self._offset(topic, broker, response)

    async def request(
        self,
        topic: str,
        command: RemotingCommand,
        *,
        broker_name: str | None = None,
        expected: frozenset[int] = frozenset({ResponseCode.SUCCESS}),
        waits_s: float = 0.0,
    ) -> tuple[str, RemotingCommand]:
        """One request to the master of a topic, for what this client does not know itself; who answered, and what,
        if the response code is an expected one. So much longer than usual the answer may wait. Raises ClientError."""
        broker, response = await self._ask(topic, command, broker_name, None, waits_s=waits_s)
        if response.code not in expected:
            raise self._refused(topic, broker, response)
        return broker, response

    def _deadline_ns(self) -> int:
        return self._host.clock.monotonic_ns() + int(self._timeout_s * 1e9)

    def _remaining_s(self, deadline_ns: int) -> float:
        return (deadline_ns - self._host.clock.monotonic_ns()) / 1e9

    async def _ask(
        self,
        topic: str,
        command: RemotingCommand,
        broker_name: str | None,
        address: str | None,
        default_topic: str | None = None,
        deadline_ns: int | None = None,
        waits_s: float = 0.0,
    ) -> tuple[str, RemotingCommand]:
        """The one request of a call: to `address`, or else to the master. Returns who answered, and the answer."""
        deadline_ns = (self._deadline_ns() if deadline_ns is None else deadline_ns) + int(waits_s * 1e9)
        if address is None:
            try:
                route = await self._route(topic, deadline_ns)
            except _TopicUnknown:
                if default_topic is None:
                    raise
                route = await self._route(default_topic, deadline_ns)
            group = self._group(route, topic, broker_name)
            address = group.master
            if address is None:
                raise self._failed(topic, "no-route", True, f"{group.broker_name} has no master", None)
        try:
            return address, await self._remoting.invoke(address, command, self._remaining_s(deadline_ns))
        except ConnectFailed as error:
            raise self._failed(topic, "connect-failed", True, str(error), address) from error
        except ConnectionClosed as error:
            raise self._failed(topic, "connection-lost", False, str(error), address) from error
        except TimeoutError as error:
            raise self._failed(topic, "client-timeout", False, str(error), address) from error

    async def _route(self, topic: str, deadline_ns: int) -> TopicRoute:
        known = self._routes.get(topic)
        if known is not None and self._host.clock.monotonic_ns() < known[1]:
            return known[0]
        command = RemotingCommand.request(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic, "acceptStandardJsonOnly": "true"}
        )
        reasons: list[str] = []
        is_unknown = False
        for left in range(len(self._nameservers), 0, -1):
            nameserver = self._nameservers[self._next_nameserver]
            self._next_nameserver = (self._next_nameserver + 1) % len(self._nameservers)
            try:
                response = await self._remoting.invoke(nameserver, command, self._remaining_s(deadline_ns) / left)
                if response.code == ResponseCode.SUCCESS:
                    route = TopicRoute.decode(response.body)
                    expires_ns = self._host.clock.monotonic_ns() + int(ROUTE_AGE_LIMIT_S * 1e9)
                    self._routes[topic] = route, expires_ns
                    return route
                is_unknown = is_unknown or response.code == ResponseCode.TOPIC_NOT_EXIST
                reasons.append(f"{nameserver}: {response.code} {response.remark}")
            except (ConnectFailed, ConnectionClosed, TimeoutError, ValueError) as error:
                reasons.append(f"{nameserver}: {error}")
        raise (_TopicUnknown if is_unknown else ClientError)("no-route", True, "; ".join(reasons))

    def _group(self, route: TopicRoute, topic: str, broker_name: str | None) -> GroupRoute:
        """A route without the group may come from a NameServer that the group has not registered at yet."""
        groups = [group for group in route.groups if broker_name is None or group.broker_name == broker_name]
        if len(groups) != 1:
            found = ", ".join(group.broker_name for group in route.groups)
            raise self._failed(topic, "no-route", True, f"{topic} lies on [{found}]: name one of them", None)
        return groups[0]

    def _offset(self, topic: str, broker: str, response: RemotingCommand) -> int:
        self._expect_success(topic, broker, response)
        try:
            return int(response.ext_fields["offset"])
        except (KeyError, ValueError) as error:
            raise self._failed(topic, "outcome-unknown", False, f"malformed answer: {error!r}", broker) from error

    def _expect_success(self, topic: str, broker: str, response: RemotingCommand) -> None:
        if response.code != ResponseCode.SUCCESS:
            raise self._refused(topic, broker, response)

    def _refused(self, topic: str, broker: str, response: RemotingCommand) -> ClientError:
        self.forget_route(topic)
        return refusal(response, broker)

    def _failed(self, topic: str, code: str, definite: bool, detail: str, node: str | None) -> ClientError:
        self.forget_route(topic)
        return ClientError(code, definite, detail, node)


def refusal(response: RemotingCommand, broker: str) -> ClientError:
    """What a broker's answer other than SUCCESS means."""
    remark = response.remark or ""
    code, definite = _REFUSALS.get(response.code, ("outcome-unknown", False))
    if response.code == ResponseCode.SYSTEM_ERROR and "in-sync replicas not enough" in remark:
        # RocketMQ's own way to say it; it refuses before it appends.
        code, definite = "in-sync-replicas-not-enough", True
    return ClientError(code, definite, f"{response.code} {remark}".rstrip(), broker)


def _messages(data: bytes) -> tuple[tuple[int, bytes], ...]:
    messages: list[tuple[int, bytes]] = []
    position = 0
    while position < len(data):
        queue_offset, body, sys_flag, size = queue_entry(data, position)
        messages.append((queue_offset, decompress_body(body, sys_flag)))
        position += size
    return tuple(messages)
