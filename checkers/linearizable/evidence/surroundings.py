"""The surroundings of an operation that fits nowhere, as data: what was open meanwhile, what could have explained it
and why it did not, and how far an order of the operations before it comes.

All of this is for readers. The witnesses of the anomaly are the proof, which needs nothing from here. All of it is
bounded: counts are exact, and operations are the first or the last few.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.model import Call, Does, Model, describe
from checkers.linearizable.objects import map as map_objects
from checkers.linearizable.values import NEVER, render

SHOWN_OPERATIONS = 20
"""The most concurrent operations that are shown, and the most of an order, its last ones."""
SHOWN_CANDIDATES = 5
BETWEEN = 64
"""The most operations behind a candidate that are looked at to find one that undid it."""
ELEMENTS = 1_000_000
"""The most elements that all states on the way to the last one may have; if they have more, no state is shown."""


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operations on one object by ascending start, without those that certainly did not happen or show nothing."""

    start: Int64
    end: Int64
    """When each operation ended; NEVER if indefinite."""
    call: Callable[[int], Call]
    """The call at each position."""

    def described(self, position: int) -> dict[str, Any]:
        """`completed` is null if it is unknown when it ended, and whether it took effect."""
        end = int(self.end[position])
        return {
            "operation": int(self.start[position]),
            "completed": None if end == NEVER else end,
            "what": describe(self.call(position)),
        }

    def named(self, position: int) -> str:
        end = int(self.end[position])
        completed = "of unknown outcome" if end == NEVER else f"completed by {end}"
        return f"{describe(self.call(position))} (operation {int(self.start[position])}, {completed})"


def surroundings(
    model: Model, operations: Operations, stuck: int, likely: Iterable[int], prefix: Mapping[str, Any]
) -> dict[str, Any]:
    """The details `failing`, `concurrent` and `candidates` of an anomaly.

    `likely` are positions that include all candidates; `prefix` is a longest one, as `longest_prefix` returns it.
    """
    return {
        "failing": operations.described(stuck),
        "concurrent": _concurrent(operations, stuck),
        "candidates": _Candidates(model, operations, stuck, prefix).described(likely),
    }


def longest_prefix(
    model: Model, initial: Hashable, operations: Operations, order: Sequence[int]
) -> tuple[dict[str, Any], Hashable | None]:
    """(the last operations of an order of positions, each with the state after it if there is only one; a state that
    the whole order leads to from the initial one, or None if that takes too much)."""
    states: list[Hashable] | None = [initial]
    elements = 0
    steps: list[dict[str, Any]] = []
    shown_from = max(len(order) - SHOWN_OPERATIONS, 0)
    for position in order[:shown_from]:
        states, elements = _followed(model, states, operations.call(position), elements)
        if states is None:
            break
    for position in order[shown_from:]:
        states, elements = _followed(model, states, operations.call(position), elements)
        state = render(states[0]) if states is not None and len(states) == 1 else None
        steps.append({**operations.described(position), "state": state})
    prefix = {
        "order": [step["operation"] for step in steps],
        "left_out": len(order) - len(steps),
        "operations": steps,
    }
    return prefix, states[0] if states else None


def _followed(
    model: Model, states: list[Hashable] | None, call: Call, elements: int
) -> tuple[list[Hashable] | None, int]:
    """(the states after a call, or None if that takes too much; how many elements all states so far have)."""
    if states is None:
        return None, elements
    followed = list(dict.fromkeys(after for state in states for after in model.step(state, call)))
    elements += sum(1 + (len(state) if isinstance(state, Sized) else 0) for state in followed)
    return (followed if elements <= ELEMENTS else None), elements


def _concurrent(operations: Operations, stuck: int) -> dict[str, Any]:
    meanwhile = (operations.start < operations.end[stuck]) & (operations.end > operations.start[stuck])
    meanwhile[stuck] = False
    positions = np.flatnonzero(meanwhile)
    # Those that began last are shown, because there may be many indefinite ones that began long before.
    return {
        "count": len(positions),
        "operations": [operations.described(position) for position in positions[-SHOWN_OPERATIONS:].tolist()],
    }


