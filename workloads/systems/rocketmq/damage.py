"""What faults took from each broker's log, and which brokers had to hold what was acknowledged, from the nodes' events.

    b2: written to 8192 at 4.0 s · written to 12288 at 4.2 s · loses power at 4.3 s · recovered to 9000 at 6.0 s

Of what b2 wrote after 4.0 s and up to 4.3 s some is gone there: all from byte 9000 on. Where a broker did not report
how far its log reached after the fault, what it wrote within `unknown_s` before it is taken for gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from harness.record.fault_log import FaultWindow

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

Event = Mapping[str, Any]
LAST_NS = 1 << 62


class Takes(Enum):
    """What a kind of fault takes from a disk."""

    UNSYNCED = "what was not synced"
    SYNCED = "what was synced as well"
    EVERYTHING = "everything"


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One fault took from one broker what it had written in a span of time, ends included."""

    node: str
    fault: FaultWindow
    takes: Takes
    from_ns: int
    until_ns: int
    over_ns: int
    """When the fault was over, and the broker had started again as far as that is known."""


@dataclass(frozen=True, kw_only=True)
class Holders:
    """In a span of time, until just before its end: the brokers that had to hold what was acknowledged."""

    nodes: frozenset[str]
    from_ns: int
    until_ns: int


def damages(
    struck: Iterable[FaultWindow],
    kinds: Mapping[str, Takes],
    at_last: Sequence[str],
    brokers: Sequence[str],
    group: Sequence[str],
    reports: NodeReports,
    *,
    unknown_s: float,
) -> Iterator[Damage]:
    """What the faults of these kinds took from `brokers`, whose logs are those of their `group`; in their order, those
    `at_last` with each start that followed."""
    destroying = [(fault, kind) for fault in struck for kind in fault.kinds if kind in kinds]
    if not destroying:
        return
    events = logs_of(group, reports)
    for fault, kind in destroying:
        for node in fault.nodes_of(kind):
            if node not in brokers:
                continue
            starts = [
                (event["time"], event["end"])
                for event in events.get(node, ())
                if event["event"] == "recovered" and event["time"] >= fault.start_ns and event["end"] is not None
            ]
            for again_ns, end in (starts if kind in at_last else starts[:1]) or [(fault.stop_ns, None)]:
                until_ns = again_ns if kind in at_last else fault.start_ns
                from_ns = fault.start_ns - round(unknown_s * 1e9)
                if kinds[kind] is Takes.EVERYTHING:
                    from_ns = 0
                elif end is not None:
                    from_ns = _passed_ns(end, node, until_ns, events)
                yield Damage(
                    node=node,
                    fault=fault,
                    takes=kinds[kind],
                    from_ns=max(from_ns, 0),
                    until_ns=until_ns,
                    over_ns=max(fault.stop_ns, again_ns),
                )


def elected_meanwhile(damage: Damage, group: str, reports: NodeReports) -> bool:
    """Whether the broker was elected between the fault and its own start after it: it counts as living for a while, and
    from its election on it alone is in the SyncStateSet, so that nobody who has what it lost may become master."""
    events = reports.of("identity", "elected")
    ids = {event["broker"] for event in events.get(damage.node, ()) if event["event"] == "identity"}
    return any(
        event["broker"] in ids and damage.fault.start_ns <= event["time"] <= damage.over_ns
        for of in events.values()
        for event in of
        if event["event"] == "elected" and event["group"] == group
    )


def whole_again_ns(node: str, damaged_until_ns: int, brokers: Sequence[str], reports: NodeReports) -> int:
    """When a damaged broker had left the SyncStateSet and was let in again, for who is let in holds all; `LAST_NS` if
    that is not known."""
    has_left = False
    for span in holders(brokers, reports):
        if span.until_ns <= damaged_until_ns:
            continue
        if has_left and node in span.nodes:
            return span.from_ns
        has_left = has_left or node not in span.nodes
    return LAST_NS


def led_from_ns(node: str, damaged_ns: int, reports: NodeReports, *, ended: bool) -> int | None:
    """From when on a broker was master that had been damaged; None: never. `ended`: the damage ended its process."""
    led = [(event["time"], event["role"] == "master") for event in reports.of("role").get(node, ())]
    if not ended and next((was for at_ns, was in reversed(led) if at_ns <= damaged_ns), False):
        return damaged_ns
    return next((at_ns for at_ns, was in led if was and at_ns > damaged_ns), None)


def logs_of(group: Sequence[str], reports: NodeReports) -> Mapping[str, Sequence[Event]]:
    """What became of the logs of these brokers."""
    events = reports.of("written", "recovered", "truncated")
    return {node: of for node, of in events.items() if node in group}


def end_at(node: str, at_ns: int, events: Mapping[str, Sequence[Event]]) -> int:
    """Where a broker's log ended then, at least."""
    pieces = _pieces(events.get(node, ()), at_ns)
    return pieces[-1][0] if pieces else 0


def reached_ns(offset: int, node: str, at_ns: int, events: Mapping[str, Sequence[Event]]) -> int:
    """When a broker's log, as it was at `at_ns`, had reached this offset for certain; `at_ns` if that is not known."""
    return min((time for end, time in _pieces(events.get(node, ()), at_ns) if end >= offset), default=at_ns)


def left_ns(offset: int, node: str, at_ns: int, events: Mapping[str, Sequence[Event]]) -> int:
    """The last time at which a broker's log, as it was at `at_ns`, had certainly not passed this offset."""
    return max((time for end, time in _pieces(events.get(node, ()), at_ns) if end <= offset), default=0)


def _passed_ns(offset: int, node: str, at_ns: int, events: Mapping[str, Sequence[Event]]) -> int:
    """The last time before the node's log, or any that was longer, passed this offset, as they were at `at_ns`."""
    logs = {name: _pieces(of, at_ns) for name, of in events.items()}
    reached = [pieces for name, pieces in logs.items() if name == node or (pieces and pieces[-1][0] > offset)]
    return min(max((time for end, time in pieces if end <= offset), default=0) for pieces in reached)


def _pieces(events: Sequence[Event], at_ns: int) -> list[tuple[int, int]]:
    """(end in bytes, time at which it was written) of each piece of a log as it was at that time."""
    pieces: list[tuple[int, int]] = []
    for event in events:
        if event["time"] >= at_ns:
            break
        kept = event["start"] if event["event"] == "written" else event["end"]
        if kept is None or event["end"] is None:
            continue
        while pieces and pieces[-1][0] > kept:
            pieces.pop()
        if event["event"] == "written":
            pieces.append((event["end"], event["time"]))
    return pieces


def holders(brokers: Sequence[str], reports: NodeReports) -> tuple[Holders, ...]:
    """The SyncStateSet over time, as masters reported it; all of `brokers` where nobody did."""
    reported = reports.of("identity", "sync_state_set")
    events = {node: of for node, of in reported.items() if node in brokers}
    ids = {e["broker"]: node for node, of in events.items() for e in of if e["event"] == "identity"}
    changes = sorted(
        (e["time"], frozenset(ids[member] for member in e["members"] if member in ids))
        for of in events.values()
        for e in of
        if e["event"] == "sync_state_set" and e["members"]
    )
    spans = [(0, frozenset(brokers)), *((at, nodes) for at, nodes in changes if nodes), (LAST_NS, frozenset())]
    return tuple(
        Holders(nodes=nodes, from_ns=from_ns, until_ns=until_ns)
        for (from_ns, nodes), (until_ns, _) in pairwise(spans)
        if until_ns > from_ns
    )
