"""How a push consumer consumes; the periods are RocketMQ's defaults, in seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum

from system_under_test.rocketmq.allocation import Allocation, averagely
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage, FlowLimits
from system_under_test.rocketmq.consumer_group import check_name
from system_under_test.rocketmq.consumer_protocol import ConsumeFromWhere, MessageModel


class Outcome(Enum):
    """What a listener says of the messages that it was given."""

    SUCCESS = "success"
    LATER = "later"
    """They are to come again."""


Listener = Callable[[tuple[ConsumerMessage, ...]], Awaitable[Outcome]]


class Mode(Enum):
    CONCURRENTLY = "concurrently"
    """Messages of one queue side by side; those that fail come again later, from the group's retry topic."""
    ORDERLY = "orderly"
    """One after the other; a message that fails is tried again before those behind it."""


class DividedBy(Enum):
    """Who divides the queues among the members of a group."""

    MEMBERS = "members"
    """Each member for itself, with its strategy."""
    BROKERS = "brokers"
    """Any broker that is asked; it also says whether queues are to be pulled or popped."""


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig:
    nameservers: tuple[str, ...]
    group: str
    client_id: str
    """No two members of a group may have the same one."""
    subscriptions: Mapping[str, str]
    """Topic -> `*`, or tags with `||` between."""
    mode: Mode = Mode.CONCURRENTLY
    model: MessageModel = MessageModel.CLUSTERING
    from_where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET
    """Where the group begins on a queue that it has never consumed."""
    divided_by: DividedBy = DividedBy.MEMBERS
    allocation: Allocation = averagely
    strategy: str = "AVG"
    """The strategy by which brokers are to divide."""
    max_reconsume_times: int | None = None
    """So many tries more than the first, and a message is a dead letter; None: as the group is configured at the
    brokers, and in order never."""
    retry_delay_level: int = 0
    """0: the brokers choose."""
    pull_batch: int = 32
    consume_batch: int = 1
    consume_tasks: int = 20
    limits: FlowLimits = field(default_factory=FlowLimits)

    request_timeout_s: float = 3.0
    heartbeat_s: float = 30.0
    rebalance_s: float = 20.0
    rebalance_again_s: float = 0.5
    """How long after a rebalance in which not all could be done the next one is."""
    persist_offsets_s: float = 5.0
    suspend_pull_s: float = 15.0
    """So long a broker may wait for messages before it answers."""
    pull_retry_s: float = 3.0
    flow_control_s: float = 0.05
    lock_s: float = 20.0
    lock_lives_s: float = 30.0
    """So long after it was asked for, a lock lets this member begin something: half as long as brokers keep it."""
    suspend_queue_s: float = 1.0
    """How long it is before a message that failed is tried again in order."""
    consume_again_s: float = 5.0
    """How long it is before a message that failed, and could not be sent back, is tried again."""
    pop_invisible_s: float = 60.0
    """So long what was popped is this member's."""
    pop_again_s: float = 10.0
    """How long it is before what was popped, and failed, comes again."""
    finish_s: float = 5.0
    """So long a shutdown waits for the listener."""

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_name(self.group)
        if not self.subscriptions:
            raise ValueError("a consumer needs at least one subscription, got none")
        if self.from_where is ConsumeFromWhere.TIMESTAMP:
            raise ValueError("from_where: expected LAST_OFFSET or FIRST_OFFSET, got TIMESTAMP, which is not supported")
        if self.divided_by is DividedBy.BROKERS and (self.mode is Mode.ORDERLY or not self.divides_queues):
            raise ValueError("divided_by: expected MEMBERS where a group consumes in order or broadcasts, got BROKERS")
        for name in ("pull_batch", "consume_batch", "consume_tasks"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected a number from 1 on, got {getattr(self, name)}")

    @property
    def divides_queues(self) -> bool:
        """Each queue is one member's, instead of each member having all of them."""
        return self.model is MessageModel.CLUSTERING

    @property
    def needs_locks(self) -> bool:
        return self.divides_queues and self.mode is Mode.ORDERLY

    def paced(self, scale: float) -> ConsumerConfig:
        """The same with all periods shorter or longer, but for the time that a request may take."""
        scaled = {one.name: getattr(self, one.name) * scale for one in fields(self) if one.name.endswith("_s")}
        return replace(self, **{**scaled, "request_timeout_s": self.request_timeout_s})


def wanted_tags(expression: str) -> tuple[str, ...]:
    """None at all for all tags."""
    tags = tuple(tag.strip() for tag in expression.split("||") if tag.strip())
    return () if tags == ("*",) else tags
