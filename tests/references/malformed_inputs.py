"""What may come in over a connection, by the million: healthy bytes that were cut, torn, spliced and overstated.

`CODECS` names every decoder of bytes from outside with the errors that it documents; `try_out` feeds it inputs that are
drawn from a seed, and raises `Undocumented` where anything else comes out. By hand, for a great many:

    python -m tests.references.malformed_inputs --count 10000000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import re
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from system_under_test.bookkeeper import entry as ledger_entry
from system_under_test.bookkeeper.bookie import checkpoint as bookie_checkpoint
from system_under_test.bookkeeper.bookie import identity as bookie_identity
from system_under_test.bookkeeper.bookie import index as bookie_index
from system_under_test.bookkeeper.bookie import journal_record
from system_under_test.bookkeeper.bookie import message as bookie
from system_under_test.bookkeeper.bookie import wire as bookie_wire
from system_under_test.bookkeeper.bookie.entry_logs import scan
from system_under_test.bookkeeper.bookie.journal import Place
from system_under_test.bookkeeper.partition import wire as partition_wire
from system_under_test.bookkeeper.partition.ledger_list import MalformedList, decode_list, encode_list
from system_under_test.bookkeeper.partition.payload import MalformedPayload, decode_messages, encode_messages
from system_under_test.bookkeeper.repair.marks import MalformedMark, Mark, decode_mark, encode_mark
from system_under_test.cmq import entry as queue_entry
from system_under_test.cmq import snapshot as queue_snapshot
from system_under_test.cmq.state_machine import QueueGroupState
from system_under_test.dledger import client_message as dledger_client
from system_under_test.dledger import entry as dledger_entry
from system_under_test.dledger import json_fields as dledger_fields
from system_under_test.dledger import message as dledger
from system_under_test.dledger import wire as dledger_wire
from system_under_test.dledger.entry import HEAD_BYTES, Entry
from system_under_test.dledger.record import decode_entry, decode_index_record, encode_entry, encode_index_record
from system_under_test.metadata import store as metadata_store
from system_under_test.metadata import wire as metadata_wire
from system_under_test.metadata.access import Versioned
from system_under_test.node.settings import read_config
from system_under_test.raft import membership
from system_under_test.raft import message as raft
from system_under_test.raft import snapshot as raft_snapshot
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import (
    MalformedFrame,
    RemotingCommand,
    RemotingError,
    Serialization,
    frame_length,
)
from system_under_test.remoting.json_body import decode_json
from system_under_test.remoting.properties import decode_properties, encode_properties
from system_under_test.replicated import key_value
from system_under_test.rocketmq.broker.ha import wire
from system_under_test.rocketmq.broker.pop import records
from system_under_test.rocketmq.client.admin_client import broker_groups_from_json, epochs_from_json
from system_under_test.rocketmq.client.controller_client import group_states
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import (
    ConsumerData,
    Heartbeat,
    MessageModel,
    MessageQueue,
    QueueLockRequest,
    SendBackRequest,
    Subscription,
    locked_queues,
    locked_queues_answer,
    members,
    members_answer,
    noticed_offsets,
    offsets_notice,
)
from system_under_test.rocketmq.controller import events
from system_under_test.rocketmq.controller.changed_settings import parse_changes
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.membership import parse_member_request
from system_under_test.rocketmq.controller.protocol import (
    BrokerReport,
    ControllerMetadata,
    KnownControllers,
    MalformedRequest,
    ReplicaInfo,
    SyncStateSet,
    json_body,
    parse_json,
    parse_names,
)
from system_under_test.rocketmq.controller.requests import parse_request
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.message_batch import BatchedMessage, decode_batch, encode_batch
from system_under_test.rocketmq.message_protocol import (
    KeyQuery,
    PullAnswer,
    PullRequest,
    QueueRequest,
    SendAnswer,
    SendRequest,
    TimeQuery,
)
from system_under_test.rocketmq.nameserver.compressed_registration import decompress
from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.rocketmq.nameserver.route import GroupRoute, TopicRoute
from system_under_test.rocketmq.pop_protocol import (
    ChangedInvisibleTime,
    HandleRequest,
    PopAnswer,
    PoppedQueue,
    PopRequest,
    ReceiptHandle,
    decode_batch_ack,
    encode_batch_ack,
)
from system_under_test.rocketmq.recall_handle import RecallHandle
from system_under_test.rocketmq.topic import TopicConfig, topics_as_json, topics_from_json
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt
from system_under_test.storage.forgotten_topics import checked
from system_under_test.storage.message import MessageInvalid, check_message, decode_message, encode_message

Parts = tuple[bytes, ...]

EXTREMES_32 = tuple(
    struct.pack(">I", word) for word in (0, 1, 3, 4, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x00FF_FFFF)
)
EXTREMES_64 = tuple(struct.pack(">Q", word) for word in (0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1))
ODD_VALUES: tuple[bytes, ...] = (
    *(b"Infinity", b"-Infinity", b"NaN", b"1e999", b"-0", b"1.5", b"1e30", b"true", b"false", b"null", b"-1"),
    *(b"[]", b"{}", b'""', b"[[]]", b"[{}]", b'{"a":[]}', b"[null]", b"[1,1.5]", b'["a"]', b"]", b"}", b",", b'"'),
    *(b"2147483648", b"9223372036854775808", b"18446744073709551616", b"9" * 400, b'"%b"' % (b"9" * 400)),
    *(b'"9223372036854775808"', b'"-1"', b'"1_000"', b'" 7 "', b'"1.5"', b'"Infinity"', b'"NaN"', b'"0x10"'),
    *(
        b'"\\ud800"',
        b'"\\u0000"',
        b'"\\udfff1"',
        b'"\\ud83d\\ude00"',
        b'"\xff\xfe"',
        b'"\xc3"',
        b'"\x00"',
        '"٣"'.encode(),
    ),
    *(b'"%b"' % (b"a" * 200), b"[" * 50, b'{"a":' * 50),
)
HUGE_VALUES: tuple[bytes, ...] = (
    *(b"[" * 5_000, b"[" * 100_000, b'{"a":' * 5_000, b"9" * 5_000, b'"%b"' % (b"9" * 5_000)),
    *(b"[" * 900 + b"]" * 900, b'"%b"' % (b"a" * 70_000), b"-" * 5_000),
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+|true|false|null|[\[{]')


class Undocumented(AssertionError):
    """A decoder raised what it does not document, or accepted what it cannot write again."""


@dataclass(frozen=True, kw_only=True)
class Codec:
    """A decoder, what it may raise, and healthy inputs, whose parts `join` puts together after they were harmed."""

    name: str
    decode: Callable[[bytes], Any]
    refuses: tuple[type[Exception], ...]
    samples: tuple[Parts, ...]
    join: Callable[[Parts], bytes] = b"".join
    exact: bool = False
    """Whoever calls it has read as many bytes as its message takes: inputs keep the length of the sample."""


def _frame(parts: Parts) -> bytes:
    header, body = parts
    return struct.pack(">I", len(header) & 0xFF_FFFF) + header + body


def _binary_frame(parts: Parts) -> bytes:
    header, body = parts
    return struct.pack(">I", 1 << 24 | len(header) & 0xFF_FFFF) + header + body


def _parts_of(command: RemotingCommand) -> Parts:
    frame = command.encode()[4:]
    end = 4 + (struct.unpack_from(">I", frame)[0] & 0xFF_FFFF)
    return frame[4:end], frame[end:]


def _commands(
    name: str,
    read: Callable[[RemotingCommand], Any],
    refuses: tuple[type[Exception], ...],
    *samples: RemotingCommand,
) -> Codec:
    """A decoder of commands: what it gets was a frame."""
    return Codec(
        name=name,
        decode=lambda frame: read(RemotingCommand.decode(frame)),
        refuses=(MalformedFrame, *refuses),
        samples=tuple(map(_parts_of, samples)),
        join=_frame,
    )


def _again(command: RemotingCommand) -> None:
    if RemotingCommand.decode(command.encode()[4:]) != command:
        raise Undocumented("a command is not the same after it was written and read again")
    for value in (command.remark or "", *command.ext_fields, *command.ext_fields.values()):
        value.encode()


def _raft(frame: bytes) -> None:
    group, message = raft.decode(frame, "c2")
    if raft.decode(raft.encode(group, message)[4:], "c2") != (group, message):
        raise Undocumented("a message is not the same after it was written and read again")
    raft.encode(group, raft.VoteRequest("c2", "c1", message.term + 1, 0, 0))


def _dledger_request(command: RemotingCommand) -> None:
    asked = dledger_wire.decode_request(command.code, command.body)
    if dledger_wire.decode_request(*dledger_wire.encode_request(asked)) != asked:
        raise Undocumented("a request is not the same after it was written and read again")


def _dledger_answer(command: RemotingCommand) -> None:
    """The command's code says which request it answers."""
    for asked in DLEDGER_REQUESTS:
        code, _ = dledger_wire.encode_request(asked)
        if code == command.code:
            answer = dledger_wire.decode_answer(asked.request, command.body)
            if dledger_wire.decode_answer(asked.request, dledger_wire.encode_answer(asked, answer)) != answer:
                raise Undocumented("an answer is not the same after it was written and read again")


