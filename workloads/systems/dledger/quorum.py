"""Which members of a group have to serve by themselves while others are broken, and in what time.

A majority of healthy members is enough, wherever the leader was: one that is cut off stops leading once it has heard no
majority for three heartbeats, and members that followed it stand as candidates after as long. It is not certain where a
member that is not one of them reaches any of them: with votes and terms of its own it may unseat each leader.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.record.steady_spans import SteadySpan
from workloads.systems.dledger.client import PATIENCE_S
from workloads.systems.dledger.settings import DledgerSettings

ELECTS_SCALED_S = 20.0
"""DLedger's own periods, added up: 6 s until no heartbeat is heard any more, 6 s more where a candidate hears that the
others still have a leader, and some rounds of votes, a second or two each. Healthy storms took at most a quarter of the
bound."""


def elects(members: Sequence[str], span: SteadySpan) -> bool:
    """Whether a majority of these is healthy in the span, and no other member reaches any of them."""
    healthy = span.healthy.intersection(members)
    others = set(members) - healthy
    is_apart = all(healthy.isdisjoint(span.reached.get(other, ())) for other in others)
    return 2 * len(healthy) > len(members) and is_apart


def serves_within_s(settings: DledgerSettings) -> float:
    """After faults began. A client waits in vain for the leader that it knew, and for each member that does nothing
    when it asks who leads now."""
    asked_in_vain = 1 + settings.members // 2
    return PATIENCE_S * asked_in_vain + ELECTS_SCALED_S * settings.time_scale
