"""What is known of the nodes of a release: who owned partitions, as brokers log it.

Nothing is known of what bookies hold while they run, so no check is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from harness.dated_lines import dated_lines
from harness.reporting import Account, Event, Report
from workloads.systems.java import out_of_memory

BY_BROKER = r"INFO OwnedPartition - "
LINES = tuple(
    (event, re.compile(BY_BROKER + line))
    for event, line in (
        ("owner", r"owns (?P<partition>\S+)$"),
        ("no_owner", r"owns (?P<partition>\S+) no more$"),
        ("ledger_listed", r"lists ledger (?P<ledger>\d+) of (?P<partition>\S+) at place (?P<place>\d+)$"),
        ("ledger_lost", r"lost ledger (?P<ledger>\d+) of (?P<partition>\S+): "),
    )
)


class OriginalReporting:
    """`Reporting` of the harness."""

    async def observe(self, host: Any, report: Report) -> None:
        """Brokers log all that they would answer."""

    def events(self, node: str, account: Account) -> Iterable[Event]:
        if account.wall_at_zero_ns is None:
            return
        for wall_ns, line in dated_lines(account.logs, UTC):
            for event, pattern in LINES:
                if found := pattern.search(line):
                    fields = {name: _value(text) for name, text in found.groupdict().items()}
                    yield {"time": wall_ns - account.wall_at_zero_ns, "event": event, **fields}

    def doubts(self, account: Account) -> list[str]:
        return out_of_memory(account)


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