def _applied(command: bytes) -> None:
    key_value.check(command)
    key_value.only_reads(command)
    store = key_value.KeyValueStore()
    for _ in range(2):
        json.dumps(store.apply(command).value)


def _messages(payload: bytes) -> None:
    messages = decode_messages(payload)
    if encode_messages(messages) != payload:
        raise Undocumented("messages are not the same after they were read and written again")


def _ledger_list(value: bytes) -> None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return
    listed = decode_list(text, 1)
    if decode_list(encode_list(listed.ledgers), 1) != listed:
        raise Undocumented("a list of ledgers is not the same after it was written and read again")


def _partition_request(command: RemotingCommand) -> None:
    partition_wire.partition_of(command)
    partition_wire.offset_of(command)


def _mark(value: bytes) -> None:
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise MalformedMark("values are text") from error
    mark = decode_mark(text)
    if decode_mark(encode_mark(mark)) != mark:
        raise Undocumented("a mark is not the same after it was written and read again")


METADATA_VALUE = "what a ledger is made of, at some length: " + "b1 b2 b3, " * 20
METADATA_COMMANDS = (
    metadata_store.open_session("s"),
    metadata_store.create("/k", METADATA_VALUE, "s"),
    metadata_store.create("/l", METADATA_VALUE, None),
    metadata_store.number("n"),
)


def _changed_metadata(command: bytes) -> None:
    metadata_store.check(command)
    store = metadata_store.MetadataStore()
    for before in (*METADATA_COMMANDS, command, command):
        metadata_wire.decode_result(metadata_wire.encode_result(store.apply(before)))
    _restored_metadata(store.snapshot())


def _restored_metadata(snapshot: bytes) -> None:
    store, again = metadata_store.MetadataStore(), metadata_store.MetadataStore()
    store.restore(snapshot)
    again.restore(store.snapshot())
    if again.snapshot() != store.snapshot():
        raise Undocumented("a snapshot is not the same after it was restored")
    metadata_wire.decode_entries(metadata_wire.encode_entries(store.list("")))
    for session in store.sessions:
        store.apply(metadata_store.end_session(session))


def _metadata_snapshot() -> bytes:
    store = metadata_store.MetadataStore()
    for command in METADATA_COMMANDS:
        store.apply(command)
    return store.snapshot()


