"""Lines of logs that begin with a date and a time, in the order in which they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

STAMPED = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,](\d{3}))? (?:\[[^\]]*\] )?[A-Z]+ ")
EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


def dated_lines(logs: Mapping[str, Sequence[str]], zone: tzinfo) -> Iterator[tuple[int, str]]:
    """(ns since 1970, the line) of all files of a node, by time; those of one file keep their order, whatever a clock
    did meanwhile. Lines without a time are passed over.

    `zone`: that of the dates.
    """
    stamped: list[tuple[int, str, int, str]] = []
    for path in sorted(logs):
        latest = 0
        for number, line in enumerate(logs[path]):
            stamp = STAMPED.match(line)
            if stamp is not None:
                latest = max(latest, _wall_ns(stamp, zone))
                stamped.append((latest, path, number, line))
    return ((wall_ns, line) for wall_ns, _, _, line in sorted(stamped))


def _wall_ns(stamp: re.Match[str], zone: tzinfo) -> int:
    """Without a fraction a second is logged as a whole: what happened in it counts as in its middle."""
    moment = datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=zone)
    milliseconds = 500 if stamp[2] is None else int(stamp[2])
    return int((moment - EPOCH_START).total_seconds()) * 10**9 + milliseconds * 10**6
