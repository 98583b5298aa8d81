"""A question to the decider of one object, and the same question with less known about the object."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import NONE, Bool, Int64
from checkers.linearizable.deciders.spans import Decider, Open, Outcome, Spans
from checkers.linearizable.history.appended import appended_of
from checkers.linearizable.history.columns import says_nothing, spans_of
from checkers.linearizable.history.contents import content_call, contents_of
from checkers.linearizable.model import INDEFINITE, Call, Columns, Model
from checkers.linearizable.objects import decided
from checkers.linearizable.values import NEVER


@dataclass(frozen=True, kw_only=True)
class Question:
    decider: Decider
    spans: Spans
    initial: tuple[int, ...]
    reads: Bool
    """By function: whether it only reads, and shows nothing without its result."""
    witnesses: tuple[int, ...] = ()
    """The starts of operations that were found to contradict each other."""

    def decide(self) -> Outcome:
        return self.decider.decide(self.spans, self.initial)

    def order(self) -> Int64:
        """Starts of all operations that took effect, in that order. `decide` must say `Ordered`."""
        return np.asarray(self.spans.start[self.decider.order(self.spans, self.initial)])

    def until(self, time: int) -> Question:
        """The question at that time: operations that had not completed are indefinite."""
        ended = self.spans.end <= time
        return self._part((self.spans.start <= time) & (ended | ~self.reads[self.spans.f]), ended)

    def unknown(self, position: int) -> Question:
        """The question as if this operation were indefinite. What contradicts itself then also does so now."""
        ended = self.spans.definite
        ended[position] = False
        kept = np.ones(len(self.spans), dtype=np.bool_)
        kept[position] = not self.reads[self.spans.f[position]]
        return self._part(kept, ended)

    def without(self, start: int) -> Question:
        """The question without the operation that began then."""
        return self._part(self.spans.start != start, self.spans.definite)

    def concerning(self, starts: Int64, near: int) -> Question:
        """The question about the operations that began then, the last `near` ones, and all on the same values. Other
        values are left out, and only calls that returned null are about null. An object whose reads show all that it
        holds is not reduced."""
        spans = self.spans
        if spans.whole or near >= len(spans):
            return self
        chosen = np.isin(spans.start, starts)
        chosen[-near:] = True
        values = np.setdiff1d(np.concatenate((spans.argument[chosen], spans.result[chosen], self.initial)), [NONE])
        takes_any = ~spans.definite & (spans.argument == NONE)
        about = np.isin(spans.argument, values) | np.isin(spans.result, values)
        return self._part(chosen | takes_any | about, spans.definite)

    def returning(self, position: int, result: int) -> Question:
        """The question as if this operation had returned `result`."""
        results = self.spans.result.copy()
        results[position] = result
        return replace(self, spans=replace(self.spans, result=results))

    def _part(self, kept: Bool, ended: Bool) -> Question:
        spans = self.spans
        known = replace(spans, end=np.where(ended, spans.end, NEVER), result=np.where(ended, spans.result, NONE))
        return replace(self, spans=known.part(kept))


def asked(model: Model, rows: pa.Table) -> Question | Open:
    """The question about the rows of one object, which are in order. Raises ValueError for a value that is not JSON."""
    how = decided(model)
    if how is None:
        return Open("")
    held = how.holds(model.initial)
    try:
        if how.columns is Columns.CONTENTS:
            found = contents_of(model, rows, held)
        elif how.columns is Columns.APPENDED:
            found = appended_of(model, rows, held)
        else:
            found = spans_of(model, rows, held, how.columns)
    except TypeError:
        return Open("its values have no order")
    if isinstance(found, Open):
        return found
    spans, initial = found
    return Question(decider=how.by, spans=spans, initial=initial, reads=says_nothing(model, INDEFINITE))


def call_of(model: Model, spans: Spans, position: int) -> Call:
    """An operation as the model sees it."""
    if spans.lists is not None:
        return content_call(model, spans, position)
    f = model.functions[spans.f[position]]
    argument = spans.value(spans.argument[position])
    result = spans.value(spans.result[position]) if spans.end[position] != NEVER else INDEFINITE
    if f == "cas" and spans.expected is not None:
        argument = (spans.value(spans.expected[position]), argument)
    return Call(f=f, argument=argument, result=result)
