"""RocketMQ's API of version 2 for clients that speak gRPC: its messages and numbers.

Source: the public interface definition `apache.rocketmq.v2` (definition.proto, service.proto). Left out: lite topics.
"""

from __future__ import annotations

from enum import IntEnum

from system_under_test.grpc.protobuf import (
    BOOL,
    BYTES,
    ENUM,
    FLOAT,
    INT32,
    INT64,
    TEXT,
    Message,
    field,
    of,
    optional,
    repeated,
    text_map,
)

SERVICE = "/apache.rocketmq.v2.MessagingService/"


class Duration(Message):
    seconds: int = field(1, INT64)
    nanos: int = field(2, INT32)


class Timestamp(Message):
    seconds: int = field(1, INT64)
    nanos: int = field(2, INT32)


class QueryOffsetPolicy(IntEnum):
    BEGINNING = 0
    END = 1
    TIMESTAMP = 2


class Language(IntEnum):
    LANGUAGE_UNSPECIFIED = 0
    JAVA = 1
    CPP = 2
    DOT_NET = 3
    GOLANG = 4
    RUST = 5
    PYTHON = 6
    PHP = 7
    NODE_JS = 8
    RUBY = 9
    OBJECTIVE_C = 10
    DART = 11
    KOTLIN = 12


class Code(IntEnum):
    CODE_UNSPECIFIED = 0
    OK = 20000
    MULTIPLE_RESULTS = 30000
    BAD_REQUEST = 40000
    ILLEGAL_ACCESS_POINT = 40001
    ILLEGAL_TOPIC = 40002
    ILLEGAL_CONSUMER_GROUP = 40003
    ILLEGAL_MESSAGE_TAG = 40004
    ILLEGAL_MESSAGE_KEY = 40005
    ILLEGAL_MESSAGE_GROUP = 40006
    ILLEGAL_MESSAGE_PROPERTY_KEY = 40007
    INVALID_TRANSACTION_ID = 40008
    ILLEGAL_MESSAGE_ID = 40009
    ILLEGAL_FILTER_EXPRESSION = 40010
    ILLEGAL_INVISIBLE_TIME = 40011
    ILLEGAL_DELIVERY_TIME = 40012
    INVALID_RECEIPT_HANDLE = 40013
    MESSAGE_PROPERTY_CONFLICT_WITH_TYPE = 40014
    UNRECOGNIZED_CLIENT_TYPE = 40015
    MESSAGE_CORRUPTED = 40016
    CLIENT_ID_REQUIRED = 40017
    ILLEGAL_POLLING_TIME = 40018
    ILLEGAL_OFFSET = 40019
    ILLEGAL_LITE_TOPIC = 40020
    UNAUTHORIZED = 40100
    PAYMENT_REQUIRED = 40200
    FORBIDDEN = 40300
    NOT_FOUND = 40400
    MESSAGE_NOT_FOUND = 40401
    TOPIC_NOT_FOUND = 40402
    CONSUMER_GROUP_NOT_FOUND = 40403
    OFFSET_NOT_FOUND = 40404
    REQUEST_TIMEOUT = 40800
    PAYLOAD_TOO_LARGE = 41300
    MESSAGE_BODY_TOO_LARGE = 41301
    MESSAGE_BODY_EMPTY = 41302
    PRECONDITION_FAILED = 42800
    TOO_MANY_REQUESTS = 42900
    LITE_TOPIC_QUOTA_EXCEEDED = 42901
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 42902
    REQUEST_HEADER_FIELDS_TOO_LARGE = 43100
    MESSAGE_PROPERTIES_TOO_LARGE = 43101
    INTERNAL_ERROR = 50000
    INTERNAL_SERVER_ERROR = 50001
    HA_NOT_AVAILABLE = 50002
    NOT_IMPLEMENTED = 50100
    PROXY_TIMEOUT = 50400
    MASTER_PERSISTENCE_TIMEOUT = 50401
    SLAVE_PERSISTENCE_TIMEOUT = 50402
    UNSUPPORTED = 50500
    VERSION_UNSUPPORTED = 50501
    VERIFY_FIFO_MESSAGE_UNSUPPORTED = 50502
    FAILED_TO_CONSUME_MESSAGE = 60000


class Encoding(IntEnum):
    ENCODING_UNSPECIFIED = 0
    IDENTITY = 1
    GZIP = 2


class ClientType(IntEnum):
    CLIENT_TYPE_UNSPECIFIED = 0
    PRODUCER = 1
    PUSH_CONSUMER = 2
    SIMPLE_CONSUMER = 3
    PULL_CONSUMER = 4
    LITE_PUSH_CONSUMER = 5
    LITE_SIMPLE_CONSUMER = 6


