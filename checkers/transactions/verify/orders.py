"""Orders: replayed, transaction by transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.transactions.verify.commits import require_commit_order
from checkers.transactions.verify.models import Family, Kept, Model
from checkers.transactions.verify.recorded import WORD, Operation, Recorded, Refuted
from checkers.transactions.verify.writes import require_order_of_writes

State = dict[int, Any]
"""key -> what it holds: a number, or the bytes of a list. Keys that nobody wrote are not in it."""

Event = tuple[int, int]
"""A transaction, and 0 where it begins, 1 where it commits."""


def require_order(history: Recorded, model: Model, order: Any) -> None:
    """Raises Refuted unless this order explains what the transactions of the history read."""
    if not isinstance(order, list):
        raise Refuted("the certificate has no order")
    if model.family is Family.SNAPSHOT:
        events = _events(history, order)
    else:
        numbers = [history.named(name) for name in order]
        _require_all_once(history, numbers)
        events = [event for number in numbers for event in ((number, 0), (number, 1))]
    _require_outer_order(history, model.keeps, events)
    if model.family is Family.COMMITS:
        require_commit_order(history, model, numbers)
    elif model.family is Family.WRITES:
        require_order_of_writes(history, numbers)
    else:
        _require_explained(history, model, events)


def _writes_of_explained(
    history: Recorded, model: Model, state: State, number: int, operations: Sequence[Operation]
) -> State:
    """What the transaction leaves behind. Raises Refuted if it cannot have read what it read, if that is the state."""
    own: State = {}
    for is_write, key, told in operations:
        if is_write and isinstance(told, int):
            if history.lists:
                own.setdefault(key, bytearray()).extend(told.to_bytes(WORD, "little", signed=True))
            else:
                own[key] = told
        elif key in own and not model.atomic:
            continue
        elif isinstance(told, bytes):
            there, mine = state.get(key, b""), own.get(key, b"")
            if len(told) != len(there) + len(mine) or not told.startswith(there) or not told.endswith(mine):
                raise Refuted(_wrong_read(history, number, key))
        elif told != (own[key] if key in own else state.get(key)):
            raise Refuted(_wrong_read(history, number, key))
    return own


def _require_all_once(history: Recorded, numbers: Sequence[int]) -> None:
    there = set(numbers)
    if len(there) != len(numbers):
        raise Refuted("a transaction is in the order twice")
    for number in numbers:
        if history.failed[number]:
            raise Refuted(f"{history.told(number)} failed, and is in the order")
    says_something = history.first[1:] > history.first[:-1]
    for number in (history.ok & says_something).nonzero()[0].tolist():
        if number not in there:
            raise Refuted(f"{history.told(number)} completed with ok, and is not in the order")


def _events(history: Recorded, order: list[Any]) -> list[Event]:
    events = []
    begun: set[int] = set()
    committed = []
    for name in order:
        if not isinstance(name, str) or name[:1] not in ("b", "c"):
            raise Refuted(f"{name!r} is neither the begin nor the commit of a transaction")
        number = history.named_in(name[1:])
        if name[0] == "c" and number not in begun:
            raise Refuted(f"{history.told(number)} commits before it begins")
        if name[0] == "b" and number in begun:
            raise Refuted(f"{history.told(number)} begins twice")
        if name[0] == "b":
            begun.add(number)
        else:
            committed.append(number)
        events.append((number, "bc".index(name[0])))
    _require_all_once(history, committed)
    if len(begun) != len(committed):
        raise Refuted("a transaction begins and never commits")
    return events


def _require_outer_order(history: Recorded, keeps: Kept, events: Sequence[Event]) -> None:
    """What ended before another one began, in its session or anywhere, has committed when that begins."""
    if keeps is Kept.NOTHING:
        return
    start, end, process = history.start.tolist(), history.end.tolist(), history.process.tolist()
    ok = history.ok.tolist()
    latest: dict[int, int] = {}
    for number, commits in events:
        whose = process[number] if keeps is Kept.SESSIONS else 0
        if not commits:
            latest[whose] = max(latest.get(whose, -1), start[number])
        elif ok[number] and end[number] < latest[whose]:
            raise Refuted(
                f"{start[number]} had ended before {latest[whose]} began, which the order has begin before it commits"
            )


def _require_explained(history: Recorded, model: Model, events: Sequence[Event]) -> None:
    """Each reads what had been committed when it began, and writers of one key do not overlap."""
    state: State = {}
    writing: dict[int, int] = {}
    """key -> the transaction that has begun, will write it and has not committed."""
    written: dict[int, State] = {}
    beginners = history.walk(number for number, commits in events if not commits)
    for number, commits in events:
        if commits:
            for key, value in written.pop(number).items():
                if history.lists:
                    state.setdefault(key, bytearray()).extend(value)
                else:
                    state[key] = value
                del writing[key]
            continue
        own = _writes_of_explained(history, model, state, *next(beginners))
        for key in own:
            if key in writing:
                raise Refuted(
                    f"{history.told(writing[key])} and {history.told(number)} both write {history.keys[key]}, "
                    "and neither had committed when the other began"
                )
            writing[key] = number
        written[number] = own
    if history.lists and not model.atomic:
        _require_beginnings(history, state, [number for number, commits in events if commits])


def _require_beginnings(history: Recorded, state: State, numbers: Sequence[int]) -> None:
    """That every list that was read is one with which the last one begins, whoever appended what."""
    for number, operations in history.walk(numbers):
        for is_write, key, told in operations:
            if not is_write and not state.get(key, b"").startswith(told):
                raise Refuted(_wrong_read(history, number, key))


def _wrong_read(history: Recorded, number: int, key: int) -> str:
    return f"{history.told(number)} could not have read what it read of {history.keys[key]}"
