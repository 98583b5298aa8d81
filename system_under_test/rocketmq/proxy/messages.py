"""Messages of version 2 as brokers keep them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from zlib import crc32

from system_under_test.rocketmq.compression import (
    COMPRESSED,
    Compression,
    NotCompressed,
    NotSpoken,
    compression_of,
    decompress_body,
)
from system_under_test.rocketmq.proxy.config import ProxyConfig
from system_under_test.rocketmq.proxy.refusals import Refused
from system_under_test.rocketmq.proxy.v2 import (
    Code,
    DeadLetterQueue,
    Digest,
    DigestType,
    Encoding,
    MessageType,
    Resource,
    SystemProperties,
    Timestamp,
    UserMessage,
)
from system_under_test.rocketmq.topic import check_name, is_system_topic
from system_under_test.storage.message import Message

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
UNIQUE_KEY: Final = "UNIQ_KEY"
SHARDING_KEY: Final = "__SHARDINGKEY"
TRANSACTION: Final = "TRAN_MSG"
DELIVER_AT_MS: Final = "TIMER_DELIVER_MS"
TAKEN_BACK: Final = "TIMER_DEL_UNIQKEY"
PRODUCER_GROUP: Final = "PGROUP"
CHECK_AFTER_S: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
BORN_HOST: Final = "__BORNHOST"
TRACE_CONTEXT: Final = "__TRACE_CONTEXT"
RECEIPT: Final = "POP_CK"
DEAD_LETTER_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
DEAD_LETTER_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"
_RESERVED: Final = frozenset(
    {
        KEYS, TAGS, UNIQUE_KEY, SHARDING_KEY, TRANSACTION, DELIVER_AT_MS, PRODUCER_GROUP, CHECK_AFTER_S, BORN_HOST,
        TRACE_CONTEXT, RECEIPT, DEAD_LETTER_TOPIC, DEAD_LETTER_ID, "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC",
        "REAL_QID", "MIN_OFFSET", "MAX_OFFSET", "BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG", "CORRECTION_FLAG",
        "MQ2_FLAG", "RECONSUME_TIME", "MSG_REGION", "TRACE_ON", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME",
        "TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES", "INSTANCE_ID", "TIMER_DELAY_SEC", "TIMER_DELAY_MS",
        "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_ROLLED_FROM", TAKEN_BACK,
        "1ST_POP_TIME", "POP_REVIVED", "__CRC32#", "CLUSTER", "INNER_NUM", "INNER_BASE", "__transactionId__",
    }
)  # fmt: skip
_MAX_KEY_OR_TAG_CHARACTERS: Final = 128
_MAX_TRANSACTION_ID: Final = 200


class TransactionId(NamedTuple):
    """What a client names its transaction by: where the half message is."""

    broker_name: str
    log_offset: int
    queue_offset: int

    def encode(self) -> str:
        return f"{self.broker_name}:{self.log_offset}:{self.queue_offset}"

    @classmethod
    def decode(cls, text: str) -> TransactionId:
        """Raises ValueError."""
        name, *numbers = text.rsplit(":", 2)
        if len(text) > _MAX_TRANSACTION_ID or len(numbers) != 2 or not all(each.isdecimal() for each in numbers):
            raise ValueError(f"no transaction's id: {text[:100]!r}")
        return cls(name, int(numbers[0]), int(numbers[1]))


def topic_of(resource: Resource | None) -> str:
    """Raises Refused unless it names a topic that clients may use."""
    name = _name(resource)
    try:
        check_name(name)
    except ValueError as error:
        raise Refused(Code.ILLEGAL_TOPIC, str(error)) from error
    if is_system_topic(name):
        raise Refused(Code.ILLEGAL_TOPIC, f"topic {name} belongs to the system")
    return name


def group_of(resource: Resource | None) -> str:
    """Raises Refused unless it names a group of consumers."""
    name = _name(resource)
    try:
        check_name(name, "group")
    except ValueError as error:
        raise Refused(Code.ILLEGAL_CONSUMER_GROUP, str(error)) from error
    return name


def _name(resource: Resource | None) -> str:
    if resource is None:
        return ""
    return f"{resource.resource_namespace}%{resource.name}" if resource.resource_namespace else resource.name


def properties_of(message: UserMessage, topic: str, config: ProxyConfig) -> dict[str, str]:
    """What a broker is told of a message beside its body. Raises Refused for what cannot be sent."""
    system = message.system_properties or SystemProperties()
    if not message.body:
        raise Refused(Code.MESSAGE_BODY_EMPTY, "the message has no body")
    if len(message.body) > config.max_body_bytes:
        raise Refused(
            Code.MESSAGE_BODY_TOO_LARGE, f"a body of {len(message.body)} bytes; {config.max_body_bytes} are the most"
        )
    _check_digest(system.body_digest, message.body)
    properties = _checked_user_properties(message.user_properties, config)
    if not system.message_id:
        raise Refused(Code.ILLEGAL_MESSAGE_ID, "the message has no id")
    properties[UNIQUE_KEY] = _text(system.message_id, Code.ILLEGAL_MESSAGE_ID, "message id")
    if system.tag is not None:
        if not system.tag.strip() or "|" in system.tag:
            raise Refused(Code.ILLEGAL_MESSAGE_TAG, f"a tag is not blank and has no '|', got {system.tag[:100]!r}")
        properties[TAGS] = _text(system.tag, Code.ILLEGAL_MESSAGE_TAG, "tag")
    if system.keys:
        if any(not key or key.split() != [key] for key in system.keys):
            raise Refused(Code.ILLEGAL_MESSAGE_KEY, "a key is not blank and has no spaces")
        properties[KEYS] = " ".join(_text(key, Code.ILLEGAL_MESSAGE_KEY, "key") for key in system.keys)
    properties.update(_special(system, topic))
    if system.born_host:
        properties[BORN_HOST] = _text(system.born_host, Code.BAD_REQUEST, "born host")
    if system.trace_context:
        properties[TRACE_CONTEXT] = _text(system.trace_context, Code.BAD_REQUEST, "trace context", most=1_024)
    return properties


def sys_flag_of(system: SystemProperties) -> int:
    """RocketMQ's flags of a message: whether its body is compressed, whether it is a half message."""
    # zlib and gzip have one number in RocketMQ's flags' compression bits: what readers do is look at the body.
    compressed = COMPRESSED if system.body_encoding == Encoding.GZIP else 0
    return compressed | (4 if system.message_type == MessageType.TRANSACTION else 0)


