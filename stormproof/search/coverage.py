"""What a storm led to, as sets of features: numbers of 63 bits, the same in every process.

The guide looks for states (the abstract state of the cluster, as the system's watch tells it), for pairs (an event of a
node behind the one before it at the same node, or behind one of another node that happened before it, as a message
tells), for points, and for strikes (a kind of fault at a point). A second measure, which no guide sees, tells whether a
search that is led by the first leads anywhere: the runs of events that nodes go through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from harness.watch import Watch

RUN: Final = 4
"""Events of one node in a row."""


def feature(*words: str) -> int:
    """A number for these words."""
    return int.from_bytes(blake2b("\x1f".join(words).encode(), digest_size=8).digest(), "big") >> 1


class Coverage:
    """A `Watch` that hands on what it sees to the system's own, and keeps what is new."""

    def __init__(self, watch: Watch) -> None:
        self.heard: Callable[[str], str] = lambda node: ""
        """Node -> the event that was its sender's last when it sent what arrived at the node last."""
        self._watch = watch
        self._states: dict[tuple[str, ...], None] = {}
        self._pairs: dict[tuple[str, str, str], None] = {}
        self._runs: dict[tuple[str, ...], None] = {}
        self._last: dict[str, tuple[str, ...]] = {}
        self._latest = ""
        self._state: tuple[str, ...] = ()

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        self._watch.saw(node, event, fields)
        last = self._last.get(node, ())
        if last and last[-1] == event and self._latest == node:
            return  # a log that grows, while nothing else happens
        self._latest = node
        self._last[node] = run = (*last, event)[-RUN:]
        self._runs[run] = None
        if last:
            self._pairs["itself", last[-1], event] = None
        if cause := self.heard(node):
            self._pairs["another", cause, event] = None
        state = self._watch.state()
        if state != self._state:
            self._state = state
            self._states[state] = None

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        return self._watch.roles()

    def state(self) -> tuple[str, ...]:
        return self._watch.state()

    # What was new to this storm ---------------------------------------------------------------------------------

    def features(self, reached: Iterable[str], strikes: Iterable[str] = ()) -> tuple[int, ...]:
        """What the guide looks for, sorted; `reached` are the points that nodes got to."""
        states = {feature("state", *state) for state in self._states}
        pairs = {feature("pair", *pair) for pair in self._pairs}
        points = {feature("point", point) for point in reached} | {feature("strike", each) for each in strikes}
        return tuple(sorted(states | pairs | points))

    @property
    def states(self) -> int:
        """How many abstract states the cluster was in."""
        return len(self._states)

    def unguided(self) -> tuple[int, ...]:
        """The other measure, sorted."""
        return tuple(sorted(feature("run", *run) for run in self._runs))
