"""A wire: one direction between two hosts, with its latency, its loss, whether it is cut, and what else is wrong."""

from __future__ import annotations

from math import log
from typing import Final

from harness.environments.impairment import LinkImpairment
from harness.environments.simulated.impaired_wire import Carrier, Impaired
from harness.environments.simulated.loop import NANOSECONDS, VirtualTimeLoop
from harness.environments.simulated.process import Machine
from harness.environments.simulated.regime import Regime
from harness.seed import Seed

LOOPBACK_NS: Final = 20_000
MAX_LOSSES: Final = 12
MAX_SPIKE_NS: Final = 3 * NANOSECONDS


class Wire:
    """One direction between two hosts."""

    __slots__ = (
        "_downs",
        "_impaired",
        "_impaired_random",
        "_is_severed",
        "_loop",
        "_random",
        "base_ns",
        "cut",
        "holds",
        "jitter_ns",
        "keeps",
        "loss_probability",
        "retransmission_limit_ns",
        "retransmission_ns",
        "source",
        "spike_factor",
        "spike_probability",
        "split_probability",
        "target",
    )

    def __init__(self, loop: VirtualTimeLoop, source: Machine, target: Machine, seed: Seed, regime: Regime) -> None:
        draw = seed.child("link", source.name, target.name).stream()
        self._loop = loop
        self._random = draw.random
        self._impaired_random = seed.child("impaired link", source.name, target.name).stream().random
        self._impaired: list[Impaired] = []
        self._is_severed = False
        self._downs = 0
        """How many flappings have it down now."""
        self.source = source
        self.target = target
        self.cut = False
        """Whether nothing gets through now, for whatever reason."""
        self.holds = False
        """Whether what does not get through is kept by the network, not lost."""
        self.keeps = False
        """Whether packets can be on their way for so long that they outlive their sender."""
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

    def latency_ns(self, length: int = 0, carrier: Carrier | None = None) -> int:
        """How long the next packet of so many bytes takes, repetitions after loss included.

        Of a carrier, where there is one, who hears of it if what is on its way gets faster.
        """
        random = self._random
        latency_ns = self.base_ns - int(self.jitter_ns * log(1.0 - random()))
        if self.spike_probability and random() < self.spike_probability:
            latency_ns = min(int(latency_ns * self.spike_factor), latency_ns + MAX_SPIKE_NS)
        if self.loss_probability:
            losses = 0
            while losses < MAX_LOSSES and random() < self.loss_probability:
                latency_ns += min(self.retransmission_ns << losses, self.retransmission_limit_ns)
                losses += 1
        if self._impaired:
            for impaired in self._impaired:
                latency_ns += impaired.delay_ns(self, length, carrier)
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

    # What is wrong with it ------------------------------------------------------------------------------------

    @property
    def is_severed(self) -> bool:
        """Whether it is cut for good, not by flapping or held."""
        return self._is_severed

    def sever(self) -> bool:
        """Returns whether it was not severed."""
        was_whole = not self._is_severed
        self._is_severed = True
        self._changed()
        return was_whole

    def mend(self) -> bool:
        """Returns whether it was severed."""
        was_severed = self._is_severed
        self._is_severed = False
        self._changed()
        return was_severed

    def go_down(self) -> None:
        self._downs += 1
        self._changed()

    def come_up(self) -> None:
        self._downs -= 1
        self._changed()

    def impair(self, impairment: LinkImpairment) -> None:
        self._impaired.append(Impaired(impairment, self._loop, self._impaired_random))
        self._changed()

    def relieve(self, impairment: LinkImpairment) -> Impaired | None:
        """Take one such impairment away; returns what came of it, None if there is none."""
        for impaired in self._impaired:
            if impaired.impairment == impairment:
                self._impaired.remove(impaired)
                self._changed()
                impaired.end()
                return impaired
        return None

    def _changed(self) -> None:
        is_held = any(impaired.holds for impaired in self._impaired)
        is_open = not self._is_severed and self._downs == 0
        self.cut = is_held or not is_open
        self.holds = is_held and is_open
        self.keeps = self.holds or any(impaired.delays for impaired in self._impaired)
