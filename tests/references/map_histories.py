"""Made-up histories of one entry of a map, most of which are nearly right."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from checkers.linearizable.model import INDEFINITE, Call, Model
from checkers.linearizable.values import NEVER, frozen
from tests.references.interleaving import Open, interleave

Rows = list[dict[str, Any]]

VALUES: dict[str, Callable[[int, random.Random], Any]] = {
    "texts": lambda number, rng: f"{number};",
    "again": lambda number, rng: rng.choice("abcd"),
    "alike": lambda number, rng: rng.choice(("a", "aa", "ab", "b", "ba")),
    "lists": lambda number, rng: [number] if rng.random() < 0.8 else [number, "x"],
    "numbers": lambda number, rng: number,
}
"""What is put and appended: fresh values, or values that come again, or that cannot be told apart."""


def made_up_entry(
    initial: Any, values: str, rng: random.Random, operations: int, *, lies: float, unknown: float
) -> Rows:
    """Rows of a history; the entry takes effect somewhere between begin and end, or lies."""
    state: Any = initial
    rows: Rows = []
    opened: dict[int, Open] = {}
    shown: list[Any] = [initial]
    changes = rng.choice((("put", "append", "append"), ("append",), ("put",)))
    gets = rng.uniform(0.3, 0.7)
    if values == "numbers":
        changes = ("put",)

    def row(process: int, kind: str, f: str, value: Any) -> None:
        rows.append(
            {"index": len(rows), "process": process, "type": kind, "f": f, "key": "k", "value": value, "error": None}
        )

    def take_effect(f: str, argument: Any, answers: list[Any]) -> None:
        nonlocal state
        if answers:
            return
        if f != "get":
            state = argument if f == "put" or state is None else state + argument
            shown.append(state)
        answers.append(state if f == "get" else argument)

    def complete(process: int) -> None:
        f, argument, answers = opened.pop(process)
        if rng.random() < unknown:
            if rng.random() < 0.5:
                row(process, "info", f, argument)
            return
        if f != "get" and not answers and rng.random() < lies / 2:
            row(process, "fail" if rng.random() < 0.5 else "ok", f, argument)
            return
        take_effect(f, argument, answers)
        answer = answers[0]
        if f == "get" and rng.random() < lies:
            answer = rng.choice(shown)
            if not isinstance(answer, int | None) and rng.random() < 0.4:
                answer = answer[: rng.randint(0, len(answer))] + answer[rng.randint(0, len(answer)) :]
        if answer is None and rng.random() < 0.3:
            answer = "" if f == "get" and values != "lists" else None
        row(process, "ok", f, answer)

    def asked() -> Iterator[tuple[int, str, Any]]:
        for process in range(operations):
            f = "get" if rng.random() < gets else rng.choice(changes)
            yield process, f, None if f == "get" else VALUES[values](process, rng)

    interleave(asked(), row=row, take_effect=take_effect, complete=complete, opened=opened, rng=rng)
    return rows


def operations_in(rows: Rows) -> list[tuple[int, int, Call]]:
    """Begin, end and call; without what failed, and gets that were never answered."""
    ended = {row["process"]: row for row in rows if row["type"] in ("ok", "fail")}
    found = []
    for begun in rows:
        end = ended.get(begun["process"])
        if begun["type"] != "invoke" or (end is None and begun["f"] == "get") or (end and end["type"] == "fail"):
            continue
        result = INDEFINITE if end is None else frozen(end["value"])
        call = Call(f=begun["f"], argument=frozen(begun["value"]), result=result)
        found.append((begun["index"], NEVER if end is None else end["index"], call))
    return found


def as_witnesses(operations: list[tuple[int, int, Call]], chosen: set[int]) -> list[tuple[int, int, Call]]:
    """What is left if only the operations with these starts are known, and of the others what they may have given."""
    return [
        one if one[0] in chosen else (one[0], NEVER, replace(one[2], result=INDEFINITE))
        for one in operations
        if one[0] in chosen or one[2].f != "get"
    ]


def beginning(model: Model, initial: Any) -> Model:
    return model if initial is None else model.beginning_with(initial)
