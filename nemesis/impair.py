"""Shapes that impair links: which ones, and how badly, which is drawn when they strike.

A verb of `LINK_VERBS` draws over orders of magnitude: a delay of 5 ms is a far rack, one of 3 s outlasts an election.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.environments.impairment import FlappingLink, HeldLink, LinkImpairment, LossyLink, NarrowLink, SlowLink
from nemesis.cluster import Cluster
from nemesis.fault import Fault, ImpairedLinks
from nemesis.links import Links


@dataclass(frozen=True, slots=True)
class ImpairLinks:
    """A verb of `LINK_VERBS` and the links that it strikes."""

    verb: str
    links: Links

    @property
    def kind(self) -> str:
        return LINK_VERBS[self.verb].kind

    def strike(self, cluster: Cluster, draw: random.Random) -> Fault | None:
        links = self.links.pick(cluster, draw)
        return ImpairedLinks(links, LINK_VERBS[self.verb].drawn(draw)) if links else None

    def __str__(self) -> str:
        return f"{self.verb} {self.links}"


@dataclass(frozen=True, slots=True)
class LinkVerb:
    """What a verb makes of links: the kind of the fault, and how badly it strikes."""

    kind: str
    drawn: Callable[[random.Random], LinkImpairment]


def _slow(draw: random.Random) -> SlowLink:
    delay_ms = log_uniform(draw, 5, 3000)
    return SlowLink(delay_ms=delay_ms, jitter_ms=round(delay_ms * draw.random(), 1))


def _flapping(draw: random.Random) -> FlappingLink:
    return FlappingLink(down_ms=log_uniform(draw, 20, 3000), up_ms=log_uniform(draw, 20, 3000))


LINK_VERBS: Mapping[str, LinkVerb] = {
    "slow": LinkVerb(SlowLink.kind, _slow),
    "lossy": LinkVerb(LossyLink.kind, lambda draw: LossyLink(share=log_uniform(draw, 0.02, 0.9))),
    "narrow": LinkVerb(NarrowLink.kind, lambda draw: NarrowLink(bytes_per_s=int(log_uniform(draw, 2e3, 2e6)))),
    "flapping": LinkVerb(FlappingLink.kind, _flapping),
    "hold": LinkVerb(HeldLink.kind, lambda draw: HeldLink()),
}


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    """To three digits, so that it is read with ease."""
    return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.3g}")
