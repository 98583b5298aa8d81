"""Static topics as one broker knows them, and changes of them: who leads which queue, and which segments it has.

Each change is a record in the log, in a topic of the broker's own, so it is replicated, durable, confirmed and cut as
messages are: what freezes a segment is as safe as the last message of that segment, which stands before it. The master
answers once the record is confirmed, and obeys it as soon as it is appended: what it acknowledges afterwards stands
behind the record.

A new master reads all records that its log holds, those beyond the confirm offset included, before it serves: none of
them may be confirmed later behind its back. A slave goes by those that are confirmed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.acknowledgement import acknowledged
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.putting import Puts
from system_under_test.rocketmq.broker.request_handler import Handlers, text_field
from system_under_test.rocketmq.static_topic.acceptance import ChangeRefused, EndOf
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment
from system_under_test.rocketmq.static_topic.mapping import MappingInfo, StaticTopic
from system_under_test.rocketmq.topic import STATIC_TOPIC, TopicConfig, is_system_topic
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.message import MessageInvalid, decode_message
from system_under_test.storage.new_message import NewMessage

MAX_STATIC_TOPICS = 1_000
READ_COUNT = 1_024

Accept = Callable[[StaticTopic | None, StaticTopic, str, EndOf], StaticTopic]


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic, and where in the log the record stands that says so."""

    topic: StaticTopic
    offset: int
    end_offset: int