METADATA_ENTRY = Versioned(METADATA_VALUE, 1, "s")
METADATA_SNAPSHOT = _metadata_snapshot()
METADATA_ANSWERS: tuple[tuple[str, Callable[[bytes], Any], tuple[bytes, ...]], ...] = (
    ("entry", metadata_wire.decode_entry, (metadata_wire.encode_entry(METADATA_ENTRY), b'["v",2,null]', b"null")),
    ("entries", metadata_wire.decode_entries, (metadata_wire.encode_entries({"/k": METADATA_ENTRY}),)),
    ("change", metadata_wire.decode_change, (metadata_wire.encode_change(True, 7),)),
    ("result", metadata_wire.decode_result, (b'{"done":1}', b'{"differs":null}', b'{"differs":7}', b'{"over":true}')),
    ("renewal", metadata_wire.decode_renewal, (b'{"heartbeatMs":500}', b'{"over":true}')),
)
"""Decoders of answers, with what nodes answer."""


def _stored(parts: Parts) -> bytes:
    topic, body, properties = parts
    return encode_message(
        topic=topic[:127],
        queue_id=1,
        queue_offset=2,
        physical_offset=3,
        body=body,
        properties=properties[:30_000],
        born_timestamp_ms=4,
        store_timestamp_ms=5,
        born_host=bytes(8),
        store_host=bytes(8),
    )


def _entry(data: bytes) -> None:
    entry, _ = decode_entry(data, 0, 7)
    if encode_entry(entry, 7)[0] != data[: entry.size]:
        raise Undocumented("an entry is not the same after it was read and written again")


def _index_record(data: bytes) -> None:
    record = decode_index_record(data)
    body = bytes(min(record.size, 1000) - HEAD_BYTES)
    again = decode_index_record(encode_index_record(Entry(record.index, record.term, record.position, body)))
    if record.size <= 1000 and again != record:
        raise Undocumented("a record of the index is not the same after it was read and written again")


def _message(data: bytes) -> None:
    check_message(data, 0, decode_message(data, 0).physical_offset)


DIGEST = ledger_entry.Digest()
LEDGER_ENTRY = ledger_entry.Entry(7, 3, 2, 40, b"payload")
_ENCODED = ledger_entry.encode_entry(LEDGER_ENTRY, DIGEST)
_BOOKIE = "00ab00000000cdef"
BOOKIE_REQUESTS: tuple[bookie.BookieRequest, ...] = (
    bookie.AddRequest(bookie=_BOOKIE, data=_ENCODED, is_recovery=True),
    bookie.ReadRequest(bookie=_BOOKIE, ledger=7, entry=3, fences=True),
    bookie.ReadLacRequest(bookie=_BOOKIE, ledger=7),
    bookie.WriteLacRequest(bookie=_BOOKIE, ledger=7, lac=3),
    bookie.ListRequest(bookie=_BOOKIE, ledger=7, first=3),
    bookie.ReadManyRequest(bookie=_BOOKIE, ledger=7, first=3, last=9),
)
BOOKIE_ANSWERS = (
    bookie.BookieAnswer(bookie.Code.OK),
    bookie.BookieAnswer(bookie.Code.OK, _ENCODED),
    bookie.BookieAnswer(bookie.Code.OK, lac=5),
    bookie.BookieAnswer(bookie.Code.FENCED),
    bookie.BookieAnswer(bookie.Code.UNKNOWN, entries=(3, 4, 9)),
    bookie.BookieAnswer(bookie.Code.OK, many=((3, _ENCODED), (9, _ENCODED))),
)
CHECKPOINT = bookie_checkpoint.Checkpoint(
    start=Place(900, 7),
    logs=3,
    is_synced=True,
    ledgers={7: bookie_checkpoint.LedgerNotes(), 9: bookie_checkpoint.LedgerNotes(5, True, True)},
)


def _bookie_request(command: RemotingCommand) -> None:
    request = bookie_wire.decode_request(command)
    if bookie_wire.decode_request(bookie_wire.encode_request(request)) != request:
        raise Undocumented("a request is not the same after it was written and read again")


def _bookie_answer(command: RemotingCommand) -> None:
    for request in BOOKIE_REQUESTS:
        try:
            answer = bookie_wire.decode_answer(request, command)
        except bookie_wire.MalformedBookieCommand:
            continue
        if bookie_wire.decode_answer(request, bookie_wire.encode_answer(request, answer)) != answer:
            raise Undocumented("an answer is not the same after it was written and read again")
        return
    raise bookie_wire.MalformedBookieCommand


def _ledger_entry(data: bytes) -> None:
    ledger, number = ledger_entry.ids_of(data)
    entry = ledger_entry.decode_entry(data, DIGEST, ledger, number)
    if ledger_entry.encode_entry(entry, DIGEST) != data:
        raise Undocumented("an entry is not the same after it was read and written again")


QUEUE_COMMANDS = (
    queue_entry.Create("q"),
    queue_entry.Produce("orders", (b"body", b"", b"x" * 40)),
    queue_entry.Ack("orders", (0, 2)),
)


def _queue_command(data: bytes) -> None:
    if queue_entry.encode(queue_entry.decode(data)) != data:
        raise Undocumented("a command is not the same after it was read and written again")


def _queue_record() -> bytes:
    state = QueueGroupState(100, 4)
    for command in (queue_entry.Create("orders"), *QUEUE_COMMANDS):
        state.carry_out(command)
    return queue_snapshot.encode(state.copy())


def _queue_state(data: bytes) -> None:
    copied = queue_snapshot.decode(data)
    QueueGroupState(100, 4, copied).digest()
    if queue_snapshot.encode(copied) != data:
        raise Undocumented("a state is not the same after it was read and written again")


def _journal_record(data: bytes) -> None:
    journal_record.greatest_claim(data, 0, 100)
    record = journal_record.decode_record(data, 0, 100)
    again, _ = journal_record.encode_record(record.kind, record.body, 100, record.durable, record.before)
    if again != data[: record.size]:
        raise Undocumented("a record is not the same after it was read and written again")


def _journal_body(data: bytes) -> None:
    """Of a record whose checksum fits."""
    try:
        journal_record.ledger_of(data)
    except RecordInvalid:
        journal_record.lac_of(data)


