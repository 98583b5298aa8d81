"""All that a NameServer knows: brokers by address, topics by group. Pure; the time is passed in.

Of two addresses that claim one id in a group the claim with the larger state version stays, whichever
comes first; with equal versions the later one stays. A group's topics are those its master registered last, and
are kept for as long as any broker of the group is known, so that slaves can be read when the master is gone; where no
master has registered yet, they are those of the slave that came first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.registration import MASTER_ID, Registration
from system_under_test.rocketmq.nameserver.route import GroupRoute, TopicRoute, encode_json, group_as_json
from system_under_test.rocketmq.static_topic.mapping import MappingInfo
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.rocketmq.version import Version


@dataclass(frozen=True, slots=True)
class _Record:
    registration: Registration
    peer: object
    expires_ns: int


def outranks(holder: Registration, claim: Registration) -> bool:
    """Whether the one that holds an id keeps it against another broker's claim to it."""
    return holder.state_version > claim.state_version


class RouteTable:
    def __init__(
        self,
        expiry_s: float,
        outranks: Callable[[Registration, Registration], bool] = outranks,
        version: Version = Version.V5,
    ) -> None:
        self._outranks = outranks
        self._version = version
        self._expiry_ns = int(expiry_s * 1e9)
        self._records: dict[str, _Record] = {}
        self._topics: dict[str, dict[str, TopicConfig]] = {}
        self._mappings: dict[str, dict[str, MappingInfo]] = {}
        self._encoded_routes: dict[str, bytes] = {}

    def register(self, registration: Registration, peer: object, now_ns: int) -> bool:
        """Take over a broker's claim, received over the connection `peer`. False if a better claim stands."""
        rival = self._holder(registration.broker_name, registration.broker_id)
        if rival is not None and rival.address != registration.address:
            is_refused = self._version is not Version.V4 and self._outranks(rival, registration)
            loser = registration if is_refused else rival
            self._drop(loser.address)
            if loser is registration:
                return False
        before = self._records.get(registration.address)
        if before is not None and before.registration.broker_name != registration.broker_name:
            self._drop(registration.address)
        self._records[registration.address] = _Record(registration, peer, now_ns + self._expiry(registration))
        if registration.broker_id == MASTER_ID or self._counts_of_slave(registration):
            self._topics[registration.broker_name] = dict(registration.topics)
            self._mappings[registration.broker_name] = dict(registration.mappings)
        if before is None or before.registration != registration:
            self._encoded_routes.clear()
        return True

    def _counts_of_slave(self, registration: Registration) -> bool:
        """Whether a slave's topics are those of its group for now."""
        return Version.V4 not in (self._version, registration.version_of_broker) and (
            registration.broker_name not in self._topics
        )

    def heartbeat(self, address: str, now_ns: int) -> None:
        """A sign of life between registrations; of an unknown broker it means nothing."""
        record = self._records.get(address)
        if record is not None:
            expires_ns = now_ns + self._expiry(record.registration)
            self._records[address] = _Record(record.registration, record.peer, expires_ns)

    def unregister(self, address: str) -> None:
        self._drop(address)

    def disconnected(self, peer: object) -> list[str]:
        """Forget the brokers whose latest registration came over `peer`; returns their addresses."""
        return self._drop_all([address for address, record in self._records.items() if record.peer is peer])

    def expire(self, now_ns: int) -> list[str]:
        """Forget the brokers that kept silent for too long; returns their addresses."""
        return self._drop_all([address for address, record in self._records.items() if record.expires_ns <= now_ns])

    def master(self, broker_name: str) -> Registration | None:
        return self._holder(broker_name, MASTER_ID)

    def route(self, topic: str) -> TopicRoute | None:
        groups = [self._group(name, topics[topic]) for name, topics in self._topics.items() if topic in topics]
        return TopicRoute(tuple(sorted(groups, key=lambda group: group.broker_name))) if groups else None

    def encoded_route(self, topic: str) -> bytes | None:
        """The route as it travels; None for an unknown topic. Kept until something changes."""
        body = self._encoded_routes.get(topic)
        if body is None:
            route = self.route(topic)
            if route is not None:
                body = self._encoded_routes[topic] = route.encode()
        return body

    def version(self, address: str) -> DataVersion | None:
        """Which state of its topics the broker at this address has registered with; None if it is not known."""
        record = self._records.get(address)
        return None if record is None else record.registration.version

    def topics(self) -> list[str]:
        """All topics of all groups, by name."""
        return sorted({topic for topics in self._topics.values() for topic in topics})

    def forget_topic(self, topic: str) -> None:
        """Until a master registers with it again."""
        for topics in self._topics.values():
            topics.pop(topic, None)
        self._encoded_routes.pop(topic, None)

    def encoded_cluster_info(self) -> bytes:
        """RocketMQ's ClusterInfo: all groups with their brokers, and the groups of each cluster."""
        names = sorted({record.registration.broker_name for record in self._records.values()})
        groups = [self._group(name, None) for name in names]
        clusters: dict[str, list[str]] = {}
        for group in groups:
            clusters.setdefault(group.cluster, []).append(group.broker_name)
        return encode_json(
            {
                "brokerAddrTable": {group.broker_name: group_as_json(group) for group in groups},
                "clusterAddrTable": dict(sorted(clusters.items())),
            }
        )

    def _members(self, broker_name: str) -> list[Registration]:
        members = [r.registration for r in self._records.values() if r.registration.broker_name == broker_name]
        return sorted(members, key=lambda member: member.broker_id)

    def _holder(self, broker_name: str, broker_id: int) -> Registration | None:
        return next((member for member in self._members(broker_name) if member.broker_id == broker_id), None)

    def _group(self, broker_name: str, topic: TopicConfig | None) -> GroupRoute:
        members = self._members(broker_name)
        return GroupRoute(
            cluster=members[0].cluster,
            broker_name=broker_name,
            brokers={member.broker_id: member.address for member in members},
            read_queues=0 if topic is None else topic.read_queues,
            write_queues=0 if topic is None else topic.write_queues,
            permission=0 if topic is None else topic.permission,
            system_flag=0 if topic is None else topic.system_flag,
            mapping=None if topic is None else self._mappings.get(broker_name, {}).get(topic.name),
        )

    def _expiry(self, registration: Registration) -> int:
        if registration.expiry_ms is None or self._version is Version.V4:
            return self._expiry_ns
        return registration.expiry_ms * 1_000_000

    def _drop_all(self, addresses: list[str]) -> list[str]:
        for address in addresses:
            self._drop(address)
        return addresses

    def _drop(self, address: str) -> None:
        record = self._records.pop(address, None)
        if record is not None:
            self._encoded_routes.clear()
            name = record.registration.broker_name
            if not self._members(name):
                self._topics.pop(name, None)
                self._mappings.pop(name, None)
