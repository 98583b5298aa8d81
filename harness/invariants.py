"""What holds of a system at every moment, whatever its clients notice, while a storm goes on.

Clients see a broken promise only if luck leads them there: a replica that lacks what was acknowledged must be elected
first. A system's adapter may bring its `Invariants`: they are fed every event of every node, and what nodes hold where
they reach points (`host.reached` with values), as it happens, and say what contradicts what, by names whose
meanings the system declares. As with a `Watch`, only an environment in which everything happens in one place and in one
order can feed them: the simulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from harness.errors import HarnessError
from harness.nearest import unknown
from harness.record.facts import Breach

MOST_OF_A_NAME: Final = 100
"""So many breaches of one name are kept."""


class Invariants(Protocol):
    """Kept by a system's adapter for one run. Both methods are called while the event happens, so they must be
    quick, and must not wait for anything."""

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        """As `Watch.saw`."""

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        """A node reached this point and holds this."""


class Breaches:
    """What was found broken so far, with the time of the run at which it was: `now_ns`."""

    def __init__(self, now_ns: Callable[[], int], declared: Collection[str]) -> None:
        self.now_ns = now_ns
        self.declared = declared
        self._kept: list[Breach] = []
        self._counts: Counter[str] = Counter()

    def says(self, name: str, nodes: tuple[str, ...], because: str) -> None:
        """Take in the name of what is broken, the nodes that show it, and how they do. Raises HarnessError for a name
        that the system does not declare: nobody would know what it means."""
        if name not in self.declared:
            raise HarnessError(unknown("invariant", name, self.declared, more="; a system declares them with meanings"))
        self._counts[name] += 1
        if self._counts[name] <= MOST_OF_A_NAME:
            self._kept.append(Breach(name=name, nodes=nodes, time_ns=self.now_ns(), because=because))

    def kept(self) -> tuple[Breach, ...]:
        """In the order of their times."""
        return tuple(self._kept)
