"""Unordered queues: a dequeue takes any element that is there, or is told that nothing is.

Elements hold nothing against each other, so a history contradicts itself only where an element was told without being
there (`lifetimes`), or where nothing was told though something was there all the time.

Source: Henzinger, Sezgin and Vafeiadis, Aspect-oriented linearizability proofs, CONCUR 2013, without what they say of
order; takes of unknown outcome are ours, and held against a search through all orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.objects.lifetimes import NOBODY, Lifetimes, free_moments, lifetimes, never_empty
from checkers.linearizable.objects.spans import Ordered, Outcome, Spans

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
        stays = known.taken == NOBODY
        at = np.concatenate((2 * empty + 1, 2 * put, 2 * took[~stays]))
        what = np.repeat((EMPTY, PUT, TAKE), (len(empty), len(put), int((~stays).sum())))
        position = np.concatenate((known.nothing, known.put, known.taken[~stays]))
        ordered = position[np.lexsort((what, at))]
        return np.asarray(ordered[ordered != NOBODY])
