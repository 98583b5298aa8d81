"""Made-up histories of one object of any model, most of which are nearly right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from checkers.linearizable.model import ANYTHING, FAILED, INDEFINITE, Call, FailedCas, Model
from checkers.linearizable.objects import MODELS
from checkers.linearizable.objects.register import cas_register
from checkers.linearizable.values import frozen

Rows = list[dict[str, Any]]
Asked = tuple[str, Any]


def _small(rng: random.Random) -> int:
    return rng.randint(1, 3)


def _one_of(*names: str) -> Callable[[random.Random], Asked]:
    """Names with a value, and `read`, `dequeue`, … without."""
    without = {"read", "dequeue", "pop", "acquire", "release", "get"}

    def asked(rng: random.Random) -> Asked:
        f = rng.choice(names)
        return f, None if f in without else (_small(rng) if f != "append-text" else "")

    return asked


def _cas(rng: random.Random) -> Asked:
    f = rng.choice(("read", "read", "write", "cas"))
    return f, {"read": None, "write": _small(rng), "cas": [_small(rng), _small(rng)]}[f]


def _several_registers(rng: random.Random) -> Asked:
    parts = [[rng.choice(("r", "w")), rng.choice("xy"), _small(rng)] for _ in range(rng.randint(1, 2))]
    return "txn", [[f, name, None if f == "r" else value] for f, name, value in parts]


def _map(rng: random.Random) -> Asked:
    f = rng.choice(("get", "get", "put", "append"))
    return f, None if f == "get" else rng.choice("ab")


def _lock(rng: random.Random) -> Asked:
    f = rng.choice(("acquire", "release"))
    return f, _small(rng) if f == "release" and rng.random() < 0.3 else None


def _lease(rng: random.Random) -> Asked:
    f = rng.choice(("acquire", "release"))
    return f, _small(rng) if f == "release" else None


ASKED: dict[str, Callable[[random.Random], Asked]] = {
    "register": _one_of("read", "write"),
    "cas-register": _cas,
    "multi-register": _several_registers,
    "map": _map,
    "set": _one_of("add", "remove", "contains", "read"),
    "mutex": _one_of("acquire", "release"),
    "fenced-lock": _lock,
    "leased-lock": _lease,
    "counter": _one_of("add", "read"),
    "fifo-queue": _one_of("enqueue", "dequeue"),
    "unordered-queue": _one_of("enqueue", "dequeue"),
    "priority-queue": _one_of("enqueue", "dequeue"),
    "stack": _one_of("push", "pop"),
    "append-log": _one_of("append", "read"),
    "echo": _one_of("echo"),
}

VARIANTS: dict[str, Model] = {**MODELS, "cas-register answer": cas_register(FailedCas.ANSWER)}

BEGINNINGS: dict[str, Any] = {
    "register": 2,
    "cas-register": 2,
    "cas-register answer": 2,
    "multi-register": {"x": 1, "y": 3},
    "map": "a",
    "set": [1, 3],
    "fenced-lock": 1,
    "leased-lock": 1,
    "counter": 2,
    "fifo-queue": [2, 1],
    "unordered-queue": [1, 2, 2],
    "priority-queue": [1, 3],
    "stack": [1, 2],
    "append-log": [3],
}
"""By variant, values to begin with instead of the usual one."""


def made_up(model: Model, rng: random.Random, operations: int) -> Rows:
    """Rows of a history; the object takes effect somewhere between begin and end, or lies."""
    rows: Rows = []
    state = model.initial
    lies = rng.random() < 0.6
    opened: dict[int, tuple[int, str, Any, str, Any]] = {}
    life = list(range(3))

    def row(process: int, kind: str, f: str, value: Any) -> None:
        rows.append(
            {"index": len(rows), "process": process, "type": kind, "f": f, "key": "k", "value": value, "error": None}
        )

    def take_effect(f: str, argument: Any) -> tuple[str, Any]:
        nonlocal state
        undecided = Call(f=f, argument=frozen(argument), result=INDEFINITE)
        possible = list(model.apply(state, undecided))
        fate = "ok" if rng.random() < 0.85 else "info"
        if not possible:
            return ("fail" if f == "cas" or not lies or rng.random() < 0.5 else fate), argument
        after, answer = rng.choice(possible)
        if model.name == "leased-lock" and f == "acquire":
            after += rng.randint(1, 2)
        if fate == "info" and rng.random() < 0.5:
            return fate, argument
        state = after
        result = _result(model, f, argument, answer, after, rng)
        if lies and rng.random() < 0.3:
            result = _lie(f, result, rng)
        return fate, result if fate == "ok" else argument

    def complete(place: int) -> None:
        process, f, argument, fate, result = opened.pop(place)
        if fate == "":
            fate, result = take_effect(f, argument)
        row(process, fate, f, argument if fate == "fail" else result)
        life[place] += 3 if fate == "info" else 0

    for _ in range(operations):
        place = rng.randrange(3)
        if place in opened:
            complete(place)
        f, argument = ASKED[model.name](rng)
        row(life[place], "invoke", f, argument)
        fate, result = take_effect(f, argument) if rng.random() < 0.5 else ("", None)
        opened[place] = (life[place], f, argument, fate, result)
        if rng.random() < 0.4:
            complete(rng.choice(sorted(opened)))
    for place in sorted(opened):
        if rng.random() < 0.9:
            complete(place)
    return rows


def _result(model: Model, f: str, argument: Any, answer: Any, after: Any, rng: random.Random) -> Any:
    if model.name == "multi-register":
        values = dict(after)
        return [
            [what, name, values.get(name)] if what == "r" else [what, name, value] for what, name, value in argument
        ]
    if model.name == "fenced-lock" and f == "acquire":
        return int(after[1])
    if model.name == "leased-lock" and f == "acquire":
        return int(after)
    if model.name == "set" and f in ("add", "remove") and rng.random() < 0.3:
        return rng.random() < 0.5
    if model.name == "append-log" and f == "append" and rng.random() < 0.5:
        return [len(after) - 1, argument]
    if answer is ANYTHING or answer is FAILED:
        return argument
    return list(answer) if isinstance(answer, tuple) else answer


def _lie(f: str, result: Any, rng: random.Random) -> Any:
    if isinstance(result, bool):
        return not result
    if f in ("read", "dequeue", "pop", "get", "acquire") and isinstance(result, int):
        return _small(rng)
    if f in ("dequeue", "pop"):
        return rng.choice((None, 1, 2, 3))
    if f == "get":
        return rng.choice(("", "a", "ab", "b"))
    if f == "read" and isinstance(result, list):
        return result[:-1] if result and rng.random() < 0.5 else [*result, _small(rng)]
    if f == "read":
        return rng.choice((1, 2, 3))
    if f == "echo":
        return _small(rng)
    if f == "txn":
        return [[what, name, _small(rng) if what == "r" else value] for what, name, value in result]
    return result
