"""Made-up histories of queues to which no element is put twice, and their verdict by trying all orders."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from checkers.kernels.columns import NONE
from checkers.linearizable.deciders.spans import Spans
from checkers.linearizable.model import INDEFINITE, Call, Model
from checkers.linearizable.values import NEVER
from tests.references.interleaving import Open, interleave

Rows = list[dict[str, Any]]


def made_up_rows(
    model: Model, initial: Sequence[int], rng: random.Random, operations: int, *, lies: float, unknown: float
) -> Rows:
    """Rows of a history; the queue takes effect somewhere between begin and end, or lies."""
    begin = model.beginning_with(list(initial))
    state = begin.initial
    put, take = model.functions
    rows: Rows = []
    values = [value for value in range(len(initial) + operations) if value not in initial]
    fresh = iter(rng.sample(values, len(values)))
    opened: dict[int, Open] = {}
    asks = rng.uniform(0.3, 0.8)

    def row(process: int, kind: str, f: str, value: Any) -> None:
        rows.append(
            {"index": len(rows), "process": process, "type": kind, "f": f, "key": "k", "value": value, "error": None}
        )

    def take_effect(f: str, argument: int | None, answers: list[Any]) -> None:
        nonlocal state
        if not answers:
            state, answer = rng.choice(list(begin.apply(state, Call(f=f, argument=argument, result=INDEFINITE))))
            answers.append(answer if f == take else argument)

    def never_taken() -> list[int]:
        """What was put, and taken by no operation so far: lies about these are hard to see."""
        asked = [one["value"] for one in rows if one["type"] == "invoke" and one["f"] == put]
        taken = {one["value"] for one in rows if one["type"] == "ok" and one["f"] == take}
        return [value for value in [*initial, *asked] if value not in taken]

    def complete(process: int) -> None:
        f, argument, answers = opened.pop(process)
        if rng.random() < unknown:
            if rng.random() < 0.5:
                row(process, "info", f, argument)
            return
        take_effect(f, argument, answers)
        answer = answers[0]
        if f == take and rng.random() < lies:
            answer = rng.choice([None, rng.randrange(len(initial) + operations), *never_taken(), *never_taken()])
        row(process, "ok", f, answer)

    def asked() -> Iterator[tuple[int, str, int | None]]:
        for process in range(operations):
            yield process, *((take, None) if rng.random() < asks else (put, next(fresh)))

    interleave(asked(), row=row, take_effect=take_effect, complete=complete, opened=opened, rng=rng)
    return rows


def spans_of(model: Model, rows: Rows) -> Spans:
    """Without what failed; none of these do."""
    begun = [row for row in rows if row["type"] == "invoke"]
    ended = {row["process"]: row for row in rows if row["type"] == "ok"}
    ends = [ended.get(row["process"]) for row in begun]
    return Spans(
        start=np.array([row["index"] for row in begun], dtype=np.int64),
        end=np.array([end["index"] if end else NEVER for end in ends], dtype=np.int64),
        f=np.array([model.functions.index(row["f"]) for row in begun], dtype=np.int8),
        argument=np.array([_number(row["value"]) for row in begun], dtype=np.int64),
        result=np.array([_number(end["value"] if end else None) for end in ends], dtype=np.int64),
    )


def _number(value: int | None) -> int:
    return NONE if value is None else value


def linearizable(model: Model, spans: Spans, initial: Sequence[int], chosen: Sequence[int]) -> bool:
    """Whether these operations have an order that the model allows."""
    operations = [
        (
            int(spans.start[i]),
            int(spans.end[i]),
            Call(
                f=model.functions[spans.f[i]],
                argument=_value(spans.argument[i]),
                result=INDEFINITE if spans.end[i] == NEVER else _value(spans.result[i]),
            ),
        )
        for i in chosen
    ]
    return has_order(model.beginning_with(list(initial)), operations)


def has_order(model: Model, operations: Sequence[tuple[int, int, Call]]) -> bool:
    """Whether calls with their begins and ends have an order that the model allows: all are tried that respect time."""
    everything = (1 << len(operations)) - 1
    must = sum(1 << i for i, (_, end, _) in enumerate(operations) if end != NEVER)
    seen = set()
    waiting = [(0, model.initial)]
    while waiting:
        configuration = waiting.pop()
        if configuration in seen:
            continue
        seen.add(configuration)
        done, state = configuration
        if done & must == must:
            return True
        left = [(1 << i, one) for i, one in enumerate(operations) if (everything & ~done) >> i & 1]
        first_end = min(end for _, (_, end, _) in left)
        for bit, (start, _, call) in left:
            if start < first_end:
                waiting += [(done | bit, after) for after in model.step(state, call)]
    return False


def _value(number: int) -> int | None:
    return None if number == NONE else int(number)