class DigestType(IntEnum):
    DIGEST_TYPE_UNSPECIFIED = 0
    CRC32 = 1
    MD5 = 2
    SHA1 = 3


class MessageType(IntEnum):
    MESSAGE_TYPE_UNSPECIFIED = 0
    NORMAL = 1
    FIFO = 2
    DELAY = 3
    TRANSACTION = 4
    LITE = 5
    PRIORITY = 6


class AddressScheme(IntEnum):
    ADDRESS_SCHEME_UNSPECIFIED = 0
    IPv4 = 1
    IPv6 = 2
    DOMAIN_NAME = 3


class FilterType(IntEnum):
    FILTER_TYPE_UNSPECIFIED = 0
    TAG = 1
    SQL = 2


class Permission(IntEnum):
    PERMISSION_UNSPECIFIED = 0
    NONE = 1
    READ = 2
    WRITE = 3
    READ_WRITE = 4


class TransactionSource(IntEnum):
    SOURCE_UNSPECIFIED = 0
    SOURCE_CLIENT = 1
    SOURCE_SERVER_CHECK = 2


class TransactionResolution(IntEnum):
    TRANSACTION_RESOLUTION_UNSPECIFIED = 0
    COMMIT = 1
    ROLLBACK = 2


class FilterExpression(Message):
    type: int = field(1, ENUM)
    expression: str = field(2, TEXT)


class ExponentialBackoff(Message):
    initial: Duration | None = field(1, of(Duration))
    max: Duration | None = field(2, of(Duration))
    multiplier: float = field(3, FLOAT)


class CustomizedBackoff(Message):
    next: list[Duration] = repeated(1, of(Duration))


class RetryPolicy(Message):
    max_attempts: int = field(1, INT32)
    exponential_backoff: ExponentialBackoff | None = optional(2, of(ExponentialBackoff), "strategy")
    customized_backoff: CustomizedBackoff | None = optional(3, of(CustomizedBackoff), "strategy")


class Resource(Message):
    resource_namespace: str = field(1, TEXT)
    name: str = field(2, TEXT)


class SubscriptionEntry(Message):
    topic: Resource | None = field(1, of(Resource))
    expression: FilterExpression | None = field(2, of(FilterExpression))


class Address(Message):
    host: str = field(1, TEXT)
    port: int = field(2, INT32)


class Endpoints(Message):
    scheme: int = field(1, ENUM)
    addresses: list[Address] = repeated(2, of(Address))


class Broker(Message):
    name: str = field(1, TEXT)
    id: int = field(2, INT32)
    endpoints: Endpoints | None = field(3, of(Endpoints))


class MessageQueue(Message):
    topic: Resource | None = field(1, of(Resource))
    id: int = field(2, INT32)
    permission: int = field(3, ENUM)
    broker: Broker | None = field(4, of(Broker))
    accept_message_types: list[int] = repeated(5, ENUM)


class Digest(Message):
    type: int = field(1, ENUM)
    checksum: str = field(2, TEXT)


class DeadLetterQueue(Message):
    topic: str = field(1, TEXT)
    message_id: str = field(2, TEXT)


class SystemProperties(Message):
    tag: str | None = optional(1, TEXT)
    keys: list[str] = repeated(2, TEXT)
    message_id: str = field(3, TEXT)
    body_digest: Digest | None = field(4, of(Digest))
    body_encoding: int = field(5, ENUM)
    message_type: int = field(6, ENUM)
    born_timestamp: Timestamp | None = field(7, of(Timestamp))
    born_host: str = field(8, TEXT)
    store_timestamp: Timestamp | None = optional(9, of(Timestamp))
    store_host: str = field(10, TEXT)
    delivery_timestamp: Timestamp | None = optional(11, of(Timestamp))
    receipt_handle: str | None = optional(12, TEXT)
    queue_id: int = field(13, INT32)
    queue_offset: int | None = optional(14, INT64)
    invisible_duration: Duration | None = optional(15, of(Duration))
    delivery_attempt: int | None = optional(16, INT32)
    message_group: str | None = optional(17, TEXT)
    trace_context: str | None = optional(18, TEXT)
    orphaned_transaction_recovery_duration: Duration | None = optional(19, of(Duration))
    dead_letter_queue: DeadLetterQueue | None = optional(20, of(DeadLetterQueue))
    priority: int | None = optional(22, INT32)


class UserMessage(Message):
    topic: Resource | None = field(1, of(Resource))
    user_properties: dict[str, str] = text_map(2)
    system_properties: SystemProperties | None = field(3, of(SystemProperties))
    body: bytes = field(4, BYTES)


class Assignment(Message):
    message_queue: MessageQueue | None = field(1, of(MessageQueue))


