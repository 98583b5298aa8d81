"""The lifetime of each element of a queue or a stack: which operation put it there, and which one took it.

No element is put twice, so a take that returned an element took that one: the element was seen. An indefinite put
whose element was seen did happen. One whose element was not seen is left out: everything else is as possible without
it.

An indefinite take can take any element that was not seen, from its begin on.

Times are compact: history indices are replaced by their ranks from 0 on, and elements that are there at first come
before all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from checkers.kernels.columns import NO_INDEX, NONE, Bool, Int64, compact
from checkers.linearizable.deciders.spans import Contradiction, Open, Spans
from harness.compiled import compiled

PUT, TAKE = range(2)

SHOWN = 5
"""The most elements that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """The words for putting and taking."""

    put: str
    take: str


QUEUE = Words(put="enqueue", take="dequeue")


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """Elements in the order in which their puts began."""

    value: Int64
    put: Int64
    """Position of the put in the spans; NO_INDEX for an element that was there at first."""
    taken: Int64
    """Position of the take in the spans; NO_INDEX if the element stays."""
    put_start: Int64
    put_end: Int64
    take_start: Int64
    take_end: Int64
    nothing: Int64
    """Positions of the takes that found nothing."""
    start: Int64
    """The starts of all spans, in compact time."""
    end: Int64
    takers: Int64
    """Positions of the takes of unknown outcome, by their begin."""
    horizon: int
    """A time behind all others. An element that stays counts as taken at one later, where no operation is left."""

    @property
    def is_seen(self) -> Bool:
        """Whether a take returned the element. If not, its take, if it has one, is indefinite."""
        return np.asarray(self.take_end < self.horizon)

    def part(self, elements: Int64) -> Lifetimes:
        """The lifetimes of these elements only."""
        return replace(
            self,
            value=self.value[elements],
            put=self.put[elements],
            taken=self.taken[elements],
            put_start=self.put_start[elements],
            put_end=self.put_end[elements],
            take_start=self.take_start[elements],
            take_end=self.take_end[elements],
        )

    def with_takes(self, elements: Int64) -> Lifetimes:
        """The same, if takes of unknown outcome took these elements: the first take took the first one, and so on."""
        takers = self.takers[: len(elements)]
        taken, take_start, take_end = self.taken.copy(), self.take_start.copy(), self.take_end.copy()
        taken[elements], take_start[elements], take_end[elements] = takers, self.start[takers], self.horizon
        return replace(self, taken=taken, take_start=take_start, take_end=take_end)


def lifetimes(spans: Spans, initial: tuple[int, ...]) -> Lifetimes | Contradiction | Open:
    """Lifetimes from what takes returned, with takes of unknown outcome assigned in the way that suits queues best.

    The element whose put ended first gets the take that began first, and so on; what is left over stays for ever. No
    other way is better: if something limits how late an element may be taken (a later element that was seen, or an
    answer that nothing is there), it limits the elements put before it at least as much. So by Hall's theorem there is
    a way if and only if this is one, and the rest is decided as if nothing were indefinite.
    """
    known = seen_lifetimes(spans, initial, QUEUE)
    if not isinstance(known, Lifetimes):
        return known
    left = np.flatnonzero(known.taken == NO_INDEX)
    return known.with_takes(left[np.argsort(known.put_end[left], kind="stable")][: len(known.takers)])


