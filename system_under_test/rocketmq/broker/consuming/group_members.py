"""Who is a member of which group of consumers, as far as heartbeats on living connections say.

Every broker keeps this for itself, master and slaves alike, for clients send heartbeats to all of them: a new
master knows the members already. Nothing of it is stored; after a restart the next heartbeats bring it back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.consumer_protocol import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    Subscription,
)

MAX_GROUPS = 10_000
MAX_MEMBERS = 10_000
"""How many members one group may have."""


class TooMany(Exception):
    """There is no room for another member, or another group."""


@dataclass(slots=True)
class Member:
    client_id: str
    peer: Peer
    heard_ns: int


@dataclass(slots=True)
class Group:
    """The members by client id, in the order in which they came; how they consume is what the last heartbeat said."""

    name: str
    consume_type: ConsumeType
    message_model: MessageModel
    from_where: ConsumeFromWhere
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)


class GroupMembers:
    """All groups that have members. Methods that take members away give the groups that have changed."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def get(self, name: str) -> Group | None:
        return self._groups.get(name)

    def client_ids(self, name: str) -> tuple[str, ...]:
        """Of all members of a group, among whom its queues are to be divided."""
        group = self._groups.get(name)
        return () if group is None else tuple(group.members)

    def heard(self, client_id: str, peer: Peer, data: ConsumerData, now_ns: int) -> bool:
        """A heartbeat has come; whether somebody has joined, or the group wants something else. Raises TooMany.

        A client that is on another connection now is no other one.
        """
        group = self._groups.get(data.group)
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                raise TooMany(f"{MAX_GROUPS} groups have members already")
            group = Group(data.group, data.consume_type, data.message_model, data.from_where)
        member = group.members.get(client_id)
        if member is None and len(group.members) >= MAX_MEMBERS:
            raise TooMany(f"group {data.group} has {MAX_MEMBERS} members already")
        self._groups[data.group] = group
        group.members[client_id] = Member(client_id, peer, now_ns)
        group.consume_type, group.message_model = data.consume_type, data.message_model
        group.from_where = data.from_where
        return _subscribe(group, data) or member is None

    def left(self, name: str, client_id: str) -> tuple[Group, ...]:
        """The member says that it leaves."""
        group = self._groups.get(name)
        return () if group is None else self._without(group, [client_id])

    def closed(self, peer: Peer) -> tuple[Group, ...]:
        """A connection has ended, and with it those who were members by it."""
        return self._without_all(lambda member: member.peer is peer)

    def silent_since(self, before_ns: int) -> tuple[Group, ...]:
        """Who has not been heard of since that time counts no more; its connection is closed."""
        for group in self._groups.values():
            for member in group.members.values():
                if member.heard_ns < before_ns:
                    member.peer.close()
        return self._without_all(lambda member: member.heard_ns < before_ns)

    def _without_all(self, is_gone: Callable[[Member], bool]) -> tuple[Group, ...]:
        changed: list[Group] = []
        for group in list(self._groups.values()):
            changed += self._without(group, [name for name, member in group.members.items() if is_gone(member)])
        return tuple(changed)

    def _without(self, group: Group, client_ids: list[str]) -> tuple[Group, ...]:
        gone = [client_id for client_id in client_ids if group.members.pop(client_id, None) is not None]
        if not group.members:
            self._groups.pop(group.name, None)
        return (group,) if gone else ()


def _subscribe(group: Group, data: ConsumerData) -> bool:
    """Whether the topics are others now, or one's subscription is a newer one."""
    wanted = {subscription.topic: subscription for subscription in data.subscriptions}
    is_changed = wanted.keys() != group.subscriptions.keys()
    for topic, subscription in wanted.items():
        known = group.subscriptions.get(topic)
        if known is not None and known.version > subscription.version:
            wanted[topic] = known
        elif known is not None and known.version < subscription.version:
            is_changed = True
    group.subscriptions = wanted
    return is_changed