class Status(Message):
    code: int = field(1, ENUM)
    message: str = field(2, TEXT)


class UA(Message):
    language: int = field(1, ENUM)
    version: str = field(2, TEXT)
    platform: str = field(3, TEXT)
    hostname: str = field(4, TEXT)


class Publishing(Message):
    topics: list[Resource] = repeated(1, of(Resource))
    max_body_size: int = field(2, INT32)
    validate_message_type: bool = field(3, BOOL)


class Subscription(Message):
    group: Resource | None = optional(1, of(Resource))
    subscriptions: list[SubscriptionEntry] = repeated(2, of(SubscriptionEntry))
    fifo: bool | None = optional(3, BOOL)
    receive_batch_size: int | None = optional(4, INT32)
    long_polling_timeout: Duration | None = optional(5, of(Duration))


class Metric(Message):
    on: bool = field(1, BOOL)
    endpoints: Endpoints | None = optional(2, of(Endpoints))


class Settings(Message):
    client_type: int | None = optional(1, ENUM)
    access_point: Endpoints | None = optional(2, of(Endpoints))
    backoff_policy: RetryPolicy | None = optional(3, of(RetryPolicy))
    request_timeout: Duration | None = optional(4, of(Duration))
    publishing: Publishing | None = optional(5, of(Publishing), "pub_sub")
    subscription: Subscription | None = optional(6, of(Subscription), "pub_sub")
    user_agent: UA | None = field(7, of(UA))
    metric: Metric | None = field(8, of(Metric))


class QueryRouteRequest(Message):
    topic: Resource | None = field(1, of(Resource))
    endpoints: Endpoints | None = field(2, of(Endpoints))


class QueryRouteResponse(Message):
    status: Status | None = field(1, of(Status))
    message_queues: list[MessageQueue] = repeated(2, of(MessageQueue))


class SendMessageRequest(Message):
    messages: list[UserMessage] = repeated(1, of(UserMessage))


class SendResultEntry(Message):
    status: Status | None = field(1, of(Status))
    message_id: str = field(2, TEXT)
    transaction_id: str = field(3, TEXT)
    offset: int = field(4, INT64)
    recall_handle: str = field(5, TEXT)


class SendMessageResponse(Message):
    status: Status | None = field(1, of(Status))
    entries: list[SendResultEntry] = repeated(2, of(SendResultEntry))


class QueryAssignmentRequest(Message):
    topic: Resource | None = field(1, of(Resource))
    group: Resource | None = field(2, of(Resource))
    endpoints: Endpoints | None = field(3, of(Endpoints))


class QueryAssignmentResponse(Message):
    status: Status | None = field(1, of(Status))
    assignments: list[Assignment] = repeated(2, of(Assignment))


class ReceiveMessageRequest(Message):
    group: Resource | None = field(1, of(Resource))
    message_queue: MessageQueue | None = field(2, of(MessageQueue))
    filter_expression: FilterExpression | None = field(3, of(FilterExpression))
    batch_size: int = field(4, INT32)
    invisible_duration: Duration | None = optional(5, of(Duration))
    auto_renew: bool = field(6, BOOL)
    long_polling_timeout: Duration | None = optional(7, of(Duration))
    attempt_id: str | None = optional(8, TEXT)


class ReceiveMessageResponse(Message):
    status: Status | None = optional(1, of(Status), "content")
    message: UserMessage | None = optional(2, of(UserMessage), "content")
    delivery_timestamp: Timestamp | None = optional(3, of(Timestamp), "content")


class AckMessageEntry(Message):
    message_id: str = field(1, TEXT)
    receipt_handle: str = field(2, TEXT)


class AckMessageRequest(Message):
    group: Resource | None = field(1, of(Resource))
    topic: Resource | None = field(2, of(Resource))
    entries: list[AckMessageEntry] = repeated(3, of(AckMessageEntry))


class AckMessageResultEntry(Message):
    message_id: str = field(1, TEXT)
    receipt_handle: str = field(2, TEXT)
    status: Status | None = field(3, of(Status))


class AckMessageResponse(Message):
    status: Status | None = field(1, of(Status))
    entries: list[AckMessageResultEntry] = repeated(2, of(AckMessageResultEntry))


class ForwardMessageToDeadLetterQueueRequest(Message):
    group: Resource | None = field(1, of(Resource))
    topic: Resource | None = field(2, of(Resource))
    receipt_handle: str = field(3, TEXT)
    message_id: str = field(4, TEXT)
    delivery_attempt: int = field(5, INT32)
    max_delivery_attempts: int = field(6, INT32)


class ForwardMessageToDeadLetterQueueResponse(Message):
    status: Status | None = field(1, of(Status))


