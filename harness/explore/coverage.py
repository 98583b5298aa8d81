"""What a storm led to, as sets of features: numbers of 63 bits, the same in every process.

The guide looks for states (the abstract state of the cluster, as the system's watch tells it) and pairs (an event of a
node, behind an event at another node that it may have been caused by, or at itself). A second measure, which no guide
sees, tells whether a search that is led by the first leads anywhere: the runs of three events that each node goes
through, with what it says of itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from harness.watch import Watch

UNDISTINGUISHED: Final = ("time", "wall")
RUN: Final = 3


def feature(*words: str) -> int:
    """A number for these words."""
    return int.from_bytes(blake2b("\x1f".join(words).encode(), digest_size=8).digest(), "big") >> 1


class Coverage:
    """A `Watch` that hands on what it sees to the system's own, and keeps what is new."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._states: dict[tuple[str, ...], None] = {}
        self._pairs: dict[tuple[str, str, str], None] = {}
        self._runs: dict[tuple[str, ...], None] = {}
        self._last: dict[str, tuple[str, ...]] = {}
        self._recent = ("", "")
        self._state: tuple[str, ...] = ()

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        self._watch.saw(node, event, fields)
        last = self._last.get(node, ())
        recent_node, recent_event = self._recent
        if last and last[-1] == event and recent_node == node:
            return  # the same again, as nothing else happened: a log that grows
        self._recent = (node, event)
        self._last[node] = run = (*last, event)[-RUN:]
        self._runs[run] = None
        if recent_node:
            self._pairs["self" if recent_node == node else "other", recent_event, event] = None
        if last:
            self._pairs["self", last[-1], event] = None
        state = self._watch.state()
        if state != self._state:
            self._state = state
            self._states[state] = None

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        return self._watch.roles()

    def state(self) -> tuple[str, ...]:
        return self._watch.state()

    # What was new to this storm ---------------------------------------------------------------------------------

    def features(self) -> tuple[int, ...]:
        """What the guide looks for, sorted."""
        states = {feature("state", *state) for state in self._states}
        pairs = {feature("pair", *pair) for pair in self._pairs}
        return tuple(sorted(states | pairs))

    @property
    def states(self) -> int:
        """How many abstract states the cluster was in."""
        return len(self._states)

    def unguided(self) -> tuple[int, ...]:
        """The other measure, sorted."""
        return tuple(sorted(feature("run", *run) for run in self._runs))
