"""Registers by their decider and by search, against a search through all orders that is too simple to be wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.kernels.columns import FAIL, INFO, INVOKE, NONE, OK
from checkers.linearizable.deciders.register_functions import CAS, CAS_MISS, READ, WRITE
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Spans
from checkers.linearizable.model import FailedCas
from checkers.linearizable.objects.register import Register, cas_register, suspects
from checkers.linearizable.registers.findings import calls_of_spans
from checkers.linearizable.registers.rows import SPANS, RegisterOperations, all_whole, from_table
from checkers.linearizable.replay import OBJECTS, fault
from checkers.linearizable.search.decision import LINEARIZABLE
from checkers.linearizable.search.parts import decide_parts, parts
from checkers.linearizable.values import NEVER
from tests.references.thousands import thousands

MOST_OPERATIONS = 7
LIMIT = 100_000


@dataclass
class Call:
    """One operation while a history is made up."""

    process: int
    f: int
    value: int
    expected: int
    outcome: int = INFO


def brute_force(spans: Spans) -> bool:
    """Try every order that respects time, with and without each indefinite operation."""
    everything = range(len(spans))
    values = np.where(spans.f == READ, spans.result, spans.argument).tolist()
    assert spans.expected is not None
    expects = spans.expected.tolist()

    def explained(value: int, left: frozenset[int]) -> bool:
        if all(spans.end[i] == NEVER for i in left):
            return True
        for i in left:
            if any(spans.end[j] < spans.start[i] for j in left):
                continue
            f = spans.f[i]
            fits = f == WRITE or (value == (values[i] if f == READ else expects[i])) == (f != CAS_MISS)
            if fits and explained(value if f == CAS_MISS else values[i], left - {i}):
                return True
            if spans.end[i] == NEVER and explained(value, left - {i}):
                return True
        return False

    return explained(NONE, frozenset(everything))


def by_search(spans: Spans, failed_cas: FailedCas = FailedCas.IGNORED) -> bool:
    model = cas_register(failed_cas)
    return decide_parts(parts(model, calls_of_spans(model, spans)), limit=LIMIT)[1].outcome == LINEARIZABLE


def fault_of_order(spans: Spans, order: list[int]) -> str | None:
    """What the replay of certificates has against it."""
    rows: list[dict[str, Any]] = []
    assert spans.expected is not None
    columns = (spans.start, spans.end, spans.f, spans.argument, spans.result, spans.expected)
    for number, (start, end, f, *numbers) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        written, read, expected = (None if one == NONE else one for one in numbers)
        argument = [expected, written] if f == CAS else written
        row = {"process": number, "key": "k", "f": ("read", "write", "cas")[f], "error": None}
        rows.append(row | {"type": "invoke", "index": start, "value": argument})
        if end != NEVER:
            rows.append(row | {"type": "ok", "index": end, "value": read if f == READ else argument})
    rows.sort(key=lambda row: row["index"])
    return fault(rows, {"k": spans.start[order].tolist()}, lambda: OBJECTS["register"](None), answers=False)


def made_up(rng: random.Random, *, unique: bool) -> list[tuple[int, int, int, int, int]]:
    """Rows (process, type, f, value, expected) of a register that mostly works."""
    rows = []
    value = NONE
    opened: dict[int, Call] = {}
    lies = rng.random() < 0.7
    written = [NONE]
    next_value = 1
    process_of = list(range(4))
    for _ in range(rng.randint(3, MOST_OPERATIONS)):
        place = rng.randrange(4)
        while place in opened and rng.random() < 0.9:
            _complete(opened.pop(place), rows, process_of, place)
            place = rng.randrange(4)
        if place in opened:
            _complete(opened.pop(place), rows, process_of, place)
        f = rng.choice((READ, READ, WRITE, CAS))
        fresh = next_value if unique else rng.randint(1, 3)
        next_value += 1
        expected = rng.choice([v for v in written if v != NONE] or [1])
        call = Call(process_of[place], f, fresh, expected)
        rows.append((call.process, INVOKE, f, NONE if f == READ else fresh, expected if f == CAS else NONE))
        fate = rng.random()
        happens = fate < 0.85
        call.outcome = OK if fate < 0.75 else INFO
        if f == READ:
            call.value = rng.choice(written) if lies and rng.random() < 0.6 else value
        elif f == WRITE and happens:
            value = fresh
        elif f == CAS:
            if value == expected or (lies and rng.random() < 0.2):
                value = fresh if happens else value
            else:
                call.outcome = FAIL
        if f != READ:
            written.append(fresh)
        opened[place] = call
        if rng.random() < 0.4:
            _complete(opened.pop(place), rows, process_of, place)
    for place in list(opened):
        if rng.random() < 0.8:
            _complete(opened.pop(place), rows, process_of, place)
    return rows


def _complete(call: Call, rows: list[tuple[int, int, int, int, int]], process_of: list[int], place: int) -> None:
    rows.append((call.process, call.outcome, call.f, call.value, call.expected if call.f == CAS else NONE))
    if call.outcome == INFO:
        process_of[place] += 4


def recorded(
    histories: Sequence[list[tuple[int, int, int, int, int]]], failed_cas: FailedCas = FailedCas.IGNORED
) -> RegisterOperations:
    columns: dict[str, list[object]] = {name: [] for name in SPANS.names}
    for number, rows in enumerate(histories):
        for index, (process, kind, f, value, expected) in enumerate(rows):
            missed = failed_cas is FailedCas.ANSWER and f == CAS and kind == FAIL
            row = (0, f"{number:05}", OK if missed else kind, process, index, index, CAS_MISS if missed else f)
            for name, cell in zip(SPANS.names, (*row, value, expected), strict=True):
                columns[name].append(cell)
    return all_whole(from_table(pa.table(columns, schema=SPANS)))


def registers(
    histories: Sequence[list[tuple[int, int, int, int, int]]], failed_cas: FailedCas = FailedCas.IGNORED
) -> list[tuple[str, Spans]]:
    whole = recorded(histories, failed_cas)
    return list(whole.by_register(np.unique(whole.register)))


def several(seeds: range, *, unique: bool) -> list[list[tuple[int, int, int, int, int]]]:
    return [made_up(random.Random(f"{unique} {seed}"), unique=unique) for seed in seeds]


@thousands()
@pytest.mark.parametrize("unique", [True, False], ids=["unique-values", "repeated-values"])
def test_no_history_is_judged_otherwise_than_by_brute_force(unique: bool, seeds: range) -> None:
    histories = several(seeds, unique=unique)
    whole = recorded(histories)
    suspected = {whole.names[number] for number in suspects(whole.registers(NONE)).tolist()}
    valid = invalid = 0
    for key, spans in registers(histories):
        expected = brute_force(spans)
        valid, invalid = valid + expected, invalid + (not expected)
        assert by_search(spans) is expected, histories[int(key)]
        outcome = Register().decide(spans, ())
        assert isinstance(outcome, Ordered) is (key not in suspected)
        if isinstance(outcome, Open):
            assert not unique
            continue
        assert isinstance(outcome, Ordered) is expected, (histories[int(key)], outcome)
        if expected:
            assert fault_of_order(spans, Register().order(spans, ()).tolist()) is None, histories[int(key)]
    assert min(valid, invalid) > len(seeds) // 10


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(2_000), id="0"),
        pytest.param(range(2_000, 5_000), marks=pytest.mark.thorough, id="2000"),
    ],
)
def test_a_failed_cas_that_is_an_answer_is_judged_as_by_brute_force(seeds: range) -> None:
    histories = several(seeds, unique=False)
    ignoring = {key: by_search(spans) for key, spans in registers(histories)}
    differing = 0
    for key, spans in registers(histories, FailedCas.ANSWER):
        expected = brute_force(spans)
        assert by_search(spans, FailedCas.ANSWER) is expected, histories[int(key)]
        differing += expected is not ignoring.get(key, True)
    assert differing > len(seeds) // 1_000, "a failed cas must decide some of them"


@thousands()
def test_witnesses_of_unique_values_contradict_each_other_on_their_own(seeds: range) -> None:
    histories = several(seeds, unique=True)
    checked = 0
    for key, spans in registers(histories):
        found = Register().decide(spans, ())
        if not isinstance(found, Contradiction):
            continue
        alone = np.zeros(len(spans), dtype=np.bool_)
        alone[sorted(found.operations)] = True
        assert not brute_force(spans.part(alone)), (histories[int(key)], found)
        checked += 1
    assert checked > len(seeds) // 10