def delivered(message: Message, receipt: str | None, attempt: int, invisible_ms: int | None = None) -> UserMessage:
    """A stored message as its consumer gets it. Raises Refused where its body cannot be told."""
    properties = message.properties
    body, encoding = _sent_body(message)
    system = SystemProperties(
        tag=properties.get(TAGS),
        keys=properties.get(KEYS, "").split(),
        message_id=properties.get(UNIQUE_KEY, f"{message.physical_offset:032X}"),
        body_digest=Digest(type=DigestType.CRC32, checksum=f"{crc32(body):08X}"),
        body_encoding=encoding,
        message_type=_type(properties),
        born_timestamp=timestamp(message.born_timestamp_ms),
        born_host=properties.get(BORN_HOST, _host_text(message.born_host)),
        store_timestamp=timestamp(message.store_timestamp_ms),
        store_host=_host_text(message.store_host),
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        receipt_handle=receipt,
        delivery_attempt=attempt,
        message_group=properties.get(SHARDING_KEY),
        trace_context=properties.get(TRACE_CONTEXT),
    )
    if (due := properties.get(DELIVER_AT_MS, "")).isdecimal():
        system.delivery_timestamp = timestamp(int(due[:18]))
    if DEAD_LETTER_TOPIC in properties:
        system.dead_letter_queue = DeadLetterQueue(
            topic=properties[DEAD_LETTER_TOPIC], message_id=properties.get(DEAD_LETTER_ID, "")
        )
    return UserMessage(
        topic=Resource(name=message.topic),
        user_properties={name: value for name, value in properties.items() if name not in _RESERVED},
        system_properties=system,
        body=body,
    )


