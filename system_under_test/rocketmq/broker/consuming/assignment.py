"""Divides the queues of a topic among the members of a group, for those that ask it to.

Each broker divides by what it knows: members by their heartbeats, queues by its NameServers' routes. So it is as with
members that divide for themselves: as long as all see the same, each queue is one member's, and while they do not, two
may be told of one queue, or nobody. What brokers add is how a queue is consumed: pulled by one member, or popped by
several, as an administrator has set it for the topic and the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.allocation import BY_NAME, Allocation
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.consuming.group_members import GroupMembers
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.topics.tables import Tables, mode_key
from system_under_test.rocketmq.broker.topics.topic_routes import TopicRoutes
from system_under_test.rocketmq.consumer_protocol import (
    RETRY_PREFIX,
    Assignment,
    AssignmentRequest,
    MessageModel,
    MessageQueue,
    RequestMode,
    RequestModeSetting,
    assignments_answer,
)
from system_under_test.rocketmq.pop_protocol import ANY_QUEUE

Assign = Callable[
    [Allocation, str, Sequence[MessageQueue], Sequence[str], RequestModeSetting], tuple[MessageQueue, ...]
]


def assigned(
    allocation: Allocation,
    client_id: str,
    queues: Sequence[MessageQueue],
    members: Sequence[str],
    setting: RequestModeSetting,
) -> tuple[MessageQueue, ...]:
    """What is this member's; queues and members are sorted."""
    if setting.mode is RequestMode.PULL:
        return allocation(client_id, queues, members)
    if client_id not in members:
        return ()
    if not 0 < setting.shared_queues < len(members) - 1:
        return tuple(dict.fromkeys(queue._replace(queue_id=ANY_QUEUE) for queue in queues))
    place = members.index(client_id)
    if len(members) > len(queues):
        return (queues[place % len(queues)],) if queues else ()
    sharing = [members[(place + behind) % len(members)] for behind in range(setting.shared_queues + 1)]
    return tuple(queue for member in sharing for queue in allocation(member, queues, members))


class Assignments:
    """QUERY_ASSIGNMENT."""

    def __init__(
        self, config: BrokerConfig, tables: Tables, members: GroupMembers, routes: TopicRoutes, assign: Assign
    ) -> None:
        self._config = config
        self._tables = tables
        self._members = members
        self._routes = routes
        self._assign = assign

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.QUERY_ASSIGNMENT: self._query}

    async def _query(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        request = AssignmentRequest.decode(command)
        setting = self._setting(request.topic, request.group)
        queues = await self._routes.queues(request.topic)
        own = None if queues is None else self._own(request, setting, sorted(queues))
        return assignments_answer(None if own is None else [Assignment(queue, setting.mode) for queue in own])

    def _setting(self, topic: str, group: str) -> RequestModeSetting:
        """What comes back to a group is pulled, whatever else is popped."""
        made = self._tables.request_modes.get(mode_key(topic, group))
        if made is not None:
            return made
        mode = RequestMode.PULL if topic.startswith(RETRY_PREFIX) else self._config.request_mode
        return RequestModeSetting(topic=topic, group=group, mode=mode, shared_queues=self._config.pop_shared_queues)

    def _own(
        self, request: AssignmentRequest, setting: RequestModeSetting, queues: Sequence[MessageQueue]
    ) -> tuple[MessageQueue, ...] | None:
        """None where this broker cannot divide: it knows nobody of the group, or not the strategy."""
        if request.model is MessageModel.BROADCASTING or not self._config.divides_queues:
            return tuple(queues)
        members, allocation = sorted(self._members.client_ids(request.group)), BY_NAME.get(request.strategy)
        if not members or allocation is None:
            return None
        return self._assign(allocation, request.client_id, queues, members, setting)
