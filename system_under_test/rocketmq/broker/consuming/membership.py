"""Members of groups of consumers come by heartbeats, and go when they say so, are silent, or their connection ends.

All members, new ones too, are notified that the members have changed (NOTIFY_CONSUMER_IDS_CHANGED), so that they divide
the queues among themselves at once instead of at their next look. The notice may be lost: members look anyway.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.group_members import Group, GroupMembers, TooMany
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers, text_field
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.consumer_protocol import (
    Heartbeat,
    MessageModel,
    members_answer,
    retry_topic,
)
from system_under_test.rocketmq.filter.subscription import filter_of
from system_under_test.runtime.host import ConnectionClosed
from system_under_test.storage.message_filter import MessageFilter


class Membership:
    """What is of consumers in HEART_BEAT and UNREGISTER_CLIENT, and questions about them."""

    def __init__(self, broker: BrokerContext, administration: Administration, members: GroupMembers) -> None:
        self._host, self._config, self._tables, self._ha = broker.host, broker.config, broker.tables, broker.ha
        self._administration = administration
        self.members = members
        self._task: asyncio.Task[None] | None = None

    @property
    def handlers(self) -> Handlers:
        return {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._list,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self._connections,
        }

    def start(self) -> None:
        self._task = self._host.spawn(self._look_for_silent_members(), "members of groups")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def closed(self, peer: Peer) -> None:
        """A client's connection has ended."""
        self._tell_all(self.members.closed(peer))

    def heartbeat(self, command: RemotingCommand, peer: Peer) -> Answer:
        heartbeat = Heartbeat.decode(command)
        known = [data for data in heartbeat.consumers if self._tables.group(data.group) is not None]
        now_ns = self._host.clock.monotonic_ns()
        for data in known:
            try:
                is_changed = self.members.heard(heartbeat.client_id, peer, data, now_ns)
            except TooMany as error:
                raise RemotingError(ResponseCode.SYSTEM_BUSY, str(error)) from error
            group = self.members.get(data.group)
            if is_changed and group is not None:
                self._tell(group)
        missing = [data.group for data in known if self._lacks_retry_queues(data.group)]
        return self._with_retry_topics(missing) if missing else RemotingCommand.response(ResponseCode.SUCCESS)

    def _lacks_retry_queues(self, name: str) -> bool:
        mastership = self._ha.mastership
        if mastership is None or mastership.ended:
            return False
        group = self._tables.group(name)
        queues = 0 if group is None else group.retry_queues
        return queues > 0 and not self._administration.has_topic_of_group(retry_topic(name), queues)

    async def _with_retry_topics(self, groups: Iterable[str]) -> RemotingCommand:
        """A group's topic for messages that come again is there before its first message fails."""
        for name in groups:
            group = self._tables.group(name)
            if group is not None and group.retry_queues > 0:
                # Where the role is lost meanwhile, the next heartbeat tries again.
                with suppress(RemotingError):
                    await self._administration.make_topic_of_group(retry_topic(name), group.retry_queues)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def unregister(self, command: RemotingCommand) -> RemotingCommand:
        group = command.ext_fields.get("consumerGroup")
        if group:
            self._tell_all(self.members.left(group, text_field(command, "clientID")))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def wanted(self, group_name: str, topic: str) -> MessageFilter | None:
        """What the group's members said that they want of a topic; None for everything, also where none said anything.

        Raises RemotingError (SUBSCRIPTION_PARSE_FAILED).
        """
        group = self.members.get(group_name)
        subscription = None if group is None else group.subscriptions.get(topic)
        if subscription is None:
            return None
        try:
            return filter_of(subscription.expression, subscription.expression_type)
        except ValueError as error:
            raise RemotingError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"the subscription is none: {error}") from error

    def _list(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        group = text_field(command, "consumerGroup")
        client_ids = self.members.client_ids(group)
        if not client_ids:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        return members_answer(client_ids)

    def _connections(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        name = text_field(command, "consumerGroup")
        group = self.members.get(name)
        if group is None:
            raise RemotingError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
        body = {
            "connectionSet": [
                {"clientAddr": member.peer.remote, "clientId": member.client_id, "language": "OTHER", "version": 0}
                for member in group.members.values()
            ],
            "consumeFromWhere": group.from_where.value,
            "consumeType": group.consume_type.value,
            "messageModel": group.message_model.value,
            "subscriptionTable": {topic: one.as_json() for topic, one in sorted(group.subscriptions.items())},
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(body, separators=(",", ":")).encode())

    async def _look_for_silent_members(self) -> None:
        while True:
            await self._host.clock.sleep(self._config.scan_clients_s)
            before_ns = self._host.clock.monotonic_ns() - int(self._config.client_expires_s * 1e9)
            self._tell_all(self.members.silent_since(before_ns))

    def _tell_all(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._tell(group)

    def _tell(self, group: Group) -> None:
        config = self._tables.group(group.name)
        if group.message_model is MessageModel.BROADCASTING or config is None or not config.tells_changes_of_ids:
            return
        notice = RemotingCommand.oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group.name})
        frame = notice.encode()
        for member in list(group.members.values()):
            with suppress(ConnectionClosed):
                member.peer.write(frame)
