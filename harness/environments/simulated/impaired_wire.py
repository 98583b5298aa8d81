"""What impairments of a link do to the packets on a wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from harness.environments.impairment import HeldLink, LinkImpairment, LossyLink, NarrowLink, SlowLink
from harness.environments.simulated.loop import NANOSECONDS, VirtualTimeLoop

HEADER_BYTES: Final = 60
MAX_LOSSES: Final = 12


class Carrier(Protocol):
    """A pipe, as far as a wire knows it."""

    def hurry(self) -> None:
        """What is on its way comes as if it was sent now, unless it comes earlier."""


class Repetition(Protocol):
    """TCP's first time-out before it repeats a packet, which doubles, and the longest one."""

    retransmission_ns: int
    retransmission_limit_ns: int


class Impaired:
    """One impairment of one wire, and how many packets it has struck."""

    __slots__ = ("_carriers", "_free_ns", "_loop", "_random", "delays", "holds", "impairment", "packets")

    def __init__(self, impairment: LinkImpairment, loop: VirtualTimeLoop, random: Callable[[], float]) -> None:
        self.impairment = impairment
        self.holds = isinstance(impairment, HeldLink)
        self.delays = isinstance(impairment, SlowLink | NarrowLink)
        self.packets = 0
        self._loop = loop
        self._random = random
        self._free_ns = 0
        """When all that waits for a narrow link has passed it."""
        self._carriers: dict[Carrier, None] = {}

    def delay_ns(self, wire: Repetition, length: int, carrier: Carrier | None) -> int:
        """By how much longer the next packet of so many bytes takes."""
        impairment = self.impairment
        if isinstance(impairment, SlowLink):
            self.packets += 1
            return int((impairment.delay_ms + impairment.jitter_ms * self._random()) * 1e6)
        if isinstance(impairment, LossyLink):
            return self._repeated_ns(impairment, wire)
        if isinstance(impairment, NarrowLink):
            return self._queued_ns(impairment, length, carrier)
        return 0

    def _repeated_ns(self, lossy: LossyLink, wire: Repetition) -> int:
        delay_ns = losses = 0
        while losses < MAX_LOSSES and self._random() < lossy.share:
            delay_ns += min(wire.retransmission_ns << losses, wire.retransmission_limit_ns)
            losses += 1
        self.packets += losses
        return delay_ns

    def _queued_ns(self, narrow: NarrowLink, length: int, carrier: Carrier | None) -> int:
        if carrier is not None:
            self._carriers[carrier] = None
        now_ns = self._loop.now_ns
        self.packets += self._free_ns > now_ns
        self._free_ns = max(self._free_ns, now_ns) + (length + HEADER_BYTES) * NANOSECONDS // narrow.bytes_per_s
        return self._free_ns - now_ns

    def end(self) -> None:
        """What a narrow link has kept waiting waits no more."""
        for carrier in self._carriers:
            carrier.hurry()
        self._carriers.clear()

    def words(self) -> str:
        """How many packets it has struck; nothing of kinds that are not counted by packet."""
        struck = {SlowLink: "later", LossyLink: "lost", NarrowLink: "queued"}.get(type(self.impairment))
        return f" (packets {struck}: {self.packets})" if struck else ""
