"""The register's two deciders against a search through all orders that is too simple to be wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from checkers.kernels.columns import FAIL, INFO, INVOKE, NONE, OK
from checkers.linearizable.checker import spans_of
from checkers.linearizable.models import FailedCas
from checkers.linearizable.operations import (
    CAS,
    CAS_MISS,
    NEVER,
    READ,
    ROWS,
    WRITE,
    Operations,
    operations_by_key,
)
from checkers.linearizable.replay import OBJECTS, fault
from checkers.linearizable.search import LINEARIZABLE, search
from checkers.linearizable.unique.register import Register
from checkers.linearizable.unique.spans import Contradiction, Open, Ordered

HISTORIES = 10_000
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


def brute_force(operations: Operations) -> bool:
    """Try every order that respects time, with and without each indefinite operation."""
    everything = range(len(operations.f))

    def explained(value: int, left: frozenset[int]) -> bool:
        if all(operations.end[i] == NEVER for i in left):
            return True
        for i in left:
            if any(operations.end[j] < operations.start[i] for j in left):
                continue
            f, of_i, expected = operations.f[i], int(operations.value[i]), operations.expected[i]
            fits = f == WRITE or (value == (of_i if f == READ else expected)) == (f != CAS_MISS)
            if fits and explained(value if f == CAS_MISS else of_i, left - {i}):
                return True
            if operations.end[i] == NEVER and explained(value, left - {i}):
                return True
        return False

    return explained(0, frozenset(everything))


def fault_of_order(operations: Operations, order: list[int]) -> str | None:
    """What the replay of certificates has against it."""
    rows: list[dict[str, Any]] = []
    told = (operations.start, operations.end, operations.f, operations.value, operations.expected)
    for number, (start, end, f, value, expected) in enumerate(zip(*(c.tolist() for c in told), strict=True)):
        argument = None if f == READ else [expected, value] if f == CAS else value
        row = {"process": number, "key": "k", "f": ("read", "write", "cas")[f], "error": None}
        rows.append(row | {"type": "invoke", "index": start, "value": argument})
        if end != NEVER:
            rows.append(row | {"type": "ok", "index": end, "value": value if f == READ else argument})
    rows.sort(key=lambda row: row["index"])
    return fault(rows, {"k": operations.start[order].tolist()}, lambda: OBJECTS["register"](0), answers=False)


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


def registers(
    histories: Sequence[list[tuple[int, int, int, int, int]]], failed_cas: FailedCas = FailedCas.IGNORED
) -> list[tuple[str, Operations]]:
    columns: dict[str, list[object]] = {name: [] for name in ROWS.names}
    for number, rows in enumerate(histories):
        for index, (process, kind, f, value, expected) in enumerate(rows):
            answered = failed_cas is FailedCas.ANSWER and f == CAS and kind == FAIL
            row = (0, f"{number:05}", index, process, kind, f, value, expected, answered)
            for name, cell in zip(ROWS.names, row, strict=True):
                columns[name].append(cell)
    return operations_by_key(pa.table(columns, schema=ROWS))


@pytest.mark.parametrize("unique", [True, False], ids=["unique-values", "repeated-values"])
def test_no_history_is_judged_otherwise_than_by_brute_force(unique: bool) -> None:
    rng = random.Random(20_240 + unique)
    histories = [made_up(rng, unique=unique) for _ in range(HISTORIES // 2)]
    valid = invalid = 0
    for key, operations in registers(histories):
        expected = brute_force(operations)
        valid, invalid = valid + expected, invalid + (not expected)
        found = search(operations, limit=LIMIT)
        assert (found.outcome == LINEARIZABLE) is expected, histories[int(key)]
        outcome = Register().decide(spans_of(operations), ())
        if isinstance(outcome, Open):
            assert not unique
            continue
        assert isinstance(outcome, Ordered) is expected, (histories[int(key)], outcome)
        if expected:
            assert fault_of_order(operations, Register().order(spans_of(operations), ()).tolist()) is None
    assert min(valid, invalid) > HISTORIES // 20


def test_a_failed_cas_that_is_an_answer_is_judged_as_by_brute_force() -> None:
    rng = random.Random(99)
    histories = [made_up(rng, unique=False) for _ in range(HISTORIES // 2)]
    ignoring = {key: search(operations, limit=LIMIT).outcome for key, operations in registers(histories)}
    told = 0
    for key, operations in registers(histories, FailedCas.ANSWER):
        expected = brute_force(operations)
        outcome = search(operations, limit=LIMIT).outcome
        assert (outcome == LINEARIZABLE) is expected, histories[int(key)]
        told += outcome != ignoring.get(key, LINEARIZABLE)
    assert told > 10, "a failed cas must decide some of them"


def test_witnesses_of_unique_values_contradict_each_other_on_their_own() -> None:
    rng = random.Random(7)
    histories = [made_up(rng, unique=True) for _ in range(2_000)]
    checked = 0
    for key, operations in registers(histories):
        found = Register().decide(spans_of(operations), ())
        if not isinstance(found, Contradiction):
            continue
        kept = sorted(found.operations)
        alone = Operations(
            start=operations.start[kept],
            end=operations.end[kept],
            f=operations.f[kept],
            value=operations.value[kept],
            expected=operations.expected[kept],
            values=operations.values,
        )
        assert not brute_force(alone), (histories[int(key)], found)
        checked += 1
    assert checked > 100
