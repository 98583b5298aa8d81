"""What clients and brokers say to each other about messages: typed requests and their remoting form.

Header fields have RocketMQ's names; SEND_MESSAGE is understood in its short-named second form as well.
The body of a pull's answer is messages in the commit log's layout, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.rocketmq.topic import DEFAULT_TOPIC
from system_under_test.storage.store_results import Boundary

MAX_DIGITS = 100
"""This is far from the length at which Python refuses to write a number that it has read."""

_SHORT_NAMES = {
    "producerGroup": "a",
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
    "brokerName": "n",
}
_UNIQUE_KEY = "_UNIQUE_KEY_QUERY"
_LONG_NAMES = {short: name for name, short in _SHORT_NAMES.items()}
_SHORT_NAMED = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)

PULL_COMMIT_FLAG = 1
"""Says in a pull's sysFlag that its commitOffset is where the group has come to."""
PULL_SUSPEND_FLAG = 2
"""Says in a pull's sysFlag that the answer may wait for suspendTimeoutMillis where there is nothing to read."""
PULL_SUBSCRIPTION_FLAG = 4
"""Says in a pull's sysFlag that the request carries its subscription."""
TRANSACTION_FLAGS = 4 | 8
"""Say in a send's sysFlag whether the message is prepared, committed or rolled back, or of no transaction."""
IPV6_FLAGS = 16 | 32
"""Say in a message's sysFlag that its hosts take 16 bytes of address instead of 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """A negative `queue_id` leaves the choice to the broker. `properties` are `name\\x01value\\x02` pieces."""

    topic: str
    queue_id: int
    body: bytes
    born_timestamp_ms: int
    producer_group: str = "DEFAULT_PRODUCER"
    properties: str = ""
    sys_flag: int = 0
    flag: int = 0
    reconsume_times: int = 0
    default_topic: str = DEFAULT_TOPIC
    """The one that the topic is made after, with at most `default_queues`, if there is none and the broker may."""
    default_queues: int = 4
    max_reconsume_times: int | None = None
    """How often a group tries a message that its consumer sends to be tried again, unless the broker is to say."""
    is_batch: bool = False
    """The body is a batch (`message_batch.py`), whose messages have properties of their own."""

    def encode(self) -> RemotingCommand:
        fields = {
            "producerGroup": self.producer_group,
            "topic": self.topic,
            "defaultTopic": self.default_topic,
            "defaultTopicQueueNums": str(self.default_queues),
            "queueId": str(self.queue_id),
            "sysFlag": str(self.sys_flag),
            "bornTimestamp": str(self.born_timestamp_ms),
            "flag": str(self.flag),
            "properties": self.properties,
            "reconsumeTimes": str(self.reconsume_times),
            "unitMode": "false",
            "batch": "true" if self.is_batch else "false",
            **({} if self.max_reconsume_times is None else {"maxReconsumeTimes": str(self.max_reconsume_times)}),
        }
        if not self.is_batch:
            return RemotingCommand.request(RequestCode.SEND_MESSAGE, fields, self.body)
        short_fields = {_SHORT_NAMES[name]: value for name, value in fields.items()}
        return RemotingCommand.request(RequestCode.SEND_BATCH_MESSAGE, short_fields, self.body)

    @classmethod
    def decode(cls, command: RemotingCommand) -> SendRequest:
        """Both forms, and batches. Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        if command.code in _SHORT_NAMED:
            fields = {_LONG_NAMES[name]: value for name, value in fields.items() if name in _LONG_NAMES}
        try:
            return cls(
                topic=fields["topic"],
                queue_id=number(fields["queueId"]),
                body=command.body,
                born_timestamp_ms=number(fields["bornTimestamp"]),
                producer_group=fields["producerGroup"],
                properties=fields.get("properties") or "",
                sys_flag=number(fields.get("sysFlag", "0")),
                flag=number(fields.get("flag", "0")),
                reconsume_times=number(fields.get("reconsumeTimes") or "0"),
                default_topic=fields.get("defaultTopic") or DEFAULT_TOPIC,
                default_queues=number(fields.get("defaultTopicQueueNums") or "4"),
                max_reconsume_times=number(fields["maxReconsumeTimes"]) if fields.get("maxReconsumeTimes") else None,
                is_batch=fields.get("batch", "false").lower() == "true",
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAnswer:
    """Where a message went. It accompanies SUCCESS and the timeouts of flushing and replication alike.

    Of a batch `message_id` has the ids of all messages, with commas between, and `queue_offset` is that of the first.
    """

    message_id: str
    queue_id: int
    queue_offset: int
    transaction_id: str = ""
    """What its producer calls the message, where it does."""

    def encode(self, code: int = ResponseCode.SUCCESS, remark: str | None = None) -> RemotingCommand:
        fields = {
            "msgId": self.message_id,
            "queueId": str(self.queue_id),
            "queueOffset": str(self.queue_offset),
            **({"transactionId": self.transaction_id} if self.transaction_id else {}),
        }
        return RemotingCommand.response(code, fields, remark=remark)

    @classmethod
    def decode(cls, command: RemotingCommand) -> SendAnswer:
        fields = command.ext_fields
        try:
            return cls(
                message_id=fields["msgId"],
                queue_id=number(fields["queueId"]),
                queue_offset=number(fields["queueOffset"]),
                transaction_id=fields.get("transactionId") or "",
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """With a `suspend_timeout_ms` of 0 the answer never waits; a `commit_offset` of None commits nothing.

    A `subscription` of None is the one that the group has told in its heartbeats.
    """

    topic: str
    queue_id: int
    queue_offset: int
    max_count: int
    consumer_group: str
    suspend_timeout_ms: int = 0
    commit_offset: int | None = None
    subscription: str | None = "*"
    expression_type: str = "TAG"

    @property
    def _flags(self) -> int:
        commits = 0 if self.commit_offset is None else PULL_COMMIT_FLAG
        subscribes = 0 if self.subscription is None else PULL_SUBSCRIPTION_FLAG
        return subscribes | commits | (PULL_SUSPEND_FLAG if self.suspend_timeout_ms > 0 else 0)

    def encode(self) -> RemotingCommand:
        return RemotingCommand.request(
            RequestCode.PULL_MESSAGE,
            {
                "consumerGroup": self.consumer_group,
                "topic": self.topic,
                "queueId": str(self.queue_id),
                "queueOffset": str(self.queue_offset),
                "maxMsgNums": str(self.max_count),
                "sysFlag": str(self._flags),
                "commitOffset": str(self.commit_offset or 0),
                "suspendTimeoutMillis": str(self.suspend_timeout_ms),
                "subscription": self.subscription or "",
                "subVersion": "0",
                "expressionType": self.expression_type,
            },
        )

    @classmethod
    def decode(cls, command: RemotingCommand) -> PullRequest:
        fields = command.ext_fields
        try:
            flags = number(fields.get("sysFlag", "0"))
            suspend_timeout_ms = number(fields.get("suspendTimeoutMillis", "0"))
            return cls(
                topic=fields["topic"],
                queue_id=number(fields["queueId"]),
                queue_offset=number(fields["queueOffset"]),
                max_count=number(fields["maxMsgNums"]),
                consumer_group=fields["consumerGroup"],
                suspend_timeout_ms=max(0, suspend_timeout_ms) if flags & PULL_SUSPEND_FLAG else 0,
                commit_offset=number(fields["commitOffset"]) if flags & PULL_COMMIT_FLAG else None,
                subscription=(fields.get("subscription") or "*") if flags & PULL_SUBSCRIPTION_FLAG else None,
                expression_type=fields.get("expressionType") or "TAG",
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PullAnswer:
    """`data` is the messages found; the offsets say where to go on and what the queue holds."""

    next_offset: int
    min_offset: int
    max_offset: int
    data: bytes = b""
    suggested_broker_id: int = 0
    offset_delta: int = 0
    """Added to the queue offsets of the messages: of static topics they say where these lie in a segment."""

    def encode(self, code: int = ResponseCode.SUCCESS, remark: str | None = None) -> RemotingCommand:
        fields = {
            "suggestWhichBrokerId": str(self.suggested_broker_id),
            "nextBeginOffset": str(self.next_offset),
            "minOffset": str(self.min_offset),
            "maxOffset": str(self.max_offset),
            **({"offsetDelta": str(self.offset_delta)} if self.offset_delta else {}),
        }
        return RemotingCommand.response(code, fields, self.data, remark)

    @classmethod
    def decode(cls, command: RemotingCommand) -> PullAnswer:
        fields = command.ext_fields
        try:
            return cls(
                next_offset=number(fields["nextBeginOffset"]),
                min_offset=number(fields["minOffset"]),
                max_offset=number(fields["maxOffset"]),
                data=command.body,
                suggested_broker_id=number(fields.get("suggestWhichBrokerId", "0")),
                offset_delta=number(fields.get("offsetDelta") or "0"),
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRequest:
    """A question about one queue: its greatest or least offset, or how far a consumer group has come.

    `consumer_group` is empty, and `commit_offset` None, where the request has none.
    """

    topic: str
    queue_id: int
    consumer_group: str = ""
    commit_offset: int | None = None
    is_zero_if_unknown: bool = True
    """Where the group has committed nothing: it may be told that it has come to 0, if that is all the queue has had."""

    def encode(self, code: RequestCode) -> RemotingCommand:
        fields: Mapping[str, str] = {
            "topic": self.topic,
            "queueId": str(self.queue_id),
            **({"consumerGroup": self.consumer_group} if self.consumer_group else {}),
            **({} if self.commit_offset is None else {"commitOffset": str(self.commit_offset)}),
            **({} if self.is_zero_if_unknown else {"setZeroIfNotFound": "false"}),
        }
        return RemotingCommand.request(code, fields)

    @classmethod
    def decode(cls, command: RemotingCommand) -> QueueRequest:
        fields = command.ext_fields
        try:
            commit_offset = fields.get("commitOffset")
            return cls(
                topic=fields["topic"],
                queue_id=number(fields["queueId"]),
                consumer_group=fields.get("consumerGroup", ""),
                commit_offset=None if commit_offset is None else number(commit_offset),
                is_zero_if_unknown=fields.get("setZeroIfNotFound", "true").lower() != "false",
            )
        except (KeyError, ValueError) as error:
            raise _invalid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyQuery:
    """For the newest messages with a key, stored between two times, both included; `is_unique` for the one that its
    producer gave this key."""

    topic: str
    key: str
    max_count: int = 64
    begin_ms: int = 0
    end_ms: int = 2**63 - 1
    is_unique: bool = False

    def encode(self) -> RemotingCommand:
        fields = {
            "topic": self.topic,
            "key": self.key,
            "maxNum": str(self.max_count),
            "beginTimestamp": str(self.begin_ms),
            "endTimestamp": str(self.end_ms),
            **({_UNIQUE_KEY: "true"} if self.is_unique else {}),
        }
        return RemotingCommand.request(RequestCode.QUERY_MESSAGE, fields)

    @classmethod
    def decode(cls, command: RemotingCommand) -> KeyQuery:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        return cls(
            topic=_text(fields, "topic"),
            key=_text(fields, "key"),
            max_count=whole_number(fields, "maxNum"),
            begin_ms=whole_number(fields, "beginTimestamp"),
            end_ms=whole_number(fields, "endTimestamp"),
            is_unique=fields.get(_UNIQUE_KEY, "false").lower() == "true",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeQuery:
    """For the place in a queue that was reached at a time."""

    topic: str
    queue_id: int
    time_ms: int
    boundary: Boundary = Boundary.LOWER

    def encode(self) -> RemotingCommand:
        fields = {
            "topic": self.topic,
            "queueId": str(self.queue_id),
            "timestamp": str(self.time_ms),
            "boundaryType": self.boundary.name,
        }
        return RemotingCommand.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)

    @classmethod
    def decode(cls, command: RemotingCommand) -> TimeQuery:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        is_upper = fields.get("boundaryType", "").lower() == Boundary.UPPER.value
        return cls(
            topic=_text(fields, "topic"),
            queue_id=whole_number(fields, "queueId"),
            time_ms=whole_number(fields, "timestamp"),
            boundary=Boundary.UPPER if is_upper else Boundary.LOWER,
        )


def whole_number(fields: Mapping[str, str], name: str) -> int:
    """Raises RemotingError (INVALID_PARAMETER)."""
    try:
        return number(fields[name])
    except (KeyError, ValueError) as error:
        raise _invalid(error) from error


def _text(fields: Mapping[str, str], name: str) -> str:
    try:
        return fields[name]
    except KeyError as error:
        raise _invalid(error) from error


def number(text: str) -> int:
    """Raises ValueError for what is no whole number, or one far beyond 64 bits."""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _invalid(error: Exception) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, f"a header field is missing or wrong: {error}")
