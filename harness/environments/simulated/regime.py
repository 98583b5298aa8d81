"""The regime of a run: its kind of network and machines, drawn from the seed before anything else (swarm testing).

One fixed latency hides whole classes of bugs, so each seed has its own: from a rack to the
other side of the globe, from flash to a tired spinning disk, with or without each kind of rarity. The regime
is printed with every failure.
"""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass
from typing import Any

from harness.record.scenario import CALM, DRAWN, NEAR
from harness.seed import Seed

LONGEST_SPIKE_MS = 1000.0
"""This is about the shortest election timeout. With longer ones on a slow link bytes stand still half of the time,
nobody leads for long, and a run proves nothing; what lasts longer is for the nemesis to do."""


LONGEST_NEAR_MS = 3.0
"""Where hosts are near each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """Everything about an environment that is not a fault."""

    latency_ms: float
    """Typical one-way latency between two hosts."""
    link_spread: float
    """Each link's own base latency lies within latency_ms / link_spread … latency_ms * link_spread."""
    jitter: float
    """Mean of the exponential part of the latency, as a share of the link's base."""
    spike_probability: float
    """Chance a chunk that it takes spike_factor times as long, within reason."""
    spike_factor: float
    loss_probability: float
    """Chance a transmission that it is lost; TCP repeats it after a back-off."""
    split_probability: float
    """Chance a write that it arrives in two pieces."""
    retransmission_ms: float
    """First retransmission time-out; it doubles each time."""
    retransmission_limit_s: float
    """No single back-off is longer than this."""
    stall_limit_s: float
    """A connection whose bytes are not acknowledged for so long is reset by its sender."""
    fsync_ms: float
    fsync_slow_probability: float
    fsync_slow_factor: float
    quartz_ppm: float
    """Each host's monotonic clock is off by up to so many millionths."""
    timer_jitter_ms: float
    """A sleeper wakes up to so much late."""
    unusual_share: float
    """Which share of the `unusual` points is live at all in this run."""
    unusual_probability: float
    """How often a live one says yes."""

    @classmethod
    def calm(cls) -> Regime:
        """A quiet rack: 1 ms, no loss, nothing unusual. For tests that are about something else."""
        return cls(
            latency_ms=1.0,
            link_spread=1.0,
            jitter=0.1,
            spike_probability=0.0,
            spike_factor=1.0,
            loss_probability=0.0,
            split_probability=0.0,
            retransmission_ms=200.0,
            retransmission_limit_s=10.0,
            stall_limit_s=30.0,
            fsync_ms=1.0,
            fsync_slow_probability=0.0,
            fsync_slow_factor=1.0,
            quartz_ppm=0.0,
            timer_jitter_ms=0.0,
            unusual_share=0.0,
            unusual_probability=0.0,
        )

    @classmethod
    def drawn(cls, seed: Seed, world: str = DRAWN) -> Regime:
        """The regime of this root seed, in a world that is drawn or near."""
        draw = seed.child("regime").stream()

        def rarely(probability: float, low: float, high: float) -> float:
            """Log-uniform in low … high, or 0 when this kind of rarity is off; draws the same number either way."""
            on = draw.random() < probability
            value = _log_uniform(draw, low, high)
            return value if on else 0.0

        near = draw.random() < 0.7
        latency_ms = _log_uniform(draw, 0.1, 20.0) if near else _log_uniform(draw, 20.0, 150.0)
        if world == NEAR:
            latency_ms = _log_uniform(draw, 0.1, LONGEST_NEAR_MS)
        return cls(
            latency_ms=latency_ms,
            link_spread=_log_uniform(draw, 1.0, 2.0),
            jitter=_log_uniform(draw, 0.02, 0.7),
            spike_probability=rarely(0.4, 0.0001, 0.02),
            spike_factor=min(_log_uniform(draw, 3.0, 50.0), LONGEST_SPIKE_MS / latency_ms),
            loss_probability=rarely(0.3, 0.0001, 0.02),
            split_probability=rarely(0.3, 0.001, 0.1),
            retransmission_ms=_log_uniform(draw, 200.0, 1000.0),
            retransmission_limit_s=_log_uniform(draw, 1.0, 10.0),
            stall_limit_s=_log_uniform(draw, 15.0, 60.0),
            fsync_ms=_log_uniform(draw, 0.1, 20.0),
            fsync_slow_probability=rarely(0.4, 0.0005, 0.02),
            fsync_slow_factor=_log_uniform(draw, 5.0, 100.0),
            quartz_ppm=_log_uniform(draw, 1.0, 200.0),
            timer_jitter_ms=_log_uniform(draw, 0.01, 5.0),
            unusual_share=rarely(0.6, 0.1, 1.0),
            unusual_probability=_log_uniform(draw, 0.001, 0.1),
        )

    @classmethod
    def of_world(cls, world: str, seed: Seed) -> Regime:
        """That of a scenario's `world`."""
        return cls.calm() if world == CALM else cls.drawn(seed, world)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _log_uniform(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))
