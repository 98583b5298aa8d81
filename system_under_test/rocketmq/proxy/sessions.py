"""Clients as a proxy knows them: who they are, what they said of themselves, the stream on which they can be told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from system_under_test.grpc.errors import StreamEnded
from system_under_test.grpc.server import Call
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.messages import group_of, topic_of
from system_under_test.rocketmq.proxy.refusals import OK, Refused
from system_under_test.rocketmq.proxy.v2 import (
    ClientType,
    Code,
    CustomizedBackoff,
    Duration,
    ExponentialBackoff,
    Metric,
    Publishing,
    RetryPolicy,
    Settings,
    Subscription,
    TelemetryCommand,
)

MAX_SESSIONS = 100_000
MAX_TOPICS_A_CLIENT = 100
RETRY_DELAYS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
"""Times after which a message that was not consumed comes again: RocketMQ's levels, from the third on for clients."""
CONSUMER_ATTEMPTS = 17
_CONSUMERS = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.PULL_CONSUMER)


@dataclass(slots=True)
class Session:
    client_id: str
    heard_ns: int
    settings: Settings = field(default_factory=Settings)
    stream: Call | None = None

    published: dict[str, None] = field(default_factory=dict)
    """Topics that it sends to, as far as it said or did so."""

    @property
    def is_fifo(self) -> bool:
        return bool(self.settings.subscription and self.settings.subscription.fifo)


class Sessions:
    """By client id. In memory only: clients tell a new proxy all of it again."""

    def __init__(self, config: ProxyConfig, in_order: Callable[[Subscription], Awaitable[bool]]) -> None:
        self._config = config
        self._in_order = in_order
        """Whether brokers say that a group consumes in order."""
        self._sessions: dict[str, Session] = {}

    def of(self, call: Call, now_ns: int) -> Session:
        """The session of the calling client, made if there is none. Raises Refused where the call names no client."""
        client_id = call.metadata.get("x-mq-client-id", "")
        if not client_id:
            raise Refused(Code.CLIENT_ID_REQUIRED, "x-mq-client-id is missing")
        session = self._sessions.get(client_id)
        if session is None:
            if len(self._sessions) >= MAX_SESSIONS:
                raise Refused(Code.TOO_MANY_REQUESTS, f"{MAX_SESSIONS} clients are connected already")
            session = self._sessions[client_id] = Session(client_id, now_ns)
        session.heard_ns = now_ns
        return session

    def published_topics(self) -> list[str]:
        """All that any client publishes to."""
        return list(dict.fromkeys(topic for session in self._sessions.values() for topic in session.published))

    def publishing(self, topic: str) -> list[Session]:
        return [session for session in self._sessions.values() if topic in session.published]

    def forget(self, client_id: str) -> None:
        self._sessions.pop(client_id, None)

    def expire(self, now_ns: int) -> list[str]:
        """Forget clients that are silent, and end their streams: those of one that has vanished stay open; which."""
        silent = [session for session in self._sessions.values() if self.is_silent(session, now_ns)]
        for session in silent:
            del self._sessions[session.client_id]
            if session.stream is not None:
                session.stream.abort("the client is silent")
        return [session.client_id for session in silent]

    def is_silent(self, session: Session, now_ns: int) -> bool:
        return session.heard_ns + int(self._config.client_expires_s * 1e9) < now_ns

    async def settled(self, session: Session, settings: Settings) -> Settings:
        """What a client says of itself, with what the proxy decides. Raises Refused."""
        if settings.publishing is None and settings.subscription is None:
            raise Refused(Code.UNRECOGNIZED_CLIENT_TYPE, "a client either publishes or subscribes")
        _check_names(settings)
        if settings.publishing is not None:
            settings.publishing = Publishing(
                topics=settings.publishing.topics, max_body_size=self._config.max_body_bytes, validate_message_type=True
            )
            settings.backoff_policy = RetryPolicy(
                max_attempts=self._config.producer_attempts,
                exponential_backoff=ExponentialBackoff(
                    initial=Duration(nanos=10_000_000), max=Duration(seconds=1), multiplier=2.0
                ),
            )
        elif settings.subscription is not None:
            given = settings.subscription
            settings.subscription = Subscription(
                group=given.group,
                subscriptions=given.subscriptions,
                fifo=bool(given.fifo) or await self._in_order(given),
                receive_batch_size=self._config.max_receive_count,
                long_polling_timeout=Duration(seconds=int(self._config.max_polling_s)),
            )
            settings.backoff_policy = RetryPolicy(
                max_attempts=CONSUMER_ATTEMPTS,
                customized_backoff=CustomizedBackoff(next=[Duration(seconds=delay) for delay in RETRY_DELAYS_S[2:]]),
            )
        settings.metric = Metric(on=False)
        session.settings = settings
        for resource in settings.publishing.topics if settings.publishing is not None else ():
            publish(session, topic_of(resource))
        return settings

    async def converse(self, call: Call, session: Session, now_ns: Callable[[], int]) -> None:
        """A client's telemetry stream, until either side ends it. Raises GrpcError, MalformedMessage."""
        session.stream = call
        try:
            while (data := await call.receive()) is not None:
                session.heard_ns = now_ns()
                command = TelemetryCommand.decode(data)
                if command.settings is not None:
                    await call.send((await self._answer(session, command.settings)).encode())
        except StreamEnded:
            pass
        finally:
            if session.stream is call:
                session.stream = None

    async def _answer(self, session: Session, settings: Settings) -> TelemetryCommand:
        try:
            return TelemetryCommand(status=OK, settings=await self.settled(session, settings))
        except Refused as refused:
            return TelemetryCommand(status=refused.status)


def _check_names(settings: Settings) -> None:
    """Raises Refused: what is no name is asked about nowhere."""
    for resource in settings.publishing.topics if settings.publishing is not None else ():
        topic_of(resource)
    if settings.subscription is not None:
        if settings.subscription.group is not None:
            group_of(settings.subscription.group)
        for entry in settings.subscription.subscriptions:
            if entry.topic is not None:
                topic_of(entry.topic)


def publish(session: Session, topic: str) -> None:
    """Note that it sends to this topic."""
    if len(session.published) < MAX_TOPICS_A_CLIENT:
        session.published[topic] = None


def is_consumer(client_type: int) -> bool:
    return client_type in _CONSUMERS
