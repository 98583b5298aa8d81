"""Which nodes of RocketMQ have to serve by themselves while others are broken, and in what time.

With controllers, these healthy nodes are enough:
- a majority of the controllers; no other controller reaches any of them, so none of them takes part in elections
- all NameServers and proxies but those that are down: clients go on to ask one that is cut off from brokers alone
- of each group as many brokers that may be elected, and stay such, as have to be in sync. In the whole span one of
  those who are in sync is among them, since only of these it is known that they hold what was acknowledged; and the
  master is one of them, or reaches no controller and no NameServer: a master that is heard is not replaced, though
  no slave hears it
Who is master and who is in sync is known from what brokers and controllers report. In a group of DLedger a majority of
its brokers is enough, if no other one reaches any of them. Without either nobody takes the
place of a master, so each has to be healthy, with as many slaves as it waits for.

Not judged are static topics, whose queues move meanwhile, and nodes that say too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from harness.record.steady_spans import SteadySpan
from workloads.systems.dledger.quorum import elects
from workloads.systems.rocketmq.settings import (
    ON_BROKERS,
    BrokerGroup,
    RocketmqSettings,
    broker_groups,
    controller_names,
    name_server_names,
    proxy_names,
)

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

SERVES_S, SERVES_SCALED_S = 5.0, 40.0
"""RocketMQ's own periods, added up: 15 s until a slave that is gone has to leave the SyncStateSet, 5 s until somebody
looks. Or 10 s until a broker counts as dead, as much again where controllers have just started, who know of nobody yet
that he is dead, 5 s until somebody looks, 5 s until the new master knows and 5 s until a slave does. The first part is
for elections of controllers, which no longer scale at RocketMQ's own pace, for slow links, and for what is copied."""


def is_part_for_s(settings: RocketmqSettings) -> float:
    """So long a replica that began at the last file of its master may have to wait until the rest has expired."""
    return settings.retention_s if settings.sync_from_last_file else 0.0


def serves_within_s(settings: RocketmqSettings) -> float:
    """After faults began."""
    return SERVES_S + (SERVES_SCALED_S + is_part_for_s(settings)) * settings.time_scale


def must_serve(settings: RocketmqSettings, workload: str, span: SteadySpan, reports: NodeReports) -> bool:
    """Whether the healthy nodes of the span are enough for the workload. `reports`: of all nodes."""
    if settings.static_queues or not _controllers_agree(settings, span):
        return False
    if workload not in ON_BROKERS:
        return True
    asked_by_clients = {*name_server_names(settings), *proxy_names(settings)} - span.down
    if not asked_by_clients or not asked_by_clients <= span.healthy:
        return False
    if settings.has_dledger:
        return all(elects(group.brokers, span) for group in broker_groups(settings))
    if not settings.has_controllers:
        return all(_is_enough(settings, group, span) for group in broker_groups(settings))
    return all(_is_led(settings, group, span, reports) for group in broker_groups(settings))


def _controllers_agree(settings: RocketmqSettings, span: SteadySpan) -> bool:
    controllers = controller_names(settings)
    if 2 * len(span.healthy.intersection(controllers)) <= len(controllers):
        return not controllers
    return not any(span.reached.get(controller) for controller in controllers)


def _is_enough(settings: RocketmqSettings, group: BrokerGroup, span: SteadySpan) -> bool:
    """Of configured roles."""
    brokers = span.healthy.intersection(group.brokers)
    return group.brokers[0] in brokers and len(brokers) >= settings.needed_replicas


def _is_led(settings: RocketmqSettings, group: BrokerGroup, span: SteadySpan, reports: NodeReports) -> bool:
    """Whether a healthy broker is master of the group, or has to become it."""
    healthy = span.healthy.intersection(group.lasting)
    if len(healthy) < settings.needed_replicas:
        return False
    changes = _changes(group, span.until_ns, reports)
    elections = [change for change in changes if change.of is _Of.ELECTION]
    certain = [change for change in changes if change.of is _Of.MASTERS_SET]
    if not elections or not certain:
        return False
    deciding = {*controller_names(settings), *name_server_names(settings)}
    unheard = {node for node in group.brokers if deciding.isdisjoint(span.reached.get(node, ()))} - span.healthy
    masters = _throughout(span, elections, elections)
    in_sync = _throughout(span, certain, changes)
    return all(change.members <= healthy | unheard for change in masters) and all(
        not healthy.isdisjoint(change.members) for change in in_sync
    )


class _Of(Enum):
    ELECTION = "who was elected is in sync alone at first"
    MASTERS_SET = "what the last one who was elected says of the set"
    OTHER = "what a master proposed, or one before it says"


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What the SyncStateSet became, or may have become."""

    at_ns: int
    of: _Of
    members: frozenset[str]


def _throughout(span: SteadySpan, certain: Sequence[_Change], changes: Sequence[_Change]) -> Sequence[_Change]:
    """What held in the span, or may have: from the last certain change before it on."""
    since_ns = max((change.at_ns for change in certain if change.at_ns <= span.from_ns), default=0)
    return [change for change in changes if change.at_ns >= since_ns]


def _changes(group: BrokerGroup, until_ns: int, reports: NodeReports) -> list[_Change]:
    """In their order."""
    events = reports.of("identity", "sync_state_set", "alter", "elected")
    reported = [(event["time"], node, event["sequence"], event) for node, of in events.items() for event in of]
    ids: dict[int, str] = {}
    master = ""
    changes = []
    for at_ns, node, _, event in sorted(reported, key=lambda one: one[:3]):
        if at_ns > until_ns:
            break
        if event["event"] == "elected":
            if event["group"] == group.name:
                master = ids.get(event["broker"], "")
                changes.append(_Change(at_ns=at_ns, of=_Of.ELECTION, members=frozenset((master,))))
        elif node not in group.brokers:
            continue
        elif event["event"] == "identity":
            ids[event["broker"]] = node
        elif event["members"]:
            is_masters = event["event"] == "sync_state_set" and node == master
            members = frozenset(ids.get(member, "") for member in event["members"])
            of = _Of.MASTERS_SET if is_masters else _Of.OTHER
            changes.append(_Change(at_ns=at_ns, of=of, members=members))
    return changes