class HeartbeatRequest(Message):
    group: Resource | None = optional(1, of(Resource))
    client_type: int = field(2, ENUM)


class HeartbeatResponse(Message):
    status: Status | None = field(1, of(Status))


class EndTransactionRequest(Message):
    topic: Resource | None = field(1, of(Resource))
    message_id: str = field(2, TEXT)
    transaction_id: str = field(3, TEXT)
    resolution: int = field(4, ENUM)
    source: int = field(5, ENUM)
    trace_context: str = field(6, TEXT)


class EndTransactionResponse(Message):
    status: Status | None = field(1, of(Status))


class PrintThreadStackTraceCommand(Message):
    nonce: str = field(1, TEXT)


class ReconnectEndpointsCommand(Message):
    nonce: str = field(1, TEXT)


class ThreadStackTrace(Message):
    nonce: str = field(1, TEXT)
    thread_stack_trace: str | None = optional(2, TEXT)


class VerifyMessageCommand(Message):
    nonce: str = field(1, TEXT)
    message: UserMessage | None = field(2, of(UserMessage))


class VerifyMessageResult(Message):
    nonce: str = field(1, TEXT)


class RecoverOrphanedTransactionCommand(Message):
    message: UserMessage | None = field(1, of(UserMessage))
    transaction_id: str = field(2, TEXT)


class TelemetryCommand(Message):
    status: Status | None = optional(1, of(Status))
    settings: Settings | None = optional(2, of(Settings), "command")
    thread_stack_trace: ThreadStackTrace | None = optional(3, of(ThreadStackTrace), "command")
    verify_message_result: VerifyMessageResult | None = optional(4, of(VerifyMessageResult), "command")
    recover_orphaned_transaction_command: RecoverOrphanedTransactionCommand | None = optional(
        5, of(RecoverOrphanedTransactionCommand), "command"
    )
    print_thread_stack_trace_command: PrintThreadStackTraceCommand | None = optional(
        6, of(PrintThreadStackTraceCommand), "command"
    )
    verify_message_command: VerifyMessageCommand | None = optional(7, of(VerifyMessageCommand), "command")
    reconnect_endpoints_command: ReconnectEndpointsCommand | None = optional(
        8, of(ReconnectEndpointsCommand), "command"
    )


class NotifyClientTerminationRequest(Message):
    group: Resource | None = optional(1, of(Resource))


class NotifyClientTerminationResponse(Message):
    status: Status | None = field(1, of(Status))


class ChangeInvisibleDurationRequest(Message):
    group: Resource | None = field(1, of(Resource))
    topic: Resource | None = field(2, of(Resource))
    receipt_handle: str = field(3, TEXT)
    invisible_duration: Duration | None = field(4, of(Duration))
    message_id: str = field(5, TEXT)
    suspend: bool | None = optional(7, BOOL)


class ChangeInvisibleDurationResponse(Message):
    status: Status | None = field(1, of(Status))
    receipt_handle: str = field(2, TEXT)


class PullMessageRequest(Message):
    group: Resource | None = field(1, of(Resource))
    message_queue: MessageQueue | None = field(2, of(MessageQueue))
    offset: int = field(3, INT64)
    batch_size: int = field(4, INT32)
    filter_expression: FilterExpression | None = field(5, of(FilterExpression))
    long_polling_timeout: Duration | None = field(6, of(Duration))


class PullMessageResponse(Message):
    status: Status | None = optional(1, of(Status), "content")
    message: UserMessage | None = optional(2, of(UserMessage), "content")
    next_offset: int | None = optional(3, INT64, "content")


class UpdateOffsetRequest(Message):
    group: Resource | None = field(1, of(Resource))
    message_queue: MessageQueue | None = field(2, of(MessageQueue))
    offset: int = field(3, INT64)


class UpdateOffsetResponse(Message):
    status: Status | None = field(1, of(Status))


class GetOffsetRequest(Message):
    group: Resource | None = field(1, of(Resource))
    message_queue: MessageQueue | None = field(2, of(MessageQueue))


class GetOffsetResponse(Message):
    status: Status | None = field(1, of(Status))
    offset: int = field(2, INT64)


class QueryOffsetRequest(Message):
    message_queue: MessageQueue | None = field(1, of(MessageQueue))
    query_offset_policy: int = field(2, ENUM)
    timestamp: Timestamp | None = optional(3, of(Timestamp))


class QueryOffsetResponse(Message):
    status: Status | None = field(1, of(Status))
    offset: int = field(2, INT64)


class RecallMessageRequest(Message):
    topic: Resource | None = field(1, of(Resource))
    recall_handle: str = field(2, TEXT)


class RecallMessageResponse(Message):
    status: Status | None = field(1, of(Status))
    message_id: str = field(2, TEXT)
