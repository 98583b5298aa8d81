"""Impairments as values: what can be wrong with a link for a while, without cutting it for good.

Each has the `kind` of its fault. Several on one link add up, equal ones as well, and each is taken away by itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowLink:
    """Every packet takes longer: by the delay, and by up to the jitter more, drawn for each."""

    delay_ms: float
    jitter_ms: float
    kind = "slow-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyLink:
    """So large a share of packets is lost, repetitions as well; within a connection that is delay."""

    share: float
    kind = "lossy-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowLink:
    """No more than so many bytes a second, of all connections together; the others wait."""

    bytes_per_s: int
    kind = "narrow-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlappingLink:
    """Cut and open by turns, beginning with a cut."""

    down_ms: float
    up_ms: float
    kind = "flapping-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLink:
    """Packets are kept in the network and let go at the end, also those whose sender has died meanwhile."""

    kind = "held-links"


LinkImpairment = SlowLink | LossyLink | NarrowLink | FlappingLink | HeldLink
LINK_IMPAIRMENTS: tuple[type[LinkImpairment], ...] = (SlowLink, LossyLink, NarrowLink, FlappingLink, HeldLink)