def _checkpoint(data: bytes) -> None:
    checkpoint = bookie_checkpoint.decode_checkpoint(data)
    if bookie_checkpoint.decode_checkpoint(bookie_checkpoint.encode_checkpoint(checkpoint)) != checkpoint:
        raise Undocumented("a checkpoint is not the same after it was read and written again")


def _ledger_index(data: bytes) -> None:
    records = list(bookie_index.decode_index(data))
    if b"".join(map(bookie_index.encode_index_record, records)) != data:
        raise Undocumented("an index is not the same after it was read and written again")


def _registered(data: bytes) -> None:
    found = bookie_identity.Registered.decode(data.decode("latin-1"))
    if bookie_identity.Registered.decode(found.encode()) != found:
        raise Undocumented("a registration is not the same after it was read and written again")


ENTRY = Entry(index=7, term=3, position=4096, body=b"body", channel=2)
REPORT = BrokerReport(cluster="k", group="g", broker_id=2, address="b2:10911", incarnation="x", max_offset=77)
SET = SyncStateSet.of([1, 2, 3], 7)
INFO = ReplicaInfo(master_id=1, master_address="b1:10911", master_epoch=4, sync_state_set=SET)
METADATA = ControllerMetadata(
    group="c", leader_id="c1", leader_address="c1:9878", is_active=True, peers="c1-c1:9878", term=3
)
SEND = SendRequest(topic="T", queue_id=1, body=b"body", born_timestamp_ms=5, properties="TAGS\x01a\x02")
PULL = PullRequest(topic="T", queue_id=1, queue_offset=41, max_count=32, consumer_group="G", suspend_timeout_ms=9)
QUEUE = QueueRequest(topic="T", queue_id=1, consumer_group="G", commit_offset=12)
HEARTBEAT = Heartbeat(
    client_id="10.0.0.1@7",
    consumers=(
        ConsumerData(group="G", subscriptions=(Subscription(topic="T", tags=("a",), codes=(97,)),)),
        ConsumerData(group="H", message_model=MessageModel.BROADCASTING),
    ),
    producer_groups=("P",),
)
QUEUE_LOCKS = QueueLockRequest(
    group="G", client_id="10.0.0.1@7", queues=(MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1))
)
REGISTRATION = Registration(
    cluster="k",
    broker_name="g",
    broker_id=0,
    address="b1:10911",
    ha_address="b1:10912",
    version=DataVersion(state_version=3),
    topics={"T": TopicConfig.of("T", 4)},
    expiry_ms=9000,
)
ROUTE = TopicRoute(
    (GroupRoute(cluster="k", broker_name="g", brokers={0: "b1:10911", 2: "b2:10911"}, read_queues=2, write_queues=4),)
)
EVENTS: tuple[events.Event, ...] = (
    events.BrokerIdApplied(cluster="k", group="g", broker_id=1, check_code="z"),
    events.SyncStateSetAltered(group="g", members=(1, 2)),
    events.MasterElected(group="g", master=None),
    events.BrokerDataCleaned(group="g", broker_ids=(1,)),
)
TRANSACTION = key_value.transaction([["r", "k", None], ["append", "k", 1], ["add", "n", 2]], guard=[["n", 1]])
MEMBERS = membership.encode(membership.Membership(voters={"c1": "c1:9879"}, learners={"c2": "c2:9879"}))
RAFT_SNAPSHOTS = (
    raft_snapshot.Snapshot(7, 3, b"state"),
    raft_snapshot.Snapshot(
        9,
        4,
        b"",
        membership.Membership(voters={"c1": "c1:9879"}),
        (raft_snapshot.SnapshotFile("a", 12, 34), raft_snapshot.SnapshotFile("b", 0, 0)),
    ),
)
RAFT_MESSAGES: tuple[raft.Message, ...] = (
    raft.Append("c1", "c2", 3, 9, 5, 2, 4, (raft.Entry(6, 3, b"one"), raft.Entry(7, 3, b""))),
    raft.Append("c1", "c2", 3, 9, 5, 2, 4, (raft.Entry(6, 3, MEMBERS, raft.Kind.MEMBERSHIP),)),
    raft.AppendAccepted("c1", "c2", 3, 9, 7),
    raft.AppendRefused("c1", "c2", 3, 9, 7, 4, 2),
    raft.SnapshotChunk("c1", "c2", 3, 9, 7, 100, 10, b"part"),
    raft.ChunkTaken("c1", "c2", 3, 9, 7, 14),
    raft.TimeoutNow("c1", "c2", 3),
    raft.VoteRequest("c1", "c2", 3, 7, 3),
    raft.PreVoteReply("c1", "c2", 3, True),
)


HANDLE = ReceiptHandle(10, 1700000000000, 60000, 3, False, "g", 2, 12)
POPPED = records.CheckpointKey("G", "T", 2, 10, 1700000000000)
RECORDS: tuple[records.Record, ...] = (
    records.Checkpoint(key=POPPED, invisible_ms=9, offsets=(10, 12), broker_name="g"),
    records.Checkpoint(key=POPPED, invisible_ms=9, offsets=(10,), broker_name="g", replaces=POPPED),
    records.Settlement(key=POPPED, offsets=(12,), broker_name="g"),
    records.Settlement(key=POPPED, offsets=(10, 12), broker_name="g", again=records.Again("U", (0, 1))),
)


def _record(data: bytes) -> None:
    tag, _, body = data.partition(b" ")
    record = records.decode_record(tag.decode(errors="replace"), body)
    if records.decode_record(*records.encode_record(record)) != record:
        raise Undocumented("a record is not the same after it was written and read again")


