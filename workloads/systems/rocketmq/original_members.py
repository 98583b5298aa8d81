"""What is known of RocketMQ's own brokers whose log a group of DLedger replicates: what they log of their parts.

DLedgerLeaderElector logs which part a member plays in which term, DLedgerRoleChangeHandler which broker is master or
slave once it acts so. Nothing is known of their logs while they run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from harness.dated_lines import dated_lines
from harness.reporting import Account, Event, Report
from workloads.systems.dledger.elector_lines import FOLLOWS, LEADS, STANDS
from workloads.systems.java import out_of_memory
from workloads.systems.rocketmq.original_events import ZONE
from workloads.systems.rocketmq.settings import RocketmqSettings, broker_groups

PARTS = tuple(
    (event, re.compile(line)) for event, line in (("leader", LEADS), ("follower", FOLLOWS), ("candidate", STANDS))
)
ACTS = re.compile(r"Finish handling broker role change succ=true term=(?P<term>\d+) role=(?P<part>LEADER|FOLLOWER)\b")
ROLES = {"LEADER": "master", "FOLLOWER": "slave"}


class OriginalMembers:
    """`Reporting` of the harness."""

    def __init__(self, settings: RocketmqSettings) -> None:
        self._groups = {broker: group.name for group in broker_groups(settings) for broker in group.brokers}

    async def observe(self, host: Any, report: Report) -> None:
        """Brokers log all that they would answer."""

    def events(self, node: str, account: Account) -> Iterable[Event]:
        if node not in self._groups or account.wall_at_zero_ns is None:
            return
        for wall_ns, line in dated_lines(account.logs, ZONE):
            for event in _events(line, self._groups[node]):
                yield {"time": wall_ns - account.wall_at_zero_ns, **event}

    def doubts(self, account: Account) -> list[str]:
        return out_of_memory(account)


def _events(line: str, group: str) -> Iterator[Event]:
    for event, pattern in PARTS:
        if found := pattern.search(line):
            yield {"event": event, "group": group, "term": int(found["term"])}
    if found := ACTS.search(line):
        role, term = ROLES[found["part"]], int(found["term"])
        yield {
            "event": "role",
            "group": group,
            "role": role,
            "master_epoch": term,
            "broker_id": None,
            "start_offset": None,
        }