def seen_lifetimes(spans: Spans, initial: tuple[int, ...], words: Words) -> Lifetimes | Contradiction | Open:
    """Lifetimes from what takes returned; elements that were not seen stay.

    It is a contradiction if an element is returned more than once, or before it was put.
    """
    is_put, definite = spans.f == PUT, spans.definite
    puts = np.flatnonzero(is_put)
    takes = np.flatnonzero(~is_put & definite & (spans.result != NONE))
    if np.any(spans.argument[puts] == NONE) or NONE in initial:
        return Open("null is put: a take that returned null may have found nothing")
    at_first = np.array(initial, dtype=np.int64)
    values = np.concatenate((at_first, spans.argument[puts], spans.result[takes]))
    number = compact(values)
    elements = len(initial) + len(puts)
    owner = np.full(int(number.max(initial=-1)) + 1, NO_INDEX, dtype=np.int64)
    owner[number[:elements]] = np.arange(elements)
    if np.any(owner[number[:elements]] != np.arange(elements)):
        return Open("an element is put twice")

    element = owner[number[elements:]]
    unknown = np.flatnonzero(element == NO_INDEX)
    if len(unknown):
        return _unknown(spans, words, int(takes[unknown[0]]))
    taken = np.full(elements, NO_INDEX, dtype=np.int64)
    taken[element[::-1]] = takes[::-1]
    again = np.flatnonzero(taken[element] != takes)
    put = np.concatenate((np.full(len(initial), NO_INDEX, dtype=np.int64), puts))
    if len(again):
        return _again(spans, words, int(put[element[again[0]]]), int(taken[element[again[0]]]), int(takes[again[0]]))

    happened = np.append(definite, True)[put] | (taken != NO_INDEX)
    put, taken = put[happened], taken[happened]
    start, end, horizon = _compact_times(spans, len(initial))
    first = np.arange(len(put))
    put_start, put_end = _times(start, put, first.copy()), _times(end, put, first)
    take_start = _times(start, taken, np.full(len(put), horizon + 1))
    take_end = _times(end, taken, np.full(len(put), horizon + 2))
    early = np.flatnonzero(take_end < put_start)
    if len(early):
        return _early(spans, words, int(put[early[0]]), int(taken[early[0]]))
    return Lifetimes(
        value=values[:elements][happened],
        put=put,
        taken=taken,
        put_start=put_start,
        put_end=put_end,
        take_start=take_start,
        take_end=take_end,
        nothing=np.flatnonzero(~is_put & definite & (spans.result == NONE)),
        start=start,
        end=end,
        takers=np.flatnonzero(~is_put & ~definite),
        horizon=horizon,
    )


def _compact_times(spans: Spans, earlier: int) -> tuple[Int64, Int64, int]:
    """(starts, ends, horizon); the horizon is the end of indefinite spans. `earlier`: how many moments are left free
    before all others."""
    definite = np.flatnonzero(spans.definite)
    times = compact(np.concatenate((spans.start, spans.end[definite]))) + earlier
    horizon = int(times.max(initial=earlier - 1)) + 1
    end = np.full(len(spans), horizon, dtype=np.int64)
    end[definite] = times[len(spans) :]
    return times[: len(spans)], end, horizon


def _times(time: Int64, position: Int64, otherwise: Int64) -> Int64:
    """The times of these positions, and `otherwise` where a position is NO_INDEX."""
    known = position != NO_INDEX
    otherwise[known] = time[position[known]]
    return otherwise


# Answers that nothing is there.


def free_moments(lifetimes: Lifetimes) -> Int64:
    """For each answer that nothing is there, the first moment t of its time such that the queue can be empty between t
    and t + 1; -1 if there is none.

    An element is certainly there from the end of its put to the begin of its take.
    """
    return _free_moments(
        lifetimes.put_end,
        lifetimes.take_start,
        lifetimes.start[lifetimes.nothing],
        lifetimes.end[lifetimes.nothing],
        lifetimes.horizon,
    )


@compiled
def _free_moments(put_end: Int64, take_start: Int64, start: Int64, end: Int64, horizon: int) -> Int64:
    there = np.zeros(horizon + 2, dtype=np.int64)
    for v in range(len(put_end)):
        if put_end[v] < take_start[v]:
            there[put_end[v]] += 1
            there[take_start[v]] -= 1
    count = 0
    for t in range(len(there)):
        count += there[t]
        there[t] = count
    free = horizon
    for t in range(horizon, -1, -1):
        if there[t] == 0:
            free = t
        there[t] = free
    moments = np.empty(len(start), dtype=np.int64)
    for e in range(len(start)):
        moments[e] = there[start[e]] if there[start[e]] < end[e] else -1
    return moments