def _sent_body(message: Message) -> tuple[bytes, Encoding]:
    """Version 2 knows zlib and gzip, by one name; what is compressed otherwise is told whole."""
    try:
        how = compression_of(message.sys_flag)
        if how is None:
            return message.body, Encoding.IDENTITY
        if how is not Compression.ZLIB:
            return decompress_body(message.body, message.sys_flag), Encoding.IDENTITY
    except NotSpoken as error:
        raise Refused(Code.UNSUPPORTED, str(error)) from error
    except NotCompressed:
        # Nobody can read it. Its consumer has to know that it is there, and will not be able to make it whole.
        pass
    return message.body, Encoding.GZIP


def timestamp(time_ms: int) -> Timestamp:
    return Timestamp(seconds=time_ms // 1_000, nanos=time_ms % 1_000 * 1_000_000)


def milliseconds(value: Timestamp) -> int:
    return value.seconds * 1_000 + value.nanos // 1_000_000


def _special(system: SystemProperties, topic: str) -> dict[str, str]:
    """What makes a message more than a normal one. Raises Refused where that is contradictory."""
    wants = {
        MessageType.FIFO: bool(system.message_group),
        MessageType.DELAY: system.delivery_timestamp is not None,
        MessageType.TRANSACTION: system.message_type == MessageType.TRANSACTION,
    }
    kinds = [kind for kind, is_wanted in wants.items() if is_wanted]
    if len(kinds) > 1 or (kinds and system.message_type not in (*kinds, MessageType.MESSAGE_TYPE_UNSPECIFIED)):
        names = " and ".join(kind.name for kind in kinds)
        raise Refused(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
            f"type {system.message_type} does not go with what the message says of itself: {names}",
        )
    if system.message_group:
        return {SHARDING_KEY: _text(system.message_group, Code.ILLEGAL_MESSAGE_GROUP, "message group", most=64)}
    if system.delivery_timestamp is not None:
        return {DELIVER_AT_MS: str(milliseconds(system.delivery_timestamp))}
    if system.message_type == MessageType.TRANSACTION:
        # The group of producers whose members are asked for a transaction's outcome is named after the topic.
        special = {TRANSACTION: "true", PRODUCER_GROUP: topic}
        if system.orphaned_transaction_recovery_duration is not None:
            special[CHECK_AFTER_S] = str(system.orphaned_transaction_recovery_duration.seconds)
        return special
    return {}


def _checked_user_properties(properties: Mapping[str, str], config: ProxyConfig) -> dict[str, str]:
    if len(properties) > config.max_user_properties:
        raise Refused(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"{len(properties)} properties; {config.max_user_properties} are the most",
        )
    size = sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())
    if size > config.max_user_property_bytes:
        raise Refused(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"properties of {size} bytes; {config.max_user_property_bytes} are the most",
        )
    for name, value in properties.items():
        if not name or name in _RESERVED or not (name + value).isprintable():
            raise Refused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"no message may have a property {name[:100]!r}")
    return dict(properties)


def _text(text: str, code: Code, what: str, most: int = _MAX_KEY_OR_TAG_CHARACTERS) -> str:
    """Control characters would end a property and begin another."""
    if len(text) > most or not text.isprintable():
        raise Refused(code, f"a {what} has at most {most} characters, none of them a control character")
    return text


def _check_digest(digest: Digest | None, body: bytes) -> None:
    if digest is not None and digest.type == DigestType.CRC32:
        expected = f"{crc32(body):08X}"
        if digest.checksum.upper().rjust(8, "0") != expected:
            raise Refused(Code.MESSAGE_CORRUPTED, f"the body's CRC is {expected}, the message says {digest.checksum}")


def _type(properties: Mapping[str, str]) -> int:
    if properties.get(TRANSACTION) == "true":
        return MessageType.TRANSACTION
    if DELIVER_AT_MS in properties:
        return MessageType.DELAY
    return MessageType.FIFO if SHARDING_KEY in properties else MessageType.NORMAL


def _host_text(host: bytes) -> str:
    return f"{'.'.join(str(part) for part in host[:4])}:{int.from_bytes(host[4:8], 'big')}"