class StaticTopics:
    """UPDATE_AND_CREATE_STATIC_TOPIC and GET_TOPIC_CONFIG; `on_change` is called when a queue is led, or no more."""

    def __init__(self, broker: BrokerContext, puts: Puts, accept: Accept, on_change: Callable[[], None]) -> None:
        self._host, self._store, self._config, self._ha = broker.host, broker.store, broker.config, broker.ha
        self._tables = broker.tables
        self._puts = puts
        self._accept = accept
        self._on_change = on_change
        self._by_name: dict[str, TopicRecord] = {}
        self._read_by: AnyMastership | None = None
        """Of which mastership what is known is; None where it is of a slave."""
        self._read_to = 0
        """Up to this record, as a slave."""
        self._cuts = 0
        """How often the log had been cut by then."""
        broker.store.needed_from.append(self._oldest_record)

    @property
    def handlers(self) -> Handlers:
        return {
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: lambda command, _: self._change(command),
            RequestCode.GET_TOPIC_CONFIG: self._show,
        }

    def get(self, name: str) -> StaticTopic | None:
        self._refresh()
        known = self._by_name.get(name)
        return None if known is None else known.topic

    def config(self, name: str) -> TopicConfig | None:
        """The topic as the queues of this group that its segments may have; None if it is not static."""
        topic = self.get(name)
        return None if topic is None else TopicConfig.of(name, topic.physical_queues)

    def configs(self) -> dict[str, TopicConfig]:
        """Of all static topics."""
        self._refresh()
        return {name: TopicConfig.of(name, known.topic.physical_queues) for name, known in self._by_name.items()}

    def infos(self) -> dict[str, MappingInfo]:
        """What NameServers are told."""
        self._refresh()
        return {name: known.topic.info(self._config.group) for name, known in self._by_name.items()}

    def led(self, name: str) -> tuple[int, ...]:
        """The numbers of the queues that this group takes messages for."""
        topic = self.get(name)
        return () if topic is None else tuple(topic.led_by(self._config.group))

    def queue(self, name: str, queue_id: int) -> LogicQueue | None:
        """None if the topic is not static. Raises RemotingError if it has no such queue, as far as is known."""
        topic = self.get(name)
        if topic is None:
            return None
        if not 0 <= queue_id < topic.total_queues:
            raise RemotingError(
                ResponseCode.INVALID_PARAMETER, f"topic {name} has queues 0 to {topic.total_queues - 1}"
            )
        queue = topic.queues.get(queue_id)
        if queue is None:
            raise not_here(name, queue_id, self._config.group)
        return queue

    def leading(self, name: str, queue_id: int) -> Segment | None:
        """Where a message to this queue goes; None if the topic is not static. Raises RemotingError
        (NOT_LEADER_FOR_QUEUE) if it is not taken here."""
        queue = self.queue(name, queue_id)
        if queue is None:
            return None
        segment = self.writable(queue)
        if segment is None:
            raise not_here(name, queue_id, self._config.group)
        return segment

    def writable(self, queue: LogicQueue) -> Segment | None:
        """The segment that takes messages here; None where it is another group that leads, or nobody."""
        return queue.last if queue.leader == self._config.group else None

    def end(self, name: str, segment: Segment) -> int:
        """Where a frozen segment of this group ends. All of its messages stand before the record that froze it, so the
        log may hold fewer than it had, never more that come later."""
        return min(segment.end_offset, self._store.queue_end(name, segment.queue_id))

    # changes

    async def _change(self, command: RemotingCommand) -> RemotingCommand:
        asked = _decoded(command)
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        known = self._known_or_room(asked.name)
        try:
            topic = self._accept(
                None if known is None else known.topic,
                asked,
                self._config.group,
                lambda queue_id: self._store.queue_end(asked.name, queue_id),
            )
        except (ChangeRefused, ValueError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"topic {asked.name}: {error}") from error
        if known is None or topic != known.topic:
            self._host.reached("about-to-change-mapping")
            known = self._written(mastership, None if known is None else known.topic, topic)
            self._by_name[asked.name] = known
            self._host.reached("mapping-changed")
            self._on_change()
        return await self._confirmed(mastership, known, b"")

    def _known_or_room(self, name: str) -> TopicRecord | None:
        """Raises RemotingError where there is nothing of this name, and may not be."""
        self._refresh()
        known = self._by_name.get(name)
        if known is None and (is_system_topic(name) or name in self._tables.topics.entries):
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"there is a topic {name} already, which is not static")
        if known is None and len(self._by_name) >= MAX_STATIC_TOPICS:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"there are {MAX_STATIC_TOPICS} static topics already")
        return known

    def _written(self, mastership: AnyMastership, before: StaticTopic | None, topic: StaticTopic) -> TopicRecord:
        """Append the record of a change. Raises RemotingError: nothing was written."""
        record = NewMessage(topic=STATIC_TOPIC, queue_id=0, body=topic.encode(self._config.group))
        put = self._puts.put(mastership, record).put
        self._host.log("mapped", topic=topic.name, start=put.offset, end=put.end_offset)
        return TopicRecord(topic, put.offset, put.end_offset)

    async def _show(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        """The master's answer, when it is safe: the caller must not go on from what may be cut."""
        name = text_field(command, "topic")
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        self._refresh()
        known = self._by_name.get(name)
        if known is None:
            topic = self._tables.topics.get(name)
            if topic is None:
                raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic {name!r} does not exist")
            return RemotingCommand.response(
                ResponseCode.SUCCESS, body=_json({**topic.as_json(), "mappingDetail": None})
            )
        config = TopicConfig.of(name, known.topic.physical_queues)
        body = {**config.as_json(), "mappingDetail": known.topic.as_json(self._config.group)}
        return await self._confirmed(mastership, known, _json(body))

    async def _confirmed(self, mastership: AnyMastership, record: TopicRecord, body: bytes) -> RemotingCommand:
        """SUCCESS once all that is known here of the topic will stay, or a code that leaves that open."""
        replicated = mastership.replicated(record.end_offset)
        code, remark = await acknowledged(
            self._host, self._store, self._config, mastership, record.end_offset, replicated
        )
        if code is not ResponseCode.SUCCESS:
            return RemotingCommand.response(code, remark=remark)
        return RemotingCommand.response(code, body=body)

    # what the log says

    def _refresh(self) -> None:
        """Know what the log says by now, in the role of now. Raises StorageCorrupt."""
        mastership = self._ha.mastership
        if mastership is not None:
            if self._read_by is not mastership:
                self._begin_anew(mastership)
                for data in self._store.undispatched(STATIC_TOPIC):
                    self._take(data)
            return
        least, end = self._store.queue_range(STATIC_TOPIC, 0)
        if self._read_by is not None or self._cuts != self._store.cuts:
            self._begin_anew(None)
        elif end > self._read_to:
            for data in self._records(max(least, self._read_to), end):
                self._take(data)
            self._read_to = end

    def _begin_anew(self, mastership: AnyMastership | None) -> None:
        least, end = self._store.queue_range(STATIC_TOPIC, 0)
        self._by_name, self._read_by, self._read_to = {}, mastership, end
        self._cuts = self._store.cuts
        for data in self._records(least, end):
            self._take(data)

    def _oldest_record(self) -> int:
        """Nobody else says what it says: were it deleted, the group would take messages that it must refuse."""
        self._refresh()
        return min((known.offset for known in self._by_name.values()), default=self._store.max_offset)

    def _records(self, offset: int, end: int) -> Iterator[bytes]:
        while offset < end:
            read = self._store.get_messages(STATIC_TOPIC, 0, offset, READ_COUNT).messages
            if not read:
                return
            yield from read
            offset += len(read)

    def _take(self, data: bytes) -> None:
        """Raises StorageCorrupt: a broker that passes a record over would take messages that it must refuse."""
        try:
            message = decode_message(data, 0)
            topic = StaticTopic.decode(message.body)
        except (MessageInvalid, ValueError) as error:
            raise StorageCorrupt(f"a record of a static topic: {error}") from error
        self._by_name[topic.name] = TopicRecord(topic, message.physical_offset, message.physical_offset + len(data))


def not_here(name: str, queue_id: int, group: str) -> RemotingError:
    return RemotingError(ResponseCode.NOT_LEADER_FOR_QUEUE, f"{group} does not serve queue {queue_id} of topic {name}")


def _decoded(command: RemotingCommand) -> StaticTopic:
    try:
        asked = StaticTopic.decode(command.body)
    except ValueError as error:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from error
    if not asked.queues or command.ext_fields.get("topic", asked.name) != asked.name:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, "the change names another topic, or no queue")
    return asked


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
