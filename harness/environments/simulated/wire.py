"""A wire: one direction between two hosts, with its latency, its loss, and whether it is cut."""

from __future__ import annotations

from math import log
from typing import Final

from harness.environments.simulated.loop import NANOSECONDS
from harness.environments.simulated.process import Machine
from harness.environments.simulated.regime import Regime
from harness.seed import Seed

LOOPBACK_NS: Final = 20_000
MAX_LOSSES: Final = 12
MAX_SPIKE_NS: Final = 3 * NANOSECONDS


class Wire:
    """One direction between two hosts."""

    __slots__ = (
        "_random",
        "base_ns",
        "cut",
        "extra_ns",
        "jitter_ns",
        "loss_probability",
        "retransmission_limit_ns",
        "retransmission_ns",
        "source",
        "spike_factor",
        "spike_probability",
        "split_probability",
        "target",
    )

    def __init__(self, source: Machine, target: Machine, seed: Seed, regime: Regime) -> None:
        draw = seed.child("link", source.name, target.name).stream()
        self._random = draw.random
        self.source = source
        self.target = target
        self.cut = False
        self.extra_ns = 0
        self.retransmission_ns = int(regime.retransmission_ms * 1e6)
        self.retransmission_limit_ns = int(regime.retransmission_limit_s * NANOSECONDS)
        spread = regime.link_spread ** draw.uniform(-1.0, 1.0)
        self.base_ns = max(1, int(regime.latency_ms * spread * 1e6))
        self.jitter_ns = self.base_ns * regime.jitter
        self.spike_probability = regime.spike_probability
        self.spike_factor = regime.spike_factor
        self.loss_probability = regime.loss_probability
        self.split_probability = regime.split_probability
        if source is target:
            self.base_ns = LOOPBACK_NS
            self.jitter_ns = LOOPBACK_NS * 0.1
            self.spike_probability = self.loss_probability = self.split_probability = 0.0

    def latency_ns(self) -> int:
        """How long the next packet takes, repetitions after loss included."""
        random = self._random
        latency_ns = self.base_ns + self.extra_ns - int(self.jitter_ns * log(1.0 - random()))
        if self.spike_probability and random() < self.spike_probability:
            latency_ns = min(int(latency_ns * self.spike_factor), latency_ns + MAX_SPIKE_NS)
        if self.loss_probability:
            losses = 0
            while losses < MAX_LOSSES and random() < self.loss_probability:
                latency_ns += min(self.retransmission_ns << losses, self.retransmission_limit_ns)
                losses += 1
        return latency_ns

    def splits(self, length: int) -> int:
        """After how many bytes a write is torn into two packets; 0 for not at all."""
        if length > 1 and self.split_probability and self._random() < self.split_probability:
            return 1 + int(self._random() * (length - 1))
        return 0

    def next_retransmission_ns(self, since_ns: int, now_ns: int) -> int:
        """The first repetition after `now_ns` of what was first sent at `since_ns`."""
        when_ns = since_ns
        back_off_ns = self.retransmission_ns
        while when_ns <= now_ns:
            when_ns += back_off_ns
            back_off_ns = min(back_off_ns * 2, self.retransmission_limit_ns)
        return when_ns
