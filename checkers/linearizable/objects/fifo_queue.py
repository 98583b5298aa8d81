"""FIFO queues: a dequeue takes the element that was put first of all that are there, or finds nothing.

In addition to what any queue keeps (`lifetimes`, `unordered_queue`), no element may overtake another: if a was put
before b, b is not taken before a. Two elements are enough to see a fault: puts are ordered as intervals, takes are,
too, and if both orders together have a cycle, they have one of two elements. So one sweep over time finds it: of the
elements that were put by now, how late does a take of one begin?

Source: Henzinger, Sezgin and Vafeiadis, Aspect-oriented linearizability proofs, CONCUR 2013; Bouajjani, Emmi, Enea and
Hamza, On reducing linearizability to state reachability, ICALP 2015. Takes of unknown outcome are our own addition,
tested against a search through all orders.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from checkers.api.evidence import any_ok
from checkers.kernels.columns import NO_INDEX, Int64
from checkers.linearizable.deciders.lifetimes import Lifetimes, free_moments, lifetimes, never_empty, proof
from checkers.linearizable.deciders.spans import Contradiction, Ordered, Outcome, Spans
from checkers.linearizable.model import ANYTHING, Call, Decided, Model, State, Value, always, elements, repeating
from checkers.linearizable.objects.elements import Taken, buried, element_needed, element_put
from harness.compiled import compiled


@dataclass(frozen=True)
class FifoQueue:
    """Decides FIFO queues. Functions: enqueue, dequeue."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        known = lifetimes(spans, initial)
        if not isinstance(known, Lifetimes):
            return known
        first, second = _overtaken(known.put_start, known.put_end, known.take_start, known.take_end, known.horizon)
        if first >= 0:
            return _order_broken(spans, known, first, second)
        return never_empty(spans, known) or Ordered()

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        """Elements one after the other, with puts and takes as early as that allows.

        An answer that nothing is there has a place among the elements like one that is put and taken at that moment:
        those before it are gone by then, and those behind it are not there yet.
        """
        known = lifetimes(spans, initial)
        assert isinstance(known, Lifetimes)
        empty = 2 * free_moments(known) + 1
        put_start = np.concatenate((2 * known.put_start, empty))
        put_end = np.concatenate((2 * known.put_end, empty))
        take_start = np.concatenate((2 * np.maximum(known.put_start, known.take_start), empty))
        row = _row(put_start, put_end, take_start)
        put = np.maximum.accumulate(put_start[row])
        take = np.maximum.accumulate(take_start[row])
        no_operation = np.full(len(empty), NO_INDEX, dtype=np.int64)
        steps = np.stack((np.concatenate((known.put, no_operation)), np.concatenate((known.taken, known.nothing))))[
            :, row
        ]
        order = np.argsort(np.stack((put, take), axis=1).ravel(), kind="stable")
        ordered = steps.T.ravel()[order]
        return np.asarray(ordered[ordered != NO_INDEX])


@compiled
def _overtaken(put_start: Int64, put_end: Int64, take_start: Int64, take_end: Int64, horizon: int) -> tuple[int, int]:
    """An element put before another one, and that other one, taken before it; (-1, -1) if there is none."""
    begun = np.full(horizon + 1, NO_INDEX, dtype=np.int64)
    ended = np.full(horizon + 1, NO_INDEX, dtype=np.int64)
    for v in range(len(put_start)):
        begun[put_start[v]] = v
        if put_end[v] < horizon:
            ended[put_end[v]] = v
    last = -1
    for t in range(horizon):
        v = begun[t]
        if v >= 0 and last >= 0 and take_end[v] < take_start[last]:
            return last, v
        v = ended[t]
        if v >= 0 and (last < 0 or take_start[v] > take_start[last]):
            last = v
    return -1, -1


@compiled
def _row(put_start: Int64, put_end: Int64, take_start: Int64) -> Int64:
    """The elements one after the other: none is put, or taken, completely before one that comes before it.

    The next element is one whose put and take both begin before the first end of those that are left. Among the
    elements whose put does, it is the one whose take begins first.
    """
    by_start, by_end = np.argsort(put_start), np.argsort(put_end)
    row = np.empty(len(put_start), dtype=np.int64)
    placed = np.zeros(len(put_start), dtype=np.bool_)
    ready = [(np.int64(0), np.int64(0))]
    ready.pop()
    started = ended = 0
    for i in range(len(row)):
        while placed[by_end[ended]]:
            ended += 1
        while started < len(row) and put_start[by_start[started]] <= put_end[by_end[ended]]:
            heapq.heappush(ready, (take_start[by_start[started]], by_start[started]))
            started += 1
        row[i] = heapq.heappop(ready)[1]
        placed[row[i]] = True
    return row


def _order_broken(spans: Spans, lifetimes: Lifetimes, first: int, second: int) -> Contradiction:
    one, other = spans.render(lifetimes.value[first]), spans.render(lifetimes.value[second])
    put, later = int(lifetimes.put[first]), int(lifetimes.put[second])
    take = int(lifetimes.taken[second])
    witnesses, too_few = proof(lifetimes, np.array([first, second]), int(lifetimes.take_end[second]))
    before = "was there at first" if put == NO_INDEX else f"was enqueued ({spans.when(put)})"
    after = "behind it" if later == NO_INDEX else f"before the enqueue of {other} began ({spans.when(later)})"
    if lifetimes.is_seen[first]:
        overtaken = f" before the dequeue that returned {one} began ({spans.when(int(lifetimes.taken[first]))})"
    else:
        overtaken = too_few or f", and {one} was not taken before"
    return Contradiction(
        frozenset(witnesses),
        f"{one} {before} {after}, but {other} was dequeued ({spans.when(take)}){overtaken}",
    )


# The model.


def _fifo_queue(state: State, call: Call) -> list[tuple[State, Value]]:
    if call.f == "enqueue":
        return [((*state, call.argument), ANYTHING)]
    return [(state[1:], state[0])] if state else [(state, None)]


MODEL = Model(
    name="fifo-queue",
    initial=(),
    functions=("enqueue", "dequeue"),
    apply=_fifo_queue,
    effect=element_put,
    needs=element_needed,
    hopeless=buried(Taken.FIRST),
    begins=elements(),
    repeats=repeating("enqueue"),
    evidence=always(*any_ok("dequeue")),
    decided=Decided(by=FifoQueue()),
)