def never_empty(spans: Spans, lifetimes: Lifetimes) -> Contradiction | None:
    """A take that found nothing, though something was there all the time."""
    wrong = lifetimes.nothing[free_moments(lifetimes) < 0]
    if len(wrong) == 0:
        return None
    empty_take = int(wrong[np.argmin(lifetimes.end[wrong])])
    start, end = int(lifetimes.start[empty_take]), int(lifetimes.end[empty_take])
    row = in_a_row(lifetimes, start, end, np.arange(len(lifetimes.value)))
    witnesses, too_few = proof(lifetimes, row, end)
    return Contradiction(
        frozenset({empty_take, *witnesses}),
        f"a dequeue found nothing ({spans.when(empty_take)}), but all that time something was there: "
        f"{named(spans, lifetimes, row)}{too_few}",
    )


def proof(lifetimes: Lifetimes, elements: Int64, until: int) -> tuple[set[int], str]:
    """(the puts and takes of these elements, a text). If an element was not seen, they also show why it cannot have
    been taken before that time: what was put no later, and the takes of unknown outcome that had begun. The text says
    that these, if there are any, are too few."""
    guessed = elements[~lifetimes.is_seen[elements]]
    rivals = np.empty(0, dtype=np.int64)
    if len(guessed):
        rivals = np.flatnonzero(~lifetimes.is_seen & (lifetimes.put_end <= lifetimes.put_end[guessed].max()))
    puts = lifetimes.put[np.concatenate((elements, rivals))]
    takes = lifetimes.taken[
        np.concatenate((elements[lifetimes.is_seen[elements]], rivals[lifetimes.take_start[rivals] < until]))
    ]
    takers = int((lifetimes.take_start[rivals] < until).sum())
    too_few = ""
    if takers:
        takes_begun = f"only {_many(takers, 'dequeue')} of unknown outcome had begun"
        too_few = f"; by then {_many(len(rivals), 'element')} had been put that no dequeue returned, and {takes_begun}"
    return set(puts[puts != NO_INDEX].tolist()) | set(takes[takes != NO_INDEX].tolist()), too_few


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def named(spans: Spans, lifetimes: Lifetimes, row: Int64) -> str:
    """The names of the first elements of a row."""
    return ", then ".join(spans.render(lifetimes.value[v]) for v in row[:SHOWN]) + (", …" if len(row) > SHOWN else "")


def in_a_row(lifetimes: Lifetimes, begin: int, end: int, among: Int64) -> Int64:
    """As few of these elements as possible such that one had to be there at each moment from `begin` to `end`."""
    there = among[(lifetimes.put_end[among] < end) & (lifetimes.take_start[among] > begin)]
    there = there[lifetimes.put_end[there] < lifetimes.take_start[there]]
    row: Int64 = there[_in_a_row(lifetimes.put_end[there], lifetimes.take_start[there], begin, end)]
    return row


@compiled
def _in_a_row(begin: Int64, end: Int64, first: int, last: int) -> Int64:
    """As few intervals [begin, end) as possible that together cover [first, last)."""
    order = np.argsort(begin)
    chosen = np.empty(len(begin), dtype=np.int64)
    count = at = 0
    covered = first
    while covered < last:
        best = -1
        while at < len(order) and begin[order[at]] <= covered:
            if best < 0 or end[order[at]] > end[best]:
                best = order[at]
            at += 1
        chosen[count] = best
        count += 1
        covered = end[best]
    return chosen[:count]


def _unknown(spans: Spans, words: Words, take: int) -> Contradiction:
    element = spans.render(spans.result[take])
    because = f"a {words.take} returned {element} ({spans.when(take)}), which was never put there"
    return Contradiction(frozenset({take}), because)


def _again(spans: Spans, words: Words, put: int, one: int, other: int) -> Contradiction:
    element = spans.render(spans.result[one])
    return Contradiction(
        frozenset({put, one, other} - {NO_INDEX}),
        f"{element} was there only once, but two {words.take}s returned it ({spans.when(one)}; {spans.when(other)})",
    )


def _early(spans: Spans, words: Words, put: int, take: int) -> Contradiction:
    element = spans.render(spans.result[take])
    return Contradiction(
        frozenset({put, take}),
        f"a {words.take} that returned {element} ({spans.when(take)}) had ended when its {words.put} began "
        f"({spans.when(put)})",
    )
