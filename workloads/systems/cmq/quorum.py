"""Which nodes have to serve by themselves while others are broken, and in what time.

A majority of healthy nodes is enough: a leader that is cut off stops leading within an election time-out, and those
that followed it elect another one. It is not certain where a node that is not one of them reaches any of them: with
terms of its own it may unseat each leader.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.record.steady_spans import SteadySpan
from workloads.systems.cmq.settings import PATIENCE_S, CmqSettings

ELECTS_S, ELECTIONS = 5.0, 5
"""A group has so many of the longest election time-outs until it is led, and so long beside them where links are
long."""


def elects(nodes: Sequence[str], span: SteadySpan) -> bool:
    """Whether a majority of these is healthy in the span, and no other node reaches any of them."""
    healthy = span.healthy.intersection(nodes)
    others = set(nodes) - healthy
    is_apart = all(healthy.isdisjoint(span.reached.get(other, ())) for other in others)
    return 2 * len(healthy) > len(nodes) and is_apart


def serves_within_s(settings: CmqSettings) -> float:
    """After faults began. A client waits in vain for the leader that it knew, and for each node that does nothing when
    it is asked next."""
    return PATIENCE_S * (1 + settings.nodes // 2) + ELECTS_S + ELECTIONS * settings.longest_election_s