def _controller_requests() -> tuple[RemotingCommand, ...]:
    group = {"brokerName": "g"}
    return (
        RemotingCommand.request(
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
            {**group, "masterBrokerId": "1", "masterEpoch": "4"},
            SET.to_body(),
        ),
        RemotingCommand.request(RequestCode.CONTROLLER_ELECT_MASTER, {**group, "brokerId": "2"}),
        RemotingCommand.request(
            RequestCode.CONTROLLER_ELECT_MASTER, {**group, "brokerId": "2", "giveUp": "true", "masterEpoch": "4"}
        ),
        RemotingCommand.request(RequestCode.CONTROLLER_REGISTER_BROKER, REPORT.to_fields()),
        RemotingCommand.request(
            RequestCode.CONTROLLER_APPLY_BROKER_ID, {**group, "appliedBrokerId": "1", "registerCheckCode": "z"}
        ),
        RemotingCommand.request(RequestCode.CLEAN_BROKER_DATA, {**group, "brokerControllerIdsToClean": "1;2"}),
    )


def _answer(fields: Any, body: bytes = b"") -> RemotingCommand:
    return RemotingCommand.response(0, fields, body)


def _plain(
    name: str, decode: Callable[[bytes], Any], refuses: type[Exception], *samples: bytes, exact: bool = False
) -> Codec:
    return Codec(name=name, decode=decode, refuses=(refuses,), samples=tuple((s,) for s in samples), exact=exact)


CONFIG = read_config(
    ControllerConfig,
    {"controllerDLegerPeers": "c1-c1:9879", "controllerDLegerSelfId": "c1", "enableControllerInNamesrv": True},
)
_TOPICS = json_body(
    {
        "dataVersion": DataVersion(state_version=3, timestamp_ms=5, counter=7).as_json(),
        "topicConfigTable": topics_as_json({"T": TopicConfig.of("T", 4), "U": TopicConfig.of("U", 1)}),
        "forgottenTopics": {"V": 900},
    }
)


def _plain_of_any(name: str, decode: Callable[[bytes], Any], sample: bytes) -> Codec:
    """Of a decoder whose caller takes all of these for a malformed answer."""
    refuses = (ValueError, KeyError, TypeError, AttributeError)
    return Codec(name=name, decode=decode, refuses=refuses, samples=((sample,),), exact=False)


def _json_codec(name: str, read: Callable[[Any], Any], sample: Any) -> Codec:
    """Of JSON that administrators are shown."""
    return _plain_of_any(name, lambda body: read(decode_json(body)), json_body(sample))


def _settings_refused(body: bytes) -> None:
    try:
        CONFIG.changed(parse_changes(body))
    except RemotingError as error:
        raise MalformedRequest from error


def _consumer_group(body: bytes) -> ConsumerGroup:
    """As brokers read it."""
    try:
        value = decode_json(body)
        return ConsumerGroup.from_json(value["groupName"], value)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError from error


