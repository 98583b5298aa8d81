"""Brokers that are members of DLedger's groups, watched and held to the invariants of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.invariants import Breaches
from workloads.systems.dledger.invariants import DledgerInvariants
from workloads.systems.dledger.watch import DledgerWatch
from workloads.systems.rocketmq.dledger_loss import group_beneath
from workloads.systems.rocketmq.settings import RocketmqSettings, broker_groups


class BrokersWatch:
    """`Watch` of the harness."""

    def __init__(self, settings: RocketmqSettings) -> None:
        self._groups = [DledgerWatch(group_beneath(settings, group)) for group in broker_groups(settings)]

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        for group in self._groups:
            group.saw(node, event, fields)

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """A group goes on without its master."""
        names = {"leader": "primary", "spare": "dispensable", "preferred": "preferred"}
        roles: dict[str, tuple[str, ...]] = {}
        for group in self._groups:
            for role, nodes in group.roles().items():
                roles[names[role]] = (*roles.get(names[role], ()), *nodes)
        return roles

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
