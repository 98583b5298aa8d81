"""The objects, each as plain as possible: asked to do something, it answers whether that can happen now."""

from __future__ import annotations

import bisect
import json
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Run = Callable[[str, Any, Any, bool], bool]
"""(f, argument, result, whether the result is known) -> whether it can happen now. If it can, it has happened."""


def same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON: true is not 1, but 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return bool(one == other)


def register(initial: Any) -> Run:
    value = initial

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal value
        if f == "read":
            return not is_definite or same(result, value) or (result is None and initial is not None)
        if f == "cas" and result == "failed":
            return not same(value, argument[0])
        if f == "cas" and not same(value, argument[0]):
            return False
        value = argument[1] if f == "cas" else argument
        return True

    return run


def multi_register(initial: Any) -> Run:
    written = partial(json.dumps, sort_keys=True)
    values = {written(name): value for name, value in (initial or {}).items()}

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        is_shown = is_definite and result is not None
        for what, name, value in result if is_shown else argument:
            if what in ("w", "write"):
                values[written(name)] = value
            elif is_shown and not same(values.get(written(name)), value):
                return False
        return True

    return run


def map_entry(initial: Any) -> Run:
    value = initial

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal value
        if f == "get":
            return not is_definite or same(result, value) or (value is None and result == "")
        value = argument if f == "put" or value is None else value + argument
        return True

    return run


def set_of_elements(initial: Any) -> Run:
    """A set. Elements are kept as their JSON, because they may be lists."""
    written = partial(json.dumps, sort_keys=True)
    elements = set(map(written, initial or []))

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        if f == "read":
            return not is_definite or (result is not None and set(map(written, result)) == elements)
        element = written(argument)
        present = element in elements
        if f == "contains":
            return not is_definite or result is present
        if f == "add":
            elements.add(element)
            return result is not present if is_definite and isinstance(result, bool) else True
        elements.discard(element)
        return result is present if is_definite and isinstance(result, bool) else True

    return run


def mutex(initial: Any) -> Run:
    locked = bool(initial)

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal locked
        fits = locked is (f == "release")
        locked = f == "acquire"
        return fits

    return run


def fenced_lock(initial: Any) -> Run:
    held, token, at_least = False, initial or 0, False

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal held, token, at_least
        if f == "acquire":
            if held or (is_definite and not (type(result) is int and result > token)):
                return False
            held, token, at_least = True, result if is_definite else token + 1, not is_definite
            return True
        if not held:
            return False
        held = False
        if type(argument) is int:
            if argument < token or (argument > token and not at_least):
                return False
            token = argument
        return True

    return run


def leased_lock(initial: Any) -> Run:
    newest = initial or 0

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal newest
        if f == "release":
            return same(argument, newest)
        if is_definite:
            if type(result) is not int or result <= newest:
                return False
            newest = result
        return True

    return run


def counter(initial: Any) -> Run:
    total = initial or 0

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal total
        if f == "read":
            return not is_definite or same(result, total)
        total += argument
        return True

    return run


def fifo_queue(initial: Any) -> Run:
    queue = deque(initial or [])

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        if f == "enqueue":
            queue.append(argument)
            return True
        told = queue.popleft() if queue else None
        return not is_definite or same(told, result)

    return run


def unordered_queue(initial: Any) -> Run:
    """An unordered queue. A dequeue of unknown outcome took any element that was there, or did not happen. That matters
    only when nothing is there: by then each element that was not returned must have been taken by one that ran after it
    was put."""
    moment = 0
    put: dict[str, list[int]] = {}
    unknown: list[int] = []

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        nonlocal moment
        moment += 1
        if f == "enqueue":
            put.setdefault(json.dumps(argument, sort_keys=True), []).append(moment)
            return True
        if not is_definite:
            unknown.append(moment)
            return True
        told = json.dumps(result, sort_keys=True)
        if told in put:
            put[told].pop()
            if not put[told]:
                del put[told]
            return True
        left = sorted(moment for moments in put.values() for moment in moments)
        latest = unknown[max(len(unknown) - len(left), 0) :]
        gone = len(left) == len(latest) and all(before < after for before, after in zip(left, latest, strict=True))
        put.clear()
        unknown.clear()
        return result is None and gone

    for element in initial or []:
        run("enqueue", element, element, True)
    return run


def priority_queue(initial: Any) -> Run:
    queue = sorted(initial or [])

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        if f == "enqueue":
            bisect.insort(queue, argument)
            return True
        told = queue.pop(0) if queue else None
        return not is_definite or same(told, result)

    return run


def stack(initial: Any) -> Run:
    elements = list(initial or [])

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        if f == "push":
            elements.append(argument)
            return True
        told = elements.pop() if elements else None
        return not is_definite or same(told, result)

    return run


def append_log(initial: Any) -> Run:
    log = list(initial or [])

    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        if f == "read":
            return not is_definite or same(result, log)
        log.append(argument)
        if is_definite and isinstance(result, list) and not same(result, argument):
            return same(result, [len(log) - 1, argument])
        return True

    return run


def echo(initial: Any) -> Run:
    def run(f: str, argument: Any, result: Any, is_definite: bool) -> bool:
        return not is_definite or same(result, argument)

    return run


OBJECTS: Mapping[str, Callable[[Any], Run]] = {
    "register": register,
    "cas-register": register,
    "multi-register": multi_register,
    "map": map_entry,
    "set": set_of_elements,
    "mutex": mutex,
    "fenced-lock": fenced_lock,
    "leased-lock": leased_lock,
    "counter": counter,
    "fifo-queue": fifo_queue,
    "unordered-queue": unordered_queue,
    "priority-queue": priority_queue,
    "stack": stack,
    "append-log": append_log,
    "echo": echo,
}


FUNCTIONS: Mapping[str, frozenset[str]] = {
    "register": frozenset({"read", "write"}),
    "cas-register": frozenset({"read", "write", "cas"}),
    "multi-register": frozenset({"read", "write", "txn"}),
    "map": frozenset({"get", "put", "append"}),
    "set": frozenset({"read", "contains", "add", "remove"}),
    "mutex": frozenset({"acquire", "release"}),
    "fenced-lock": frozenset({"acquire", "release"}),
    "leased-lock": frozenset({"acquire", "release"}),
    "counter": frozenset({"add", "read"}),
    "fifo-queue": frozenset({"enqueue", "dequeue"}),
    "unordered-queue": frozenset({"enqueue", "dequeue"}),
    "priority-queue": frozenset({"enqueue", "dequeue"}),
    "stack": frozenset({"push", "pop"}),
    "append-log": frozenset({"append", "read"}),
    "echo": frozenset({"echo"}),
}
"""The functions of each object."""