def _topics(body: bytes) -> None:
    """As slaves read what their master says."""
    try:
        value = decode_json(body)
        checked(value["forgottenTopics"])
        topics_from_json(value["topicConfigTable"])
        DataVersion.from_json(value["dataVersion"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError from error


def _unchecked(registration: RemotingCommand) -> RemotingCommand:
    """Without the CRC of its body, by which nearly all harmed ones are refused."""
    fields = {name: value for name, value in registration.ext_fields.items() if name != "bodyCrc32"}
    return replace(registration, ext_fields=fields)


_ENTRIES = (dledger_entry.Entry(4, 1, 200, b"c3"), dledger_entry.Entry(5, 2, 250, b""))
DLEDGER: Sequence[tuple[dledger_wire.AnyRequest, dledger.AnyAnswer | dledger_client.ClientAnswer]] = (
    (dledger.VoteRequest("n0", 1, 1, 5), dledger.VoteAnswer(dledger.VoteResult.ACCEPT, 1)),
    (dledger.HeartbeatRequest("n0", 1), dledger.Answer(dledger.Code.TERM_NOT_READY, 1, "n2")),
    (
        dledger.PushRequest("n0", 2, dledger.Push.APPEND, _ENTRIES, 3, True),
        dledger.PushAnswer(dledger.Code.SUCCESS, 2, 0, 5),
    ),
    (
        dledger.PushRequest("n0", 2, dledger.Push.COMPARE, _ENTRIES[:1], 3),
        dledger.PushAnswer(dledger.Code.INCONSISTENT_STATE, 2, -1, -1),
    ),
    (dledger.TransferRequest("n0", 3), dledger.Answer(dledger.Code.SUCCESS, 4, "n0")),
    (dledger.TakeRequest("n0", 3, 12), dledger.Answer(dledger.Code.SUCCESS, 4, "n1")),
    (
        dledger_client.AppendRequest((b"x", b"y")),
        dledger_client.AppendAnswer(code=dledger.Code.SUCCESS, term=2, leader="n1", index=7, position=300),
    ),
    (dledger_client.GetRequest(3, 100, (1, 2)), dledger_client.EntriesAnswer(code=dledger.Code.SUCCESS)),
    (
        dledger_client.PullRequest("n9", 3),
        dledger_client.EntriesAnswer(code=dledger.Code.SUCCESS, entries=_ENTRIES),
    ),
    (
        dledger_client.MetadataRequest(),
        dledger_client.MetadataAnswer(code=dledger.Code.SUCCESS, leader="n1", peers={"n0": "a:1", "n1": "b:1"}),
    ),
)
DLEDGER_REQUESTS = tuple(
    dledger_wire.Addressed(group="g", to="n1", sender="n0", request=request) for request, _ in DLEDGER
)


def _dledger_command(asked: dledger_wire.Addressed, body: bytes | None = None) -> RemotingCommand:
    code, request = dledger_wire.encode_request(asked)
    return RemotingCommand.request(code, body=request if body is None else body)


COMMAND = RemotingCommand(105, 7, 0, "remark", {"topic": "T", "é": "ü"}, b"body")

CODECS: tuple[Codec, ...] = (
    _commands("command", _again, (), COMMAND, _answer({})),
    Codec(
        name="command in RocketMQ's serialization",
        decode=lambda frame: _again(RemotingCommand.decode(frame)),
        refuses=(MalformedFrame,),
        samples=(_parts_of(replace(COMMAND, serialization=Serialization.ROCKETMQ)),),
        join=_binary_frame,
    ),
    _plain(
        "batch",
        decode_batch,
        RemotingError,
        encode_batch([BatchedMessage(b"body", {"KEYS": "k"}), BatchedMessage(b"", {}, 7)]),
    ),
    _commands("send request", SendRequest.decode, (RemotingError,), SEND.encode()),
    _commands(
        "send answer",
        SendAnswer.decode,
        (RemotingError,),
        SendAnswer(message_id="0F", queue_id=1, queue_offset=2).encode(),
    ),
    _commands("pull request", PullRequest.decode, (RemotingError,), PULL.encode()),
    _commands(
        "pull answer",
        PullAnswer.decode,
        (RemotingError,),
        PullAnswer(next_offset=1, min_offset=0, max_offset=9, data=b"xy").encode(),
    ),
    _commands(
        "pop request",
        PopRequest.decode,
        (RemotingError,),
        PopRequest(topic="T", consumer_group="G", invisible_ms=9).encode(),
    ),
    _commands(
        "pop answer",
        PopAnswer.decode,
        (RemotingError,),
        PopAnswer(pop_time_ms=1, invisible_ms=2, revive_queue=3, queues=(PoppedQueue(True, 0, 5, (5, 6)),)).encode(),
    ),
    _commands(
        "receipt handle",
        HandleRequest.decode,
        (RemotingError,),
        HandleRequest(topic="T", consumer_group="G", handle=HANDLE).encode(),
        HandleRequest(topic="T", consumer_group="G", handle=HANDLE, invisible_ms=9).encode(),
    ),
    _commands(
        "changed invisible time",
        ChangedInvisibleTime.decode,
        (RemotingError,),
        ChangedInvisibleTime(pop_time_ms=1, invisible_ms=2, revive_queue=3).encode(),
    ),
    _plain(
        "recall handle",
        lambda data: RecallHandle.decode(data.decode("latin-1")),
        ValueError,
        RecallHandle(topic="T", broker_name="g", due_ms=1_700_000_000_000, unique_key="id").encode().encode(),
    ),
    _commands("batch of acks", decode_batch_ack, (RemotingError,), encode_batch_ack("G", "T", [HANDLE])),
    _plain(
        "record of the revive log",
        _record,
        ValueError,
        *(b"%b %b" % (tag.encode(), body) for tag, body in map(records.encode_record, RECORDS)),
    ),
    _commands(
        "topic request",
        lambda command: TopicConfig.from_fields(command.ext_fields),
        (ValueError, KeyError),
        RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, TopicConfig.of("T", 4).as_fields()),
    ),
    _plain("consumer group", _consumer_group, ValueError, json_body(ConsumerGroup(name="G").as_json())),
    _plain("table of topics", _topics, ValueError, _TOPICS),
    _commands("queue request", QueueRequest.decode, (RemotingError,), QUEUE.encode(RequestCode.GET_MAX_OFFSET)),
    _commands("query by key", KeyQuery.decode, (RemotingError,), KeyQuery(topic="T", key="k").encode()),
    _commands(
        "query by time", TimeQuery.decode, (RemotingError,), TimeQuery(topic="T", queue_id=1, time_ms=7).encode()
    ),
    _commands("heartbeat", Heartbeat.decode, (RemotingError,), HEARTBEAT.encode()),
    _commands(
        "queues to lock", QueueLockRequest.decode, (RemotingError,), QUEUE_LOCKS.encode(RequestCode.LOCK_BATCH_MQ)
    ),
    _commands(
        "message sent back",
        SendBackRequest.decode,
        (RemotingError,),
        SendBackRequest(offset=120, group="G", delay_level=3, max_reconsume_times=16).encode(),
    ),
    _commands("members", members, (ValueError,), members_answer(("a@1", "b@2"))),
    _commands("locked queues", locked_queues, (ValueError,), locked_queues_answer(QUEUE_LOCKS.queues)),
    _commands(
        "offsets that were set",
        noticed_offsets,
        (ValueError,),
        offsets_notice("T", "G", {queue: 7 for queue in QUEUE_LOCKS.queues}),
    ),
    _commands("registration", Registration.decode, (RemotingError,), _unchecked(REGISTRATION.encode())),
    _commands(
        "compressed registration", Registration.decode, (RemotingError,), _unchecked(REGISTRATION.encode_compressed())
    ),
    Codec(
        name="decompressed registration",
        decode=lambda body: decompress(zlib.compress(body, 1)),
        refuses=(ValueError, KeyError, TypeError, AttributeError),
        samples=((zlib.decompress(REGISTRATION.encode_compressed().body),),),
    ),
    _commands("controller request", parse_request, (MalformedRequest,), *_controller_requests()),
    _commands(
        "broker report",
        lambda command: BrokerReport.from_fields(command.ext_fields),
        (MalformedRequest,),
        _answer(REPORT.to_fields()),
    ),
    _commands(
        "replica info",
        lambda command: ReplicaInfo.from_answer(command.ext_fields, command.body),
        (MalformedRequest,),
        _answer(INFO.to_fields(), INFO.to_body()),
    ),
    _commands(
        "controller metadata",
        lambda command: ControllerMetadata.from_fields(command.ext_fields),
        (MalformedRequest,),
        _answer(METADATA.to_fields()),
    ),
    _commands(
        "controllers that come and go",
        parse_member_request,
        (MalformedRequest,),
        *(
            RemotingCommand.request(code, {"controllerId": "c4", "controllerAddress": "c4:9879"})
            for code in (
                RequestCode.CONTROLLER_ADD_MEMBER,
                RequestCode.CONTROLLER_REMOVE_MEMBER,
                RequestCode.CONTROLLER_TRANSFER_LEADERSHIP,
            )
        ),
    ),
    _commands(
        "known controllers",
        lambda command: KnownControllers.from_fields(command.ext_fields),
        (MalformedRequest,),
        _answer(KnownControllers(addresses=("c1:9878", "c4:9878"), version=7).to_fields()),
    ),
    _plain("properties", decode_properties, ValueError, encode_properties({"a =b": " c:\\\n", "é": "😀"})),
    _json_codec(
        "broker groups",
        broker_groups_from_json,
        {"brokerAddrTable": {"g": {"cluster": "c", "brokerAddrs": {"0": "b1:1"}}}},
    ),
    _json_codec(
        "epochs",
        epochs_from_json,
        {
            "clusterName": "c",
            "brokerName": "g",
            "brokerId": 1,
            "epochList": [{"epoch": 1, "startOffset": 0}, {"epoch": 2, "startOffset": 9}],
            "maxOffset": 20,
            "confirmOffset": 20,
        },
    ),
    _plain_of_any(
        "state of groups",
        group_states,
        json_body(
            {
                "replicasInfoTable": {
                    "g": {
                        "masterBrokerId": 1,
                        "masterAddress": "b1:1",
                        "masterEpoch": 1,
                        "syncStateSetEpoch": 2,
                        "inSyncReplicas": [{"brokerId": 1, "brokerAddress": "b1:1", "alive": True}],
                        "notInSyncReplicas": [],
                    }
                }
            }
        ),
    ),
    _plain("json body", parse_json, MalformedRequest, json_body(["g", "h"])),
    _plain("names", lambda body: {}.keys() & parse_names(body), MalformedRequest, json_body(["g", "h"])),
    _plain(
        "controller settings",
        _settings_refused,
        MalformedRequest,
        encode_properties({"enableElectUncleanMaster": "true", "controllerApplyTimeout": "7"}),
    ),
    _plain(
        "key-value command",
        _applied,
        key_value.MalformedCommand,
        key_value.put("k", [1]),
        key_value.compare_and_set("k", None, 2),
        TRANSACTION,
    ),
    _plain(
        "command of the metadata store",
        _changed_metadata,
        metadata_store.MalformedCommand,
        metadata_store.create("/k", METADATA_VALUE, "s"),
        metadata_store.put("/k", METADATA_VALUE, 1),
        metadata_store.delete("/k", 1),
        metadata_store.number("n"),
        metadata_store.end_session("s"),
    ),
    _plain(
        "mark of a ledger",
        _mark,
        MalformedMark,
        encode_mark(Mark(("15d97d36368b6587", "1ea951417a1b20cc"), True)).encode(),
    ),
    _plain("snapshot of the metadata store", _restored_metadata, metadata_store.MalformedSnapshot, METADATA_SNAPSHOT),
    *(
        _plain(f"metadata store's {name}", again, metadata_wire.MalformedAnswer, *samples)
        for name, again, samples in METADATA_ANSWERS
    ),
    _plain("route", TopicRoute.decode, ValueError, ROUTE.encode()),
    _plain("event", events.decode, ValueError, *map(events.encode, EVENTS)),
    _plain("length of a frame", frame_length, MalformedFrame, b"\0\0\0\x09", exact=True),
    _plain("length of a Raft message", raft.frame_length, raft.MalformedMessage, b"\0\0\0\x40", exact=True),
    _plain(
        "Raft greeting",
        raft.decode_greeting,
        raft.MalformedMessage,
        raft.encode_greeting(raft.Greeting("c2", "c2:9879"))[4:],
    ),
    _plain("Raft message", _raft, raft.MalformedMessage, *(raft.encode(1, message)[4:] for message in RAFT_MESSAGES)),
    _plain("Raft snapshot", raft_snapshot.decode, raft.MalformedMessage, *map(raft_snapshot.encode, RAFT_SNAPSHOTS)),
    _plain(
        "slave's handshake",
        wire.decode_slave_handshake,
        wire.WireError,
        wire.encode_slave_handshake(wire.SlaveHandshake(True, False, 2)),
        exact=True,
    ),
    _plain(
        "master's handshake",
        wire.decode_master_handshake_header,
        wire.WireError,
        wire.encode_master_handshake(900, 4, ()),
        exact=True,
    ),
    _plain(
        "epoch entries",
        wire.decode_epoch_entries,
        wire.WireError,
        wire.encode_master_handshake(900, 4, ((1, 0), (3, 500), (4, 700)))[20:],
        exact=True,
    ),
    _plain(
        "transfer",
        wire.decode_transfer_header,
        wire.WireError,
        wire.encode_transfer(5, 4, 3, 2),
        exact=True,
    ),
    _plain("ack", wire.decode_ack, wire.WireError, wire.encode_ack(900), exact=True),
    _plain("entry of DLedger", _entry, RecordInvalid, encode_entry(ENTRY, 7)[0]),
    _plain("index of DLedger", _index_record, RecordInvalid, encode_index_record(ENTRY)),
    _commands(
        "request to a bookie",
        _bookie_request,
        (bookie_wire.MalformedBookieCommand,),
        *map(bookie_wire.encode_request, BOOKIE_REQUESTS),
    ),
    _commands(
        "answer of a bookie",
        _bookie_answer,
        (bookie_wire.MalformedBookieCommand,),
        *(
            bookie_wire.encode_answer(request, answer)
            for request, answer in zip(BOOKIE_REQUESTS, BOOKIE_ANSWERS, strict=True)
        ),
    ),
    _plain("command of a queue", _queue_command, ValueError, *map(queue_entry.encode, QUEUE_COMMANDS)),
    _plain("state of a group of queues", _queue_state, ValueError, _queue_record()),
    _plain("entry of a ledger", _ledger_entry, ledger_entry.EntryCorrupt, _ENCODED),
    _plain(
        "record of a bookie's journal",
        _journal_record,
        RecordInvalid,
        *(
            journal_record.encode_record(kind, body, 100, 90, 7)[0]
            for kind, body in (
                (journal_record.Kind.ADD, _ENCODED),
                (journal_record.Kind.FENCE, journal_record.ledger_body(7)),
            )
        ),
    ),
    _plain(
        "body of a journal's record",
        _journal_body,
        RecordInvalid,
        journal_record.ledger_body(7),
        journal_record.lac_body(7, 3),
    ),
    _plain(
        "entry log",
        lambda data: list(scan(data, DIGEST)),
        RecordInvalid,
        2 * (len(_ENCODED).to_bytes(4, "big") + _ENCODED),
    ),
    _plain(
        "index of an entry log",
        _ledger_index,
        RecordInvalid,
        bookie_index.encode_index_record(bookie_index.IndexRecord(7, 3, 4, 40)) * 2,
    ),
    _plain("checkpoint of a bookie", _checkpoint, RecordInvalid, bookie_checkpoint.encode_checkpoint(CHECKPOINT)),
    _plain(
        "place of a journal",
        bookie_checkpoint.decode_place,
        RecordInvalid,
        bookie_checkpoint.encode_place(Place(900, 7)),
    ),
    _plain("identity of a bookie", bookie_identity.decode_identity, StorageCorrupt, bytes.fromhex(_BOOKIE)),
    _plain(
        "registration of a bookie",
        _registered,
        ValueError,
        *(bookie_identity.Registered("b1:3181", replaced).encode().encode() for replaced in (None, _BOOKIE)),
    ),
    _plain("messages of an entry of a partition", _messages, MalformedPayload, encode_messages([b"a", b"", b"bcd"])),
    _plain("ledgers of a partition", _ledger_list, MalformedList, encode_list((7, 9, 12)).encode()),
    _plain(
        "what a broker found",
        partition_wire.decode_found,
        partition_wire.MalformedAnswer,
        partition_wire.found(partition_wire.Found(((3, b"a"), (4, b"bc")), 256)),
    ),
    _commands(
        "request for a partition",
        _partition_request,
        (partition_wire.MalformedRequest,),
        *(partition_wire.read("storm-0", 300), partition_wire.seal("storm-0")),
    ),
    _plain("torn message", _message, MessageInvalid, _stored((b"T", b"body", b"TAGS\x01a\x02"))),
    Codec(
        name="message",
        decode=_message,
        refuses=(MessageInvalid,),
        samples=((b"T", b"body", b"TAGS\x01a\x02"),),
        join=_stored,
    ),
    _commands(
        "DLedger's request",
        _dledger_request,
        (dledger_fields.MalformedBody,),
        *map(_dledger_command, DLEDGER_REQUESTS),
    ),
    _commands(
        "DLedger's answer",
        _dledger_answer,
        (dledger_fields.MalformedBody,),
        *(
            _dledger_command(asked, dledger_wire.encode_answer(asked, answer))
            for asked, (_, answer) in zip(DLEDGER_REQUESTS, DLEDGER, strict=True)
        ),
    ),
)


# Harm

_TOKENS = {
    part: tuple(match.span() for match in _TOKEN.finditer(part))
    for codec in CODECS
    for sample in codec.samples
    for part in sample
    if part[:1] in (b"{", b"[")
}
"""Where values of JSON stand in a sample. In what was harmed before, nobody looks for them."""


def harmed(draw: random.Random, part: bytes) -> bytes:
    """Some of its bytes differ, or it is cut, or longer, or another value stands where one stood."""
    kind = draw.random()
    if kind < 0.4 and (tokens := _TOKENS.get(part)):
        start, end = tokens[int(draw.random() * len(tokens))]
        values = ODD_VALUES if draw.random() < 0.999 else HUGE_VALUES
        return part[:start] + values[int(draw.random() * len(values))] + part[end:]
    at = int(draw.random() * (len(part) + 1))
    if kind < 0.6:
        return part[:at] + bytes((int(draw.random() * 256),)) + part[at + 1 :]
    if kind < 0.7:
        words = EXTREMES_32 if draw.random() < 0.5 else EXTREMES_64
        word = words[int(draw.random() * len(words))]
        return part[:at] + word + part[at + len(word) :]
    if kind < 0.8:
        return part[:at]
    other = int(draw.random() * (len(part) + 1))
    if kind < 0.9:
        return part[:at] + part[other:]
    return part[:at] + draw.randbytes(int(draw.random() * 12)) + part[at:]


def drawn(draw: random.Random, codec: Codec) -> bytes:
    """One input: a sample whose parts were harmed once to three times, rarely nothing but noise."""
    sample = codec.samples[int(draw.random() * len(codec.samples))]
    if draw.random() < 0.02:
        data = draw.randbytes(int(draw.random() * 64))
    else:
        parts = list(sample)
        for _ in range(1 + int(draw.random() * 3)):
            place = int(draw.random() * len(parts))
            parts[place] = harmed(draw, parts[place])
        data = codec.join(tuple(parts))
        if draw.random() < 0.05:
            data = harmed(draw, data)
    if codec.exact:
        size = len(sample[0])
        data = data[:size] + sample[0][len(data) :]
    return data


def try_out(codec: Codec, seed: int, count: int) -> int:
    """Decode so many inputs; returns how many were accepted. Raises Undocumented."""
    draw = random.Random(f"{codec.name} {seed}")
    accepted = 0
    for number in range(count):
        data = drawn(draw, codec)
        try:
            codec.decode(data)
            accepted += 1
        except codec.refuses:
            continue
        except Exception as error:
            raise Undocumented(
                f"{codec.name}, seed {seed}, input {number} of {len(data)} bytes: {error!r}\n{data[:300]!r}"
            ) from error
    return accepted


def shares(count: int) -> Sequence[tuple[Codec, int]]:
    """So many inputs in all, dealt evenly."""
    return [(codec, -(-count // len(CODECS))) for codec in CODECS]


def main() -> None:
    parser = argparse.ArgumentParser(description="Feed every decoder malformed inputs.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    start = time.monotonic()
    total = 0
    for codec, count in shares(given.count):
        begun = time.monotonic()
        accepted = try_out(codec, given.seed, count)
        total += count
        print(f"{codec.name:26} {count:9} inputs, {accepted:8} accepted, {time.monotonic() - begun:6.1f} s", flush=True)
    print(f"{total} inputs, none ended in an error that is not documented, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
