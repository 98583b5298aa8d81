"""What administrators ask of a broker: topics and groups of consumers made, changed, deleted and listed, and which
groups pop which topics.

Only the master changes anything. What it has changed is durable when it answers; its slaves copy it a little later (see
`slave_sync`), and NameServers hear of it at once. So a topic that was changed or deleted right before a failover may be
as it was before; one that was made then is there, if it has messages that the new master holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.ha.replication import AnyMastership
from system_under_test.rocketmq.broker.request_handler import Handlers, text_field
from system_under_test.rocketmq.broker.topics.static_topics import StaticTopics
from system_under_test.rocketmq.broker.topics.tables import MAX_REQUEST_MODES, mode_key
from system_under_test.rocketmq.consumer_group import MAX_GROUPS, ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import RETRY_PREFIX, RequestModeSetting
from system_under_test.rocketmq.topic import MAX_QUEUES, MAX_TOPICS, TopicConfig, is_system_topic, topic_after
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.timer_progress import encode_checkpoint

KNOWN_VERSION = "knownVersion"
"""Header field: the version that the sender has already; the answer then has no body where nothing has changed."""
VERSION = "version"
MASTER_EPOCH = "masterEpoch"
"""Header field: only the master of this epoch is to answer."""
MODES_VERSION = "messageRequestModeVersion"
"""Header field beside the groups of consumers, where any request mode is set: hardly anybody sets one, and a slave asks
for them only then."""
FORGOTTEN = "forgottenTopics"
OFFSETS = "offsetTable"
NOTHING: Mapping[str, str] = MappingProxyType({})


class Administration:
    """`on_topics` is called when the topics have changed."""

    def __init__(self, broker: BrokerContext, static: StaticTopics, on_topics: Callable[[], None]) -> None:
        self._host, self._store, self._tables, self._ha = broker.host, broker.store, broker.tables, broker.ha
        self._static = static
        self._on_topics = on_topics
        self._being_deleted: set[str] = set()

    @property
    def handlers(self) -> Handlers:
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self._create_topic,
            RequestCode.DELETE_TOPIC_IN_BROKER: self._delete_topic,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._create_group,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self._delete_group,
            RequestCode.SET_MESSAGE_REQUEST_MODE: self._set_request_mode,
            RequestCode.GET_ALL_TOPIC_CONFIG: self._list_topics,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._list_groups,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self._list_request_modes,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self._show_group,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self._list_offsets,
            RequestCode.GET_ALL_DELAY_OFFSET: self._list_delay_progress,
            RequestCode.GET_TIMER_CHECK_POINT: self._show_timer_progress,
        }

    def topic(self, name: str) -> TopicConfig:
        """Raises RemotingError (TOPIC_NOT_EXIST)."""
        topic = self._static.config(name) or self._tables.topics.get(name)
        if topic is None or name in self._being_deleted:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic {name!r} does not exist")
        return topic

    def group(self, name: str) -> ConsumerGroup | None:
        return self._tables.group(name)

    async def make_topic_after(self, default_topic: str, name: str, queues: int) -> None:
        """Where that one lets topics be made after it and there is none of this name yet. Raises RemotingError."""
        default = self._tables.topics.get(default_topic)
        if default is None or not default.is_inherited or name in self._tables.topics.entries:
            return
        if is_system_topic(name):
            raise _wrong(f"topic {name} belongs to the system")
        try:
            topic = topic_after(default, name, queues)
        except ValueError as error:
            raise _wrong(str(error)) from error
        await self._put_topic(topic)

    async def ensure_topic(self, topic: TopicConfig) -> None:
        """Have this topic of the broker's own, durably, unless there is one of its name. Raises RemotingError."""
        if topic.name not in self._tables.topics.entries:
            await self._put_topic(topic)

    def has_topic_of_group(self, name: str, queues: int) -> bool:
        topic = self._tables.topics.get(name)
        return topic is not None and min(topic.read_queues, topic.write_queues) >= min(queues, MAX_QUEUES)

    async def make_topic_of_group(self, name: str, queues: int) -> None:
        """Have a group's own topic, for what comes again or is a dead letter, with so many queues at least: the group
        may be given more later. Raises RemotingError."""
        if self.has_topic_of_group(name, queues):
            return
        known, queues = self._tables.topics.get(name), min(queues, MAX_QUEUES)
        try:
            topic = TopicConfig.of(name, queues) if known is None else known.with_queues(queues)
        except ValueError as error:
            raise _wrong(str(error)) from error
        await self._put_topic(topic)

    # topics

    async def _create_topic(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        fields = command.ext_fields
        if fields.get("attributes"):
            raise _wrong("attributes of topics are not supported yet")
        if fields.get("topicFilterType", "SINGLE_TAG") != "SINGLE_TAG":
            raise _wrong("topics with several tags a message are not supported")
        try:
            topic = TopicConfig.from_fields(fields)
        except (KeyError, ValueError) as error:
            raise _wrong(f"no topic: {error}") from error
        if is_system_topic(topic.name):
            raise _wrong(f"topic {topic.name} belongs to the system")
        await self._put_topic(topic)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _put_topic(self, topic: TopicConfig) -> None:
        mastership, topics = self._mastership(), self._tables.topics
        self._check_ordinary(topic.name)
        if topic.name in self._being_deleted:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, f"topic {topic.name} is being deleted")
        if topic.name not in topics.entries and len(topics.entries) >= MAX_TOPICS:
            raise _wrong(f"there are {MAX_TOPICS} topics already")
        await self._done(mastership, topics.put({topic.name: topic}, mastership.master_epoch))
        self._on_topics()

    async def _delete_topic(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        name = text_field(command, "topic")
        mastership = self._mastership()
        if is_system_topic(name):
            raise _wrong(f"topic {name} belongs to the system")
        self._check_ordinary(name)
        if name in self._being_deleted:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, f"topic {name} is being deleted")
        if name in self._tables.topics.entries:
            # Nothing is sent to it meanwhile: it would come back with a topic that is made of this name later.
            self._being_deleted.add(name)
            try:
                await self._done(mastership, self._forget_and_remove(mastership, name))
            finally:
                self._being_deleted.discard(name)
            self._on_topics()
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _check_ordinary(self, name: str) -> None:
        """Raises RemotingError."""
        if self._static.get(name) is not None:
            raise _wrong(f"topic {name} is static: its queues move, but it is neither changed nor deleted")

    async def _forget_and_remove(self, mastership: AnyMastership, name: str) -> None:
        """In this order: a topic that is gone with its messages left would show them when it is made again."""
        await self._store.forget_topic(name)
        await self._tables.topics.remove(name, mastership.master_epoch)

    # groups of consumers

    async def _create_group(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        mastership, groups = self._mastership(), self._tables.groups
        try:
            value = decode_json(command.body)
            group = ConsumerGroup.from_json(value["groupName"], value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _wrong(f"no group of consumers: {error!r}") from error
        if group.name not in groups.entries and len(groups.entries) >= MAX_GROUPS:
            raise _wrong(f"there are {MAX_GROUPS} groups already")
        await self._done(mastership, groups.put({group.name: group}, mastership.master_epoch))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _delete_group(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        name = text_field(command, "groupName")
        mastership = self._mastership()
        if name in self._tables.groups.entries:
            await self._done(mastership, self._tables.groups.remove(name, mastership.master_epoch))
        if command.ext_fields.get("cleanOffset", "false").lower() == "true":
            await self._done(mastership, self._store.forget_group(name))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _set_request_mode(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        setting, modes = RequestModeSetting.decode(command), self._tables.request_modes
        mastership = self._mastership()
        if setting.topic.startswith(RETRY_PREFIX):
            raise RemotingError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        self.topic(setting.topic)
        if self._tables.group(setting.group) is None:
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {setting.group!r} does not exist")
        key = mode_key(setting.topic, setting.group)
        if key not in modes.entries and len(modes.entries) >= MAX_REQUEST_MODES:
            raise _wrong(f"there are {MAX_REQUEST_MODES} request modes already")
        await self._done(mastership, modes.put({key: setting}, mastership.master_epoch))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    # lists

    def _list_topics(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        topics, forgotten = self._tables.topics, self._store.forgotten_topics
        return self.listed(command, str(topics.version), lambda: topics.encode(**{FORGOTTEN: dict(forgotten)}))

    def _list_groups(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        groups, modes = self._tables.groups, self._tables.request_modes
        beside = {MODES_VERSION: str(modes.version)} if modes.entries else {}
        return self.listed(command, str(groups.version), groups.encode, beside)

    def _list_request_modes(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        return self.listed(command, str(self._tables.request_modes.version), self._tables.request_modes.encode)

    def _show_group(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        name = text_field(command, "group")
        group = self._tables.group(name)
        if group is None:
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {name!r} does not exist")
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(group.as_json()).encode())

    def _list_offsets(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        return self.listed(command, str(self._store.consumer_offsets.version), self._encoded_offsets)

    def listed(
        self, command: RemotingCommand, version: str, encode: Callable[[], bytes], beside: Mapping[str, str] = NOTHING
    ) -> RemotingCommand:
        """A table for clients; for a slave only if this is the master that it follows. Raises RemotingError."""
        fields = command.ext_fields
        mastership = self._ha.mastership
        wanted_epoch = fields.get(MASTER_EPOCH)
        if wanted_epoch is not None and (mastership is None or str(mastership.master_epoch) != wanted_epoch):
            raise RemotingError(ResponseCode.NOT_MASTER, f"this broker is not the master of epoch {wanted_epoch}")
        body = b"" if fields.get(KNOWN_VERSION) == version else encode()
        return RemotingCommand.response(ResponseCode.SUCCESS, {VERSION: version, **beside}, body)

    def _list_delay_progress(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        self._store.settle_delay_progress()
        progress = self._store.delay_progress
        return self.listed(command, str(progress.version), lambda: json.dumps(progress.as_json()).encode())

    def _show_timer_progress(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        self._store.settle_delay_progress()
        progress = self._store.timer_progress
        return self.listed(command, str(progress.version), lambda: encode_checkpoint(progress.checkpoint))

    def _encoded_offsets(self) -> bytes:
        table: dict[str, dict[str, int]] = {}
        for (group, topic, queue_id), offset in self._store.consumer_offsets.items():
            table.setdefault(f"{topic}@{group}", {})[str(queue_id)] = offset
        return json.dumps({OFFSETS: table}, separators=(",", ":")).encode()

    # both

    def _mastership(self) -> AnyMastership:
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        return mastership

    async def _done(self, mastership: AnyMastership, change: Coroutine[Any, Any, None]) -> None:
        try:
            await change
        except DiskFull as error:
            raise RemotingError(ResponseCode.DISK_FULL, str(error)) from error
        if mastership.ended:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "the role was lost meanwhile: the change may be lost, too")


def _wrong(remark: str) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, remark)
