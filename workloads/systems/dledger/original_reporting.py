"""What is known of members of the public library: which part they play in which term, as they log it.

Nothing is known of their logs while they run, so checks of what members hold are made of ours alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from harness.dated_lines import dated_lines
from harness.record.run_directory import NODE_LOG
from harness.reporting import Account, Event, Report
from workloads.systems.dledger.elector_lines import FOLLOWS, LEADS, STANDS
from workloads.systems.dledger.nodes import GROUP
from workloads.systems.java import out_of_memory

LINES = tuple(
    (event, re.compile(line)) for event, line in (("leader", LEADS), ("follower", FOLLOWS), ("candidate", STANDS))
)


class OriginalReporting:
    """`Reporting` of the harness."""

    def __init__(self, members: tuple[str, ...]) -> None:
        self._members = members

    async def observe(self, host: Any, report: Report) -> None:
        """Members log all that they would answer."""

    def events(self, node: str, account: Account) -> Iterable[Event]:
        if node not in self._members or account.wall_at_zero_ns is None:
            return
        for wall_ns, line in dated_lines({NODE_LOG: account.console}, UTC):
            for event, pattern in LINES:
                if found := pattern.search(line):
                    time = wall_ns - account.wall_at_zero_ns
                    yield {"time": time, "event": event, "group": GROUP, "term": int(found["term"])}

    def doubts(self, account: Account) -> list[str]:
        return out_of_memory(account)
