"""What faults took from each broker's log, and which brokers had to hold what was acknowledged, from the nodes' events.

    b2: written to 8192 at 4.0 s · written to 12288 at 4.2 s · loses power at 4.3 s · recovered to 9000 at 6.0 s

Of what b2 wrote after 4.0 s and up to 4.3 s some is gone there: all from byte 9000 on. Where a broker did not report
how far its log reached after the fault, what it wrote within `unknown_s` before it is taken for gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.loss_tables import FAULTS, LAST_NS, TAKING, FaultEffects, Takes, seconds

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

Event = Mapping[str, Any]


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

    def __str__(self) -> str:
        if "power" in self.fault.kinds:
            return f"{self.node} lost power at {seconds(self.fault.start_ns)}"
        return f"{self.node} lost {self.takes.value} at {seconds(self.fault.start_ns)} ({self.fault.name})"


@dataclass(frozen=True, kw_only=True)
class Holders:
    """In a span of time, until just before its end: the brokers that had to hold what was acknowledged."""

    nodes: frozenset[str]
    from_ns: int
    until_ns: int


def damages(
    struck: Iterable[FaultWindow],
    brokers: Sequence[str],
    group: Sequence[str],
    reports: NodeReports,
    *,
    unknown_ns: int,
) -> tuple[Damage, ...]:
    """What faults took from `brokers`, whose logs are those of their `group`: in the order of the faults; what shows at
    restarts, with each start that followed."""
    taking = [
        (fault, kind, node)
        for fault in struck
        for kind in fault.kinds
        if kind in TAKING
        for node in fault.nodes_of(kind)
        if node in brokers
    ]
    events = logs_of(group, reports) if taking else {}
    return tuple(
        damage
        for fault, kind, node in taking
        for damage in _damages_of(fault, FAULTS[kind], node, events, unknown_ns=unknown_ns)
    )


def _damages_of(
    fault: FaultWindow, effects: FaultEffects, node: str, events: Mapping[str, Sequence[Event]], *, unknown_ns: int
) -> Iterator[Damage]:
    assert effects.takes is not None
    starts = [
        (event["time"], event["end"])
        for event in events.get(node, ())
        if event["event"] == "recovered" and event["time"] >= fault.start_ns and event["end"] is not None
    ]
    for again_ns, end in (starts if effects.at_restart else starts[:1]) or [(fault.stop_ns, None)]:
        until_ns = again_ns if effects.at_restart else fault.start_ns
        from_ns = max(fault.start_ns - unknown_ns, 0)
        if effects.takes is Takes.EVERYTHING:
            from_ns = 0
        elif end is not None:
            from_ns = _passed_ns(end, node, until_ns, events)
        yield Damage(
            node=node,
            fault=fault,
            takes=effects.takes,
            from_ns=from_ns,
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
