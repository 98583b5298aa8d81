"""Elements of queues and stacks: which calls put one there, which need it, and which elements can still be taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from enum import Enum
from functools import partial

from checkers.linearizable.model import INDEFINITE, Call, Hopeless, State

PUTS, TAKES = ("enqueue", "push"), ("dequeue", "pop")


def element_put(call: Call) -> Hashable:
    return ("element", call.argument) if call.f in PUTS else None


def element_needed(call: Call) -> Collection[Hashable] | None:
    return (("element", call.result),) if call.f in TAKES else ()


class Taken(Enum):
    """Which element of a row is taken first."""

    FIRST = "first"
    """The first one; an element that is put comes behind all others."""
    LAST = "last"
    """The last one; an element that is put is taken before all others."""


def buried(taken: Taken) -> Callable[[Sequence[Call]], Hopeless]:
    """A state is hopeless if an element that has to be taken is behind one that no call will take.

    contents 1 2, dequeues left: of 2 and 2        1 is never taken, so 2 is not either
    """
    return partial(_buried, taken)


def _buried(taken: Taken, calls: Sequence[Call]) -> Hopeless:
    puts = [(n, call.argument) for n, call in enumerate(calls) if call.f in PUTS]
    unknown = [n for n, call in enumerate(calls) if call.f in TAKES and call.result is INDEFINITE]
    takes = [
        (n, call.result)
        for n, call in enumerate(calls)
        if call.f in TAKES and call.result is not INDEFINITE and call.result is not None
    ]

    def hopeless(state: State, must: Sequence[int], may: Sequence[int]) -> bool:
        needed: Counter[Hashable] = Counter()
        wanted: Counter[Hashable] = Counter()
        for n, element in takes:
            needed[element] += must[n]
            wanted[element] += must[n] + may[n]
        spare = sum(may[n] for n in unknown)
        reached: Counter[Hashable] = Counter()
        for element in state if taken is Taken.FIRST else reversed(state):
            reached[element] += 1
            if reached[element] > wanted[element]:
                spare -= 1
                if spare < 0:
                    reached[element] -= 1
                    break
        if taken is Taken.LAST or spare >= 0:
            for n, element in puts:
                reached[element] += must[n] + may[n]
        return any(reached[element] < count for element, count in needed.items())

    return hopeless
