"""Spans of a storm in which the faults stay the same, and the nodes that are healthy and connected meanwhile.

    b3 is killed at 4 s, c1 is cut off from c2 at 9 s, both are healed at 12 s:
    0 to 4 s  all · 4 to 9 s  all but b3 · 9 to 12 s  all but b3 and c1, and all but b3 and c2 · 12 s on  all

It takes the fault log and knows no system. Where a fault is active of which a log cannot say who is healthy meanwhile
(links that lose or delay packets, disks that are slow, clocks that are wrong), there is no such span; after one that
leaves something behind (damage to a disk, members that left), there is none any more. A node is not healthy while its
process is down or paused, nor is of two nodes between which a link is cut, in either direction, more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.record.fault_log import FaultWindow

Link = tuple[str, str]

DOWN = frozenset(("kill", "power", "pause"))
"""Kinds of faults by which a node does nothing as long as they last."""
CUT = frozenset(("partition", "held-links"))
"""Kinds by which nothing comes through a link as long as they last."""
AT_ONCE = frozenset(("reset", "upgrade"))
"""Kinds that are over as soon as they have struck."""
UNSURE = frozenset(
    (
        "slow-links",
        "lossy-links",
        "narrow-links",
        "flapping-links",
        "duplicating-links",
        "corrupting-links",
        "reordering-links",
        "slow-disk",
        "slow-nodes",
        "slow-process",
        "pause-process",
        "restart-loop",
        "rolling-restart",
        "clock",
        "strobe",
        "administer",
    )
)
"""Kinds that make it unsure who is healthy, as long as they last; of all others it is unsure from then on."""
MOST_CHOICES = 64
"""So many sets of healthy nodes are looked at in one span."""
FOR_EVER = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class SteadySpan:
    """From the last change of what is broken until the next one."""

    from_ns: int
    until_ns: int
    healthy: frozenset[str]
    """Nodes that no fault holds, each of which reaches each other one; no further node could be added."""
    down: frozenset[str]
    """Nodes that do nothing: nobody is answered by them, clients neither."""
    reached: Mapping[str, frozenset[str]]
    """Node that is neither -> the healthy ones that what it sends can reach."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Hold:
    """What one fault does while it lasts."""

    from_ns: int
    until_ns: int
    down: frozenset[str] = frozenset()
    cut: frozenset[Link] = frozenset()
    is_unsure: bool = False


@dataclass(frozen=True, slots=True)
class _Broken:
    """All that is broken at one time; equal where nobody but the nodes that are down can tell a difference."""

    down: frozenset[str]
    cut: frozenset[Link]


def steady_spans(
    struck: Sequence[FaultWindow], nodes: Sequence[str], from_ns: int, until_ns: int, at_least_ns: int
) -> Iterator[SteadySpan]:
    """Those that last at least so long, within the storm from `from_ns` until `until_ns`, in order.

    `struck`: the faults that had an effect. A span with several sets of healthy nodes comes once with each.
    """
    holds = [_mark_unsure(hold, nodes) for window in struck for hold in _holds(window)]
    bounds = {from_ns, until_ns}
    bounds |= {at for hold in holds for at in (hold.from_ns, hold.until_ns) if from_ns < at < until_ns}
    momentary = {hold.from_ns for hold in holds if hold.from_ns == hold.until_ns}
    for start_ns, end_ns, broken in _merged(holds, sorted(bounds), momentary, nodes):
        if end_ns - start_ns >= at_least_ns:
            for healthy in _healthy(broken, nodes):
                yield _span(start_ns, end_ns, broken, healthy, nodes)


def _merged(
    holds: Sequence[_Hold], bounds: Sequence[int], momentary: Iterable[int], nodes: Sequence[str]
) -> Iterator[tuple[int, int, _Broken]]:
    """Neighbours in which the same is broken are one, unless something struck between them that was over at once."""
    momentary = set(momentary)
    begun: tuple[int, _Broken] | None = None
    for start_ns in bounds[:-1]:
        broken = _broken([hold for hold in holds if hold.from_ns <= start_ns < hold.until_ns], nodes)
        if begun is not None and (start_ns in momentary or begun[1] != broken):
            yield begun[0], start_ns, begun[1]
            begun = None
        if begun is None and broken is not None:
            begun = start_ns, broken
    if begun is not None:
        yield begun[0], bounds[-1], begun[1]


def _broken(active: Iterable[_Hold], nodes: Sequence[str]) -> _Broken | None:
    """None where it is not known."""
    active = tuple(active)
    if any(hold.is_unsure for hold in active):
        return None
    down = frozenset(node for hold in active for node in hold.down)
    cut = frozenset(link for hold in active for link in hold.cut if down.isdisjoint(link))
    return _Broken(down=down.intersection(nodes), cut=cut)


def _healthy(broken: _Broken, nodes: Sequence[str]) -> Iterator[frozenset[str]]:
    """Each largest set of nodes that are up and reach each other, both ways."""
    up = [node for node in nodes if node not in broken.down]
    apart = {node: {a if b == node else b for a, b in broken.cut if node in (a, b)} for node in up}
    found: list[frozenset[str]] = [frozenset()]
    for node in up:
        # Nodes that cannot be with this one make way for it in a set of their own.
        beside = [chosen if apart[node].isdisjoint(chosen) else chosen - apart[node] for chosen in found]
        kept = [chosen for chosen in found if not apart[node].isdisjoint(chosen)]
        found = _largest([*kept, *(chosen | {node} for chosen in beside)])
        if len(found) > MOST_CHOICES:
            return
    yield from found


def _largest(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Those that are part of no other, each once."""
    distinct = list(dict.fromkeys(sets))
    return [one for one in distinct if not any(one < other for other in distinct)]


def _span(start_ns: int, end_ns: int, broken: _Broken, healthy: frozenset[str], nodes: Sequence[str]) -> SteadySpan:
    others = [node for node in nodes if node not in healthy and node not in broken.down]
    reached = {node: frozenset(one for one in healthy if (node, one) not in broken.cut) for node in others}
    return SteadySpan(from_ns=start_ns, until_ns=end_ns, healthy=healthy, down=broken.down, reached=reached)


def _mark_unsure(hold: _Hold, nodes: Sequence[str]) -> _Hold:
    """What clients that are struck themselves are owed is not known."""
    named = hold.down.union(*hold.cut)
    return hold if named.issubset(nodes) else replace(hold, down=frozenset(), cut=frozenset(), is_unsure=True)


def _holds(window: FaultWindow) -> Iterator[_Hold]:
    until_ns = window.stop_ns if window.is_stopped else FOR_EVER
    for part in window.parts():
        yield _hold(part, window.start_ns, until_ns)


def _hold(part: Mapping[str, Any], from_ns: int, until_ns: int) -> _Hold:
    kind = part.get("kind")
    lasting = _Hold(from_ns=from_ns, until_ns=until_ns)
    if kind in AT_ONCE or (kind in DOWN and part.get("restart")):
        return replace(lasting, until_ns=from_ns)
    if kind in DOWN and part.get("nodes"):
        return replace(lasting, down=frozenset(str(node) for node in part["nodes"]))
    if kind in CUT and part.get("links"):
        return replace(lasting, cut=frozenset((str(source), str(target)) for source, target in part["links"]))
    return replace(lasting, is_unsure=True, until_ns=until_ns if kind in UNSURE else FOR_EVER)
