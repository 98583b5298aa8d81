"""Impairments of links in the simulator: each is applied, read back and removed independently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.environments.impairment import FlappingLink, HeldLink, LinkImpairment, LossyLink, NarrowLink, SlowLink
from harness.environments.simulated.network import SimulatedNetwork
from harness.environments.simulated.process import Machine
from harness.environments.simulated.toggle import Turns
from harness.environments.simulated.wire import Wire

Ends = Sequence[tuple[Machine, Machine]]


class ImpairedLinks:
    """What is wrong with links now."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network
        self._flapping: list[tuple[FlappingLink, list[Wire], Turns]] = []

    def impair(self, ends: Ends, impairment: LinkImpairment) -> str:
        """What is now wrong with which links, in words; empty for no links."""
        if not ends:
            return ""
        wires = [self._network.wire(source, target) for source, target in ends]
        if isinstance(impairment, FlappingLink):
            self._flapping.append((impairment, wires, self._flap(wires, impairment)))
        else:
            for wire in wires:
                wire.impair(impairment)
        return f"{', '.join(map(_name, wires))} {_words(impairment)}"

    def relieve(self, ends: Ends, impairment: LinkImpairment) -> str:
        """Which links have one such impairment less, and what came of it, in words; empty where there was none."""
        wires = [self._network.wire(source, target) for source, target in ends]
        if isinstance(impairment, FlappingLink):
            return self._calm(wires, impairment)
        relieved = [(wire, wire.relieve(impairment)) for wire in wires]
        words = [f"{_name(wire)}{impaired.words()}" for wire, impaired in relieved if impaired is not None]
        if isinstance(impairment, HeldLink) and words:
            self._network.world_changed()
        return ", ".join(words)

    def _flap(self, wires: list[Wire], flapping: FlappingLink) -> Turns:
        def go_down() -> None:
            for wire in wires:
                wire.go_down()

        def come_up() -> None:
            for wire in wires:
                wire.come_up()
            self._network.world_changed()

        on_ns, off_ns = int(flapping.down_ms * 1e6), int(flapping.up_ms * 1e6)
        return Turns(self._network.loop, go_down, come_up, on_ns=on_ns, off_ns=off_ns)

    def _calm(self, wires: list[Wire], flapping: FlappingLink) -> str:
        for one in self._flapping:
            if one[:2] == (flapping, wires):
                self._flapping.remove(one)
                one[2].stop()
                return f"{', '.join(map(_name, wires))} (went down {one[2].count} times)"
        return ""


def _name(wire: Wire) -> str:
    return f"{wire.source.name}→{wire.target.name}"


def _words(impairment: LinkImpairment) -> str:
    words: dict[type[Any], str] = {
        SlowLink: "slower by {0.delay_ms:g} ms and up to {0.jitter_ms:g} ms more",
        LossyLink: "lose {0.share:.1%} of the packets",
        NarrowLink: "let {0.bytes_per_s} bytes a second through",
        FlappingLink: "are down for {0.down_ms:g} ms and up for {0.up_ms:g} ms by turns",
        HeldLink: "hold what is sent",
    }
    return words[type(impairment)].format(impairment)
