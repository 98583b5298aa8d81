"""The report on an object that its decider found not linearizable: where it failed first, and what would have fitted.

It does not depend on the kind of object. Each prefix of a linearizable history is linearizable, so there is a first
completion after which the object is not. It is searched for, and everything is reported as it was known right then.
What an operation would have had to return is found by asking the decider again. The questions are bounded by the number
of operations that they look at, and by the time that searches have: if that is over, a later failure is reported, with
less.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from checkers import search_budget
from checkers.api.findings import Example, said_of
from checkers.kernels.columns import NONE, Int64
from checkers.linearizable.deciders.spans import Contradiction, Ordered, Spans
from checkers.linearizable.evidence.surroundings import Operations, longest_prefix, surroundings
from checkers.linearizable.model import Model, describe, possible_results
from checkers.linearizable.question import Question, call_of
from checkers.linearizable.values import NEVER, render

NEAR = 4_096
"""How many operations before a failure are looked at first for an earlier one, and for a smaller window."""
FURTHER = 8
"""The factor by which that number grows each time that nothing was found."""
LOOKED_AT = 2_000_000
"""How many operations are looked at in all, to make the window smaller and to find what would have fitted."""
CANDIDATES = 64
"""The most answers that are tried in place of the one that fits nowhere, and the most operations left out of a
window."""
SHOWN_ANSWERS = 5


def contradicted(key: str, model: Model, question: Question) -> Example:
    """The example for a question that contradicts itself."""
    last = _first_failure(question)
    failed, before = question.until(last), question.until(last - 1)
    window = failed.decide()
    if not isinstance(window, Contradiction):
        # A decider may leave a prefix open that it decides once more is known.
        failed, window = question, question.decide()
    assert isinstance(window, Contradiction)
    window = _smaller(failed, window)
    stuck = int(np.flatnonzero(failed.spans.end == last)[0])
    call = call_of(model, failed.spans, stuck)
    prefix: dict[str, Any] = {}
    fitting = [] if failed.spans.whole else _fitting(failed, stuck, window)
    for rest in (before.without(int(failed.spans.start[stuck])), before):
        if isinstance(rest.decide(), Ordered):
            order = np.searchsorted(rest.spans.start, rest.order()).tolist()
            prefix, state = longest_prefix(model, model.initial, _operations(model, rest.spans), order)
            if state is not None:
                prefix["state"] = render(state)
                if failed.spans.whole:
                    # This operation completes last, so it may come behind all others.
                    fitting = possible_results(model, state, call)
            break
    prefix |= {"stuck": describe(call), "would_have_told": [render(result) for result in fitting]}
    instead = f"; {describe(call)} would have had to return {' or '.join(prefix['would_have_told'])}" if fitting else ""
    numbers = np.array(sorted({*window.operations, stuck}))
    indices = {*failed.spans.start[numbers].tolist(), *failed.spans.end[numbers].tolist()}
    return Example(
        key=key,
        operations=tuple(sorted(indices - {NEVER})),
        because=said_of(key, f"{window.because}{instead}"),
        details={
            "longest_prefixes": [prefix],
            **_surroundings(model, question, int(failed.spans.start[stuck]), prefix),
        },
    )


def _surroundings(model: Model, question: Question, start: int, prefix: dict[str, Any]) -> dict[str, Any]:
    """The surroundings of the operation that began at `start`. Others are described as they ended, even if later."""
    spans = question.spans
    stuck = int(np.searchsorted(spans.start, start))
    values = [spans.result[stuck], spans.argument[stuck], *([] if spans.expected is None else [spans.expected[stuck]])]
    likely = np.flatnonzero(np.isin(spans.argument, np.setdiff1d(values, [NONE]))).tolist()
    return surroundings(model, _operations(model, spans), stuck, likely, prefix)


def _operations(model: Model, spans: Spans) -> Operations:
    return Operations(start=spans.start, end=spans.end, call=partial(call_of, model, spans))


def _first_failure(question: Question) -> int:
    """The time of the first completion after which it cannot be ordered.

    It is sought first among the last operations and those on the same values, which is fast. What is found there is
    checked against all operations up to then: if these fail earlier, the search goes on there, and further back.
    """
    ends = np.sort(question.spans.end[question.spans.definite])
    fits, fails, near = -1, len(ends) - 1, NEAR
    last, witnesses = _witnessed(question, ends)
    while fails - fits > 1 and not search_budget.is_over():
        part = question.until(int(ends[last])).concerning(witnesses, near)
        sought = _first_within(part, ends, fits, last)
        for probe in (sought - 1, sought):
            if not fits < probe < fails:
                continue
            earlier, found = _witnessed(question.until(int(ends[probe])), ends)
            if earlier < 0:
                fits, last = probe, fails
            else:
                fails, last, witnesses = probe, earlier, found
                break
        near *= FURTHER
    return int(ends[fails])


def _first_within(part: Question, ends: Int64, fits: int, fails: int) -> int:
    """The first end behind `fits` after which this part of an object fails; `fails` if there is none before that."""
    probe = (fits + fails) // 2
    while fails - fits > 1 and not search_budget.is_over():
        last, _ = _witnessed(part.until(int(ends[probe])), ends)
        if last < 0:
            fits = probe
        else:
            fails = probe
        probe = last if fits < last < fails else (fits + fails) // 2
    return fails


def _witnessed(question: Question, ends: Int64) -> tuple[int, Int64]:
    """(the last of these ends that is a witness's, or -1 if there is no contradiction; the starts of the witnesses)."""
    outcome = question.decide()
    if not isinstance(outcome, Contradiction):
        return -1, np.empty(0, dtype=np.int64)
    witnesses = np.array(sorted(outcome.operations))
    ended = question.spans.end[witnesses]
    return int(np.searchsorted(ends, ended[ended != NEVER].max())), question.spans.start[witnesses]


def _smaller(failed: Question, window: Contradiction) -> Contradiction:
    """The smallest contradiction found near it, by treating what operations returned as unknown."""
    known, near = failed, failed.concerning(failed.spans.start[sorted(window.operations)], NEAR)
    nearer = near.decide()
    if isinstance(nearer, Contradiction):
        known, window = near, nearer
    for start in known.spans.start[sorted(window.operations)][: _tries(known)].tolist():
        if search_budget.is_over():
            break
        position = int(np.searchsorted(known.spans.start, start))
        if not known.spans.definite[position]:
            continue
        less = known.unknown(position)
        smaller = less.decide()
        if isinstance(smaller, Contradiction) and len(smaller.operations) < len(window.operations):
            starts = less.spans.start[sorted(smaller.operations)]
            if start not in starts:
                known, window = less, smaller
    starts = known.spans.start[sorted(window.operations)]
    return replace(window, operations=frozenset(np.searchsorted(failed.spans.start, starts).tolist()))


def _tries(question: Question) -> int:
    return min(CANDIDATES, LOOKED_AT // max(len(question.spans), 1))


def _fitting(failed: Question, stuck: int, window: Contradiction) -> list[Hashable]:
    """What the operation that fits nowhere could have returned: results of others, and one that none returned."""
    spans = failed.spans
    near = np.array(sorted(window.operations))
    unread = spans.argument[~np.isin(spans.argument, spans.result)]
    candidates = dict.fromkeys([*spans.argument[near].tolist(), *unread.tolist()[:CANDIDATES], NONE])
    tried = [number for number in candidates if number != spans.result[stuck]][: _tries(failed)]
    found: list[int] = []
    for number in tried:
        if (
            len(found) < SHOWN_ANSWERS
            and not search_budget.is_over()
            and isinstance(failed.returning(stuck, number).decide(), Ordered)
        ):
            found.append(number)
    return [spans.value(number) for number in sorted(found)]
