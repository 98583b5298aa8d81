"""What consumers and brokers say to each other about groups: who is a member, who may consume which queue in order, and
which messages are to come again. Names and values in JSON are RocketMQ's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.message_protocol import number
from system_under_test.storage.message import MAX_TIMES

RETRY_PREFIX: Final = "%RETRY%"
DEAD_LETTER_PREFIX: Final = "%DLQ%"
RETRY_TOPIC: Final = "RETRY_TOPIC"
"""Property of a message that came back: the topic that it was sent to at first."""
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
"""Property of a message that came back: the id of the one that was sent at first."""
DELAY_LEVEL: Final = "DELAY"
FIRST_RETRY_LEVEL: Final = 3
"""A message that comes back for the first time waits at this level of delay, the next time at the next one."""
MAX_CLIENT_ID: Final = 1_024
MAX_SUBSCRIPTIONS: Final = 1_000
"""How many subscriptions one member of one group may have."""


def one_more(times: int) -> int:
    """The count of a message that comes again: it stays at the greatest one that a message has room for."""
    return min(times + 1, MAX_TIMES)


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    return DEAD_LETTER_PREFIX + group


class ConsumeType(Enum):
    ACTIVELY = "CONSUME_ACTIVELY"
    PASSIVELY = "CONSUME_PASSIVELY"
    POP = "CONSUME_POP"


class MessageModel(Enum):
    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFromWhere(Enum):
    """Where a group begins on a queue on which it has not committed any offset."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageQueue(NamedTuple):
    """One queue; compares as RocketMQ's does, so that all members of a group see queues in the same order."""

    topic: str
    broker_name: str
    queue_id: int

    def as_json(self) -> dict[str, Any]:
        return {"brokerName": self.broker_name, "queueId": self.queue_id, "topic": self.topic}

    @classmethod
    def from_json(cls, value: Any) -> MessageQueue:
        """Raises ValueError, KeyError, TypeError."""
        return cls(_text(value["topic"]), _text(value["brokerName"]), _whole(value["queueId"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a group wants of a topic. `version` grows when a consumer changes it."""

    topic: str
    expression: str = "*"
    tags: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    version: int = 0
    expression_type: str = "TAG"

    def as_json(self) -> dict[str, Any]:
        return {
            "classFilterMode": False,
            "codeSet": list(self.codes),
            "expressionType": self.expression_type,
            "subString": self.expression,
            "subVersion": self.version,
            "tagsSet": list(self.tags),
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, value: Any) -> Subscription:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        return cls(
            topic=_text(value["topic"]),
            expression=_text(value.get("subString") or "*"),
            tags=tuple(_text(tag) for tag in value.get("tagsSet") or ()),
            codes=tuple(_whole(code) for code in value.get("codeSet") or ()),
            version=_whole(value.get("subVersion", 0)),
            expression_type=_text(value.get("expressionType") or "TAG"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerData:
    """How one client consumes as a member of one group."""

    group: str
    consume_type: ConsumeType = ConsumeType.PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    from_where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET
    subscriptions: tuple[Subscription, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "consumeFromWhere": self.from_where.value,
            "consumeType": self.consume_type.value,
            "groupName": self.group,
            "messageModel": self.message_model.value,
            "subscriptionDataSet": [subscription.as_json() for subscription in self.subscriptions],
            "unitMode": False,
        }

    @classmethod
    def from_json(cls, value: Any) -> ConsumerData:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        subscriptions = value.get("subscriptionDataSet") or ()
        if len(subscriptions) > MAX_SUBSCRIPTIONS:
            raise ValueError(f"{len(subscriptions)} subscriptions, at most {MAX_SUBSCRIPTIONS} are possible")
        return cls(
            group=_text(value["groupName"]),
            consume_type=ConsumeType(value["consumeType"]),
            message_model=MessageModel(value["messageModel"]),
            from_where=_from_where(value["consumeFromWhere"]),
            subscriptions=tuple(Subscription.from_json(one) for one in subscriptions),
        )


_OLD_BEGINNINGS: Final = {
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST": ConsumeFromWhere.LAST_OFFSET,
    "CONSUME_FROM_MIN_OFFSET": ConsumeFromWhere.LAST_OFFSET,
    "CONSUME_FROM_MAX_OFFSET": ConsumeFromWhere.LAST_OFFSET,
}
"""What old clients say, and mean the same by."""


def _from_where(name: Any) -> ConsumeFromWhere:
    old = _OLD_BEGINNINGS.get(_text(name))
    return ConsumeFromWhere(name) if old is None else old


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A client says of which groups it is: HEART_BEAT."""

    client_id: str
    consumers: tuple[ConsumerData, ...] = ()
    producer_groups: tuple[str, ...] = ()

    def encode(self) -> RemotingCommand:
        body = {
            "clientID": self.client_id,
            "consumerDataSet": [data.as_json() for data in self.consumers],
            "heartbeatFingerprint": 0,
            "producerDataSet": [{"groupName": group} for group in self.producer_groups],
            "withoutSub": False,
        }
        return RemotingCommand.request(RequestCode.HEART_BEAT, body=_json(body))

    @classmethod
    def decode(cls, command: RemotingCommand) -> Heartbeat:
        """Raises RemotingError (INVALID_PARAMETER)."""
        try:
            value = decode_json(command.body)
            return cls(
                client_id=_client_id(value["clientID"]),
                consumers=tuple(ConsumerData.from_json(one) for one in value.get("consumerDataSet") or ()),
                producer_groups=tuple(_text(one["groupName"]) for one in value.get("producerDataSet") or ()),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _invalid("no heartbeat", error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLockRequest:
    """A member wants to be the only one of its group that consumes these queues, or wants it no longer: LOCK_BATCH_MQ
    and UNLOCK_BATCH_MQ."""

    group: str
    client_id: str
    queues: tuple[MessageQueue, ...]
    only_this_broker: bool = False
    """What a master asks its replicas where locks are strict."""
    order: tuple[int, int] = (0, 0)
    """The master's epoch then, and which of its requests this is."""

    def encode(self, code: RequestCode) -> RemotingCommand:
        body: dict[str, Any] = {
            "clientId": self.client_id,
            "consumerGroup": self.group,
            "mqSet": [queue.as_json() for queue in self.queues],
            "onlyThisBroker": self.only_this_broker,
        }
        if any(self.order):
            body["order"] = list(self.order)
        return RemotingCommand.request(code, body=_json(body))

    @classmethod
    def decode(cls, command: RemotingCommand) -> QueueLockRequest:
        """Raises RemotingError (INVALID_PARAMETER)."""
        try:
            value = decode_json(command.body)
            master_epoch, number = value.get("order") or (0, 0)
            return cls(
                group=_text(value["consumerGroup"]),
                client_id=_client_id(value["clientId"]),
                order=(_whole(master_epoch), _whole(number)),
                queues=tuple(MessageQueue.from_json(one) for one in value.get("mqSet") or ()),
                only_this_broker=value.get("onlyThisBroker", False) is True,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _invalid("no queues to lock", error) from error


def locked_queues_answer(queues: Sequence[MessageQueue]) -> RemotingCommand:
    body = {"lockOKMQSet": [queue.as_json() for queue in queues]}
    return RemotingCommand.response(ResponseCode.SUCCESS, body=_json(body))


def locked_queues(command: RemotingCommand) -> tuple[MessageQueue, ...]:
    """Raises ValueError."""
    try:
        return tuple(MessageQueue.from_json(one) for one in decode_json(command.body)["lockOKMQSet"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no locked queues: {error!r}") from error


def members_answer(client_ids: Sequence[str]) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, body=_json({"consumerIdList": list(client_ids)}))


def members(command: RemotingCommand) -> tuple[str, ...]:
    """Raises ValueError."""
    try:
        return tuple(_text(one) for one in decode_json(command.body)["consumerIdList"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no list of members: {error!r}") from error


class RequestMode(Enum):
    """How the members of a group get the messages of a topic."""

    PULL = "PULL"
    POP = "POP"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestModeSetting:
    """What an administrator has chosen for a topic and a group: SET_MESSAGE_REQUEST_MODE."""

    topic: str
    group: str
    mode: RequestMode = RequestMode.PULL
    shared_queues: int = -1
    """Where queues are popped: with so many of the members behind it a member shares their queues; -1 and 0, all share
    all of them."""

    def as_json(self) -> dict[str, Any]:
        return {
            "consumerGroup": self.group,
            "mode": self.mode.value,
            "popShareQueueNum": self.shared_queues,
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, value: Any) -> RequestModeSetting:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        return cls(
            topic=_text(value["topic"]),
            group=_text(value["consumerGroup"]),
            mode=RequestMode(value["mode"]),
            shared_queues=_whole(value.get("popShareQueueNum", 0)),
        )

    def encode(self) -> RemotingCommand:
        return RemotingCommand.request(RequestCode.SET_MESSAGE_REQUEST_MODE, body=_json(self.as_json()))

    @classmethod
    def decode(cls, command: RemotingCommand) -> RequestModeSetting:
        """Raises RemotingError (INVALID_PARAMETER)."""
        try:
            return cls.from_json(decode_json(command.body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _invalid("no message request mode", error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentRequest:
    """A member asks which queues of a topic are its own: QUERY_ASSIGNMENT."""

    topic: str
    group: str
    client_id: str
    strategy: str = "AVG"
    model: MessageModel = MessageModel.CLUSTERING

    def encode(self) -> RemotingCommand:
        body = {
            "clientId": self.client_id,
            "consumerGroup": self.group,
            "messageModel": self.model.value,
            "strategyName": self.strategy,
            "topic": self.topic,
        }
        return RemotingCommand.request(RequestCode.QUERY_ASSIGNMENT, body=_json(body))

    @classmethod
    def decode(cls, command: RemotingCommand) -> AssignmentRequest:
        """Raises RemotingError (INVALID_PARAMETER)."""
        try:
            value = decode_json(command.body)
            return cls(
                topic=_text(value["topic"]),
                group=_text(value["consumerGroup"]),
                client_id=_client_id(value["clientId"]),
                strategy=_text(value["strategyName"]),
                model=MessageModel(value["messageModel"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _invalid("no question for queues", error) from error


class Assignment(NamedTuple):
    """A queue is a member's own, or one that it pops; with a queue id of -1 it pops any queue of that broker group."""

    queue: MessageQueue
    mode: RequestMode


def assignments_answer(assignments: Sequence[Assignment] | None) -> RemotingCommand:
    """None: the broker does not know, and the member is to keep what it has."""
    listed = None
    if assignments is not None:
        listed = [{"messageQueue": one.queue.as_json(), "mode": one.mode.value} for one in assignments]
    return RemotingCommand.response(ResponseCode.SUCCESS, body=_json({"messageQueueAssignments": listed}))


def assignments(command: RemotingCommand) -> tuple[Assignment, ...] | None:
    """Raises ValueError."""
    try:
        listed = decode_json(command.body)["messageQueueAssignments"]
        if listed is None:
            return None
        queues = [MessageQueue.from_json(one["messageQueue"]) for one in listed]
        return tuple(map(Assignment, queues, [RequestMode(one["mode"]) for one in listed]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"no assignment of queues: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SendBackRequest:
    """The message at this offset of the log is to come again to the group: CONSUMER_SEND_MSG_BACK.

    With a `delay_level` of 0 the broker chooses when, with a negative one the message is a dead letter at once.
    """

    offset: int
    group: str
    delay_level: int = 0
    origin_message_id: str = ""
    origin_topic: str = ""
    max_reconsume_times: int | None = None

    def encode(self) -> RemotingCommand:
        most = {} if self.max_reconsume_times is None else {"maxReconsumeTimes": str(self.max_reconsume_times)}
        fields = {
            "offset": str(self.offset),
            "group": self.group,
            "delayLevel": str(self.delay_level),
            "originMsgId": self.origin_message_id,
            "originTopic": self.origin_topic,
            "unitMode": "false",
            **most,
        }
        return RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK, fields)

    @classmethod
    def decode(cls, command: RemotingCommand) -> SendBackRequest:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            most = fields.get("maxReconsumeTimes")
            return cls(
                offset=number(fields["offset"]),
                group=fields["group"],
                delay_level=number(fields["delayLevel"]),
                origin_message_id=fields.get("originMsgId", ""),
                origin_topic=fields.get("originTopic", ""),
                max_reconsume_times=None if most is None else number(most),
            )
        except (KeyError, ValueError) as error:
            raise _invalid("a header field is missing or wrong", error) from error


def offsets_notice(topic: str, group: str, offsets: Mapping[MessageQueue, int]) -> RemotingCommand:
    """RESET_CONSUMER_CLIENT_OFFSET, in the form that clients other than Java's get: a list."""
    table = [{**queue.as_json(), "offset": offset} for queue, offset in sorted(offsets.items())]
    fields = {"topic": topic, "group": group, "timestamp": "-1", "isForce": "true"}
    return RemotingCommand.oneway(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, _json({"offsetTable": table}))


def noticed_offsets(command: RemotingCommand) -> dict[MessageQueue, int]:
    """Raises ValueError."""
    try:
        table = decode_json(command.body)["offsetTable"]
        return {MessageQueue.from_json(one): _whole(one["offset"]) for one in table}
    except (KeyError, TypeError) as error:
        raise ValueError(f"no table of offsets: {error!r}") from error


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"expected text, got {value!r}")
    value.encode()  # half a character could be written nowhere
    return value


def _client_id(value: Any) -> str:
    if not 0 < len(_text(value)) <= MAX_CLIENT_ID:
        raise ValueError(f"a client's id has 1 to {MAX_CLIENT_ID} characters")
    return _text(value)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def _invalid(what: str, error: Exception) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, f"{what}: {error}")
