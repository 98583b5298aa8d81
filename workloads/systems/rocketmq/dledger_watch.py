"""Brokers that are members of DLedger's groups: who leads, what a watch sees of them, and their invariants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.invariants import Breaches
from workloads.systems.dledger.client import MemberClient
from workloads.systems.dledger.invariants import DledgerInvariants
from workloads.systems.dledger.settings import roles_in
from workloads.systems.dledger.watch import DledgerWatch
from workloads.systems.rocketmq.dledger_loss import group_beneath
from workloads.systems.rocketmq.roles import ANSWERS_WITHIN_S
from workloads.systems.rocketmq.settings import DLEDGER_PORT, RocketmqSettings, broker_groups

NAMES = {"leader": "primary", "spare": "dispensable", "preferred": "preferred"}
"""Role of a member of DLedger -> that of a broker: a group goes on without its master."""


def of_brokers(groups: Iterable[Mapping[str, tuple[str, ...]]]) -> Mapping[str, tuple[str, ...]]:
    """The roles of all brokers, by those that the members of each group play."""
    roles: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for role, nodes in group.items():
            roles[NAMES[role]] = (*roles.get(NAMES[role], ()), *nodes)
    return roles


async def brokers_roles(settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
    """As members say whether they lead. NameServers go on to name a master that is gone for a while."""
    found = []
    for group in broker_groups(settings):
        asking = MemberClient(host, ANSWERS_WITHIN_S, group=group.name, port=DLEDGER_PORT)
        found.append(roles_in(group_beneath(settings, group), await asking.leader(group.brokers)))
        asking.close()
    return of_brokers(found)


class BrokersWatch:
    """`Watch` of the harness."""

    def __init__(self, settings: RocketmqSettings) -> None:
        self._groups = [DledgerWatch(group_beneath(settings, group)) for group in broker_groups(settings)]

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        for group in self._groups:
            group.saw(node, event, fields)

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        return of_brokers(group.roles() for group in self._groups)

    def state(self) -> tuple[str, ...]:
        return tuple(word for group in self._groups for word in group.state())


class BrokersInvariants:
    """`Invariants` of the harness: those of each group, which know nothing of each other."""

    def __init__(self, settings: RocketmqSettings, breaches: Breaches) -> None:
        groups = {
            group: DledgerInvariants(group_beneath(settings, group), breaches) for group in broker_groups(settings)
        }
        self._of_broker = {broker: invariants for group, invariants in groups.items() for broker in group.brokers}

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        if node in self._of_broker:
            self._of_broker[node].saw(node, event, fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        if node in self._of_broker:
            self._of_broker[node].observe(node, point, values)
