"""Unordered queues: a dequeue takes any element that is there, or finds nothing.

Elements are independent, so a history contradicts itself only if an element was returned without being there
(`lifetimes`), or if nothing was found although an element was there all the time.

Source: Henzinger, Sezgin and Vafeiadis, Aspect-oriented linearizability proofs, CONCUR 2013, without its rules of
order. Takes of unknown outcome are our own addition, tested against a search through all orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable
from dataclasses import dataclass

import numpy as np

from checkers.api.evidence import any_ok
from checkers.kernels.columns import NO_INDEX, Int64
from checkers.linearizable.deciders.lifetimes import Lifetimes, free_moments, lifetimes, never_empty
from checkers.linearizable.deciders.spans import Ordered, Outcome, Spans
from checkers.linearizable.model import (
    ANYTHING,
    INDEFINITE,
    Call,
    Decided,
    Model,
    State,
    Value,
    always,
    elements,
    repeating,
)
from checkers.linearizable.values import frozen

EMPTY, PUT, TAKE = range(3)


@dataclass(frozen=True)
class UnorderedQueue:
    """Decides unordered queues. Functions: enqueue, dequeue."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        known = lifetimes(spans, initial)
        if not isinstance(known, Lifetimes):
            return known
        return never_empty(spans, known) or Ordered()

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        """Every take as early as possible, every put late enough to leave room for the moments without elements."""
        known = lifetimes(spans, initial)
        assert isinstance(known, Lifetimes)
        empty = free_moments(known)
        took = np.maximum(known.put_start, known.take_start)
        moments = np.concatenate(([-1], np.sort(empty)))
        # Between a moment t and t + 1 nothing is there: what is put at t + 1 or later is not there before.
        before = moments[np.searchsorted(moments, took) - 1]
        put = np.maximum(known.put_start, before + 1)
        stays = known.taken == NO_INDEX
        at = np.concatenate((2 * empty + 1, 2 * put, 2 * took[~stays]))
        what = np.repeat((EMPTY, PUT, TAKE), (len(empty), len(put), int((~stays).sum())))
        position = np.concatenate((known.nothing, known.put, known.taken[~stays]))
        ordered = position[np.lexsort((what, at))]
        return np.asarray(ordered[ordered != NO_INDEX])


# The model.


def _unordered_queue(state: State, call: Call) -> list[tuple[State, Value]]:
    """State: how often each element is there."""
    counts = Counter(dict(state))
    if call.f == "enqueue":
        counts[call.argument] += 1
        return [(frozenset(counts.items()), ANYTHING)]
    wanted = [call.result] if call.result is not INDEFINITE and call.result in counts else sorted(counts, key=repr)
    return [(frozenset((counts - Counter([one])).items()), one) for one in wanted] or [(state, None)]


def _bag_effect(call: Call) -> Hashable:
    return ("element", call.argument) if call.f == "enqueue" else "emptiness"


def _bag_needs(call: Call) -> Collection[Hashable]:
    """The effects that a call needs. For a dequeue of null elements must have been taken; for one that returned an
    element, only that element must have been there."""
    if call.f == "enqueue" or call.result is INDEFINITE:
        return ()
    return ("emptiness",) if call.result is None else (("element", call.result),)


def _bag_parts(call: Call) -> Collection[Hashable] | None:
    """An element is a part. Null is returned only without any of them, and an indefinite dequeue may have taken any."""
    if call.f == "enqueue":
        return (call.argument,)
    return None if call.result is INDEFINITE or call.result is None else (call.result,)


def _counted(value: Value) -> State:
    return frozenset(Counter(map(frozen, value)).items())


def _held(state: State) -> tuple[Hashable, ...]:
    return tuple(Counter(dict(state)).elements())


MODEL = Model(
    name="unordered-queue",
    initial=frozenset(),
    functions=("enqueue", "dequeue"),
    apply=_unordered_queue,
    effect=_bag_effect,
    needs=_bag_needs,
    parts=_bag_parts,
    begins=elements(_counted),
    repeats=repeating("enqueue"),
    evidence=always(*any_ok("dequeue")),
    decided=Decided(by=UnorderedQueue(), holds=_held),
)