@dataclass(frozen=True)
class _Candidates:
    """Operations that would explain what an operation returned if others did not prevent it."""

    model: Model
    operations: Operations
    stuck: int
    prefix: Mapping[str, Any]

    def described(self, likely: Iterable[int]) -> dict[str, Any] | None:
        """The candidates that began before the operation ended; if there are none, those that came too late. None if no
        single operation can explain what another one returned."""
        operations, initial = self.operations, self.model.initial
        stuck = operations.call(self.stuck)
        found = [position for position in likely if self._explains(position)]
        in_time = [position for position in found if operations.start[position] < operations.end[self.stuck]]
        candidates = in_time or found
        listed = [
            {**operations.described(position), "why_not": self._why_not(position, alone=len(in_time) == 1)}
            for position in candidates[-SHOWN_CANDIDATES:]
        ]
        count = len(candidates)
        if self.model.step(initial, stuck):
            count += 1
            undone = self._undone(-1) or self._in_prefix()
            what = f"what it held at first: {render(initial)}"
            listed.insert(0, {"operation": None, "completed": None, "what": what, "why_not": undone})
        sought = self._sought(stuck)
        return {"count": count, "operations": listed, "sought": sought} if count or sought is not None else None

    def _sought(self, stuck: Call) -> str | None:
        """The value that one operation would have had to put there; None if it takes several operations, or none."""
        if _is_map(self.model):
            return render(stuck.result)
        needed = list(self.model.needs(stuck) or ())
        single = needed[0] if len(needed) == 1 else None
        return render(single[1]) if isinstance(single, tuple) and len(single) == 2 else None

    def _explains(self, position: int) -> bool:
        if position == self.stuck:
            return False
        call, stuck = self.operations.call(position), self.operations.call(self.stuck)
        if _is_map(self.model):
            return call.f != "get" and call.argument == stuck.result
        needed, effect = self.model.needs(stuck), self._effect(position)
        return needed is not None and len(needed) == 1 and effect is not None and effect in needed

    def _effect(self, position: int) -> Hashable | None:
        call = self.operations.call(position)
        return None if self.model.does(call) is Does.READS else self.model.effect(call)

    def _why_not(self, position: int, *, alone: bool) -> str:
        operations, stuck = self.operations, self.stuck
        if operations.start[position] > operations.end[stuck]:
            return f"it began only when {operations.call(stuck).f} had completed"
        done = int(operations.end[position])
        if alone:
            # An operation that saw its effect shows that it had happened by then, because only it has this effect.
            done = min([done, *(int(operations.end[seer]) for seer in self._seers(position))])
        return self._undone(done) or (self._taken(position) if alone else "") or self._in_prefix(position)

    def _seers(self, position: int) -> list[int]:
        """The operations right behind it that would be impossible without it."""
        operations, effect = self.operations, self._effect(position)
        ended = np.flatnonzero(
            (operations.end > operations.start[position]) & (operations.end < operations.start[self.stuck])
        )
        behind = ended[np.argsort(operations.end[ended], kind="stable")][:BETWEEN].tolist()
        return [seer for seer in behind if effect is not None and self._needs(seer, effect)]

    def _needs(self, position: int, effect: Hashable) -> bool:
        return effect in (self.model.needs(self.operations.call(position)) or ())

    def _undone(self, done: int) -> str:
        """A text that says which operation changed the object, or saw it changed, after `done` and before the one that
        fits nowhere."""
        operations, holding = self.operations, self.model.only_in(self.operations.call(self.stuck))
        if holding is None:
            return ""
        between = np.flatnonzero((operations.start > done) & (operations.end < operations.start[self.stuck]))
        undoing = [p for p in between[-BETWEEN:].tolist() if self._undoes(p, holding[0])]
        changing = [p for p in undoing if self.model.does(operations.call(p)) is not Does.READS]
        for position in (changing or undoing)[-1:]:
            what = "came after it" if changing else "saw after it that it was gone"
            began = f"before this {operations.call(self.stuck).f} began"
            return f"{operations.named(position)} {what}, and had completed {began}"
        return ""

    def _undoes(self, position: int, state: Hashable) -> bool:
        call, stuck = self.operations.call(position), self.operations.call(self.stuck)
        if isinstance(state, frozenset) and self.model.parts(call) is None:
            return False
        return not any(self.model.step(after, stuck) for after in self.model.step(state, call))

    def _taken(self, position: int) -> str:
        """A text that says which operation took the element that this one put, which no other operation put."""
        operations, effect = self.operations, self._effect(position)
        stuck = operations.call(self.stuck)
        if effect is None or self.model.does(stuck) is not Does.CHANGES or stuck.f == "cas":
            return ""
        same = (operations.end < operations.end[self.stuck]) & (operations.end > operations.start[position])
        for taker in np.flatnonzero(same)[-BETWEEN:].tolist():
            if taker != self.stuck and operations.call(taker).f == stuck.f and self._needs(taker, effect):
                return f"{operations.named(taker)} took it"
        return ""

    def _in_prefix(self, position: int | None = None) -> str:
        if position is not None and int(self.operations.start[position]) not in self.prefix.get("order", ()):
            return "even if it took effect, the other operations contradict what was returned"
        f = self.operations.call(self.stuck).f
        would = " or ".join(self.prefix.get("would_have_told", ()))
        instead = f", where this {f} would have returned {would}" if would else f", where this {f} is impossible"
        state = self.prefix.get("state")
        return f"the longest order ends in the state {state}{instead}" if state is not None else "others came after it"


def _is_map(model: Model) -> bool:
    return model.apply is map_objects.MODEL.apply
