"""Append-only logs to which no element is appended twice: decided in O(n log n) and the size of all reads.

Every read shows a prefix of what the longest one shows, and an append may return its position, so the places of most
elements are known. The known operations form a row (append, append, read of both, append, …), which is possible if no
operation in it began after one behind it had ended.

Positions below a known one that nothing shows are filled by appends whose position nothing shows (`log_filling`).

Functions: append, with its position as result where it was returned; read, whose lists show all from position 0 on.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from checkers.api.evidence import any_ok, in_json
from checkers.kernels.columns import NO_INDEX, NONE, Int64
from checkers.linearizable.deciders.log_filling import LogRow, filled, out_of_order
from checkers.linearizable.deciders.log_places import APPEND, READ, Longest, longest_read, places, read_sizes
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome, Spans
from checkers.linearizable.model import (
    ANYTHING,
    Call,
    Columns,
    Decided,
    Hopeless,
    Model,
    Repeated,
    State,
    Value,
    always,
    elements,
    is_list,
    reading,
    repeating,
)


@dataclass(frozen=True)
class AppendLog:
    """Decides append-only logs."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        row = _row(spans, initial)
        return Ordered() if isinstance(row, LogRow) else row

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        row = _row(spans, initial)
        assert isinstance(row, LogRow)
        return row.operations[np.lexsort((spans.start[row.operations], row.level))]


def _row(spans: Spans, initial: tuple[int, ...]) -> LogRow | Contradiction | Open:
    appends = np.flatnonzero(spans.f == APPEND)
    if NONE in initial or np.any(spans.argument[appends] == NONE):
        return Open("null is appended")
    longest = longest_read(spans, initial)
    if not isinstance(longest, Longest):
        return longest
    place = places(spans, initial, appends, longest)
    if not isinstance(place, np.ndarray):
        return place
    reads = np.flatnonzero((spans.f == READ) & spans.definite)
    located = place != NO_INDEX
    operations = np.concatenate((appends[located], reads))
    level = np.concatenate((2 * place[located] + 1, 2 * read_sizes(spans, reads)))
    order = np.lexsort((spans.start[operations], level))
    known = LogRow(operations=operations[order], level=level[order])
    return out_of_order(spans, known, longest) or filled(spans, appends[~located], known, longest)


# The model.


def _append_log(state: State, call: Call) -> list[tuple[State, Value]]:
    """append value, which returns [position, value] if the position is known; read, which returns everything from
    position 0 on."""
    if call.f == "read":
        return [(state, state)]
    positioned = isinstance(call.result, tuple) and call.result != call.argument
    return [((*state, call.argument), (len(state), call.argument) if positioned else ANYTHING)]


def _append_log_effect(call: Call) -> Hashable:
    return ("element", call.argument)


def _append_log_needs(call: Call) -> Collection[Hashable] | None:
    if call.f == "read":
        return [("element", element) for element in call.result] if isinstance(call.result, tuple) else ()
    return None if isinstance(call.result, tuple) else ()


def _unread(calls: Sequence[Call]) -> Hopeless:
    """A state is hopeless if a read that is still to come does not begin with it."""
    reads = [(n, call.result) for n, call in enumerate(calls) if call.f == "read" and isinstance(call.result, tuple)]

    def hopeless(state: State, must: Sequence[int], may: Sequence[int]) -> bool:
        return any(must[n] and shown[: len(state)] != state for n, shown in reads)

    return hopeless


MODEL = Model(
    name="append-log",
    initial=(),
    functions=("append", "read"),
    apply=_append_log,
    does=reading("read"),
    effect=_append_log_effect,
    needs=_append_log_needs,
    hopeless=_unread,
    begins=elements(),
    repeats=repeating("append", how=Repeated(within=r"^\[\d+, ?(.*)\]$")),
    evidence=always(*any_ok("read"), in_json("append", is_list, "that says where")),
    decided=Decided(by=AppendLog(), columns=Columns.CONTENTS),
)
