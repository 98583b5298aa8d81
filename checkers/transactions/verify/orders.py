"""Orders: replayed, transaction by transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.transactions.verify.commits import require_commit_order
from checkers.transactions.verify.demands import Demand, ExternalOrder, Family
from checkers.transactions.verify.history import WORD, Operation, Refuted, TransactionHistory
from checkers.transactions.verify.writes import require_order_of_writes

State = dict[int, Any]
"""key -> what it holds: a number, or the bytes of a list. Keys that were never written are not in it."""

Event = tuple[int, int]
"""A transaction, and 0 where it begins, 1 where it commits."""


def require_order(history: TransactionHistory, demand: Demand, order: Any) -> None:
    """Raises Refuted unless this order explains what the transactions of the history read."""
    if not isinstance(order, list):
        raise Refuted("the certificate has no order")
    if demand.family is Family.SNAPSHOT:
        events = _events(history, order)
    else:
        numbers = [history.named(name) for name in order]
        _require_all_once(history, numbers)
        events = [event for number in numbers for event in ((number, 0), (number, 1))]
    _require_outer_order(history, demand.keeps, events)
    if demand.family is Family.COMMITS:
        require_commit_order(history, demand, numbers)
    elif demand.family is Family.WRITES:
        require_order_of_writes(history, numbers)
    else:
        _require_explained(history, demand, events)


def _writes_of_explained(
    history: TransactionHistory, demand: Demand, state: State, number: int, operations: Sequence[Operation]
) -> State:
    """The state after the transaction. Raises Refuted if it cannot have read what it read in this state."""
    own: State = {}
    for is_write, key, value in operations:
        if is_write and isinstance(value, int):
            if history.lists:
                own.setdefault(key, bytearray()).extend(value.to_bytes(WORD, "little", signed=True))
            else:
                own[key] = value
        elif key in own and not demand.atomic:
            continue
        elif isinstance(value, bytes):
            there, mine = state.get(key, b""), own.get(key, b"")
            if len(value) != len(there) + len(mine) or not value.startswith(there) or not value.endswith(mine):
                raise Refuted(_wrong_read(history, number, key))
        elif value != (own[key] if key in own else state.get(key)):
            raise Refuted(_wrong_read(history, number, key))
    return own


def _require_all_once(history: TransactionHistory, numbers: Sequence[int]) -> None:
    there = set(numbers)
    if len(there) != len(numbers):
        raise Refuted("a transaction is in the order twice")
    for number in numbers:
        if history.failed[number]:
            raise Refuted(f"{history.name(number)} failed, and is in the order")
    says_something = history.first[1:] > history.first[:-1]
    for number in (history.ok & says_something).nonzero()[0].tolist():
        if number not in there:
            raise Refuted(f"{history.name(number)} completed with ok, and is not in the order")


def _events(history: TransactionHistory, order: list[Any]) -> list[Event]:
    events = []
    begun: set[int] = set()
    committed = []
    for name in order:
        if not isinstance(name, str) or name[:1] not in ("b", "c"):
            raise Refuted(f"{name!r} is neither the begin nor the commit of a transaction")
        number = history.named_in(name[1:])
        if name[0] == "c" and number not in begun:
            raise Refuted(f"{history.name(number)} commits before it begins")
        if name[0] == "b" and number in begun:
            raise Refuted(f"{history.name(number)} begins twice")
        if name[0] == "b":
            begun.add(number)
        else:
            committed.append(number)
        events.append((number, "bc".index(name[0])))
    _require_all_once(history, committed)
    if len(begun) != len(committed):
        raise Refuted("a transaction begins and never commits")
    return events


def _require_outer_order(history: TransactionHistory, keeps: ExternalOrder, events: Sequence[Event]) -> None:
    """Raises Refuted unless a transaction that ended before another one began, in its session or anywhere, has
    committed when that one begins."""
    if keeps is ExternalOrder.NOTHING:
        return
    start, end, process = history.start.tolist(), history.end.tolist(), history.process.tolist()
    ok = history.ok.tolist()
    latest: dict[int, int] = {}
    for number, commits in events:
        whose = process[number] if keeps is ExternalOrder.SESSIONS else 0
        if not commits:
            latest[whose] = max(latest.get(whose, -1), start[number])
        elif ok[number] and end[number] < latest[whose]:
            raise Refuted(
                f"{start[number]} had ended before {latest[whose]} began, which the order has begin before it commits"
            )


def _require_explained(history: TransactionHistory, demand: Demand, events: Sequence[Event]) -> None:
    """Raises Refuted unless each reads what had been committed when it began, and writers of one key do not overlap."""
    state: State = {}
    writing: dict[int, int] = {}
    """key -> the transaction that will write it, and has begun but not committed."""
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
        own = _writes_of_explained(history, demand, state, *next(beginners))
        for key in own:
            if key in writing:
                raise Refuted(
                    f"{history.name(writing[key])} and {history.name(number)} both write {history.keys[key]}, "
                    "and neither had committed when the other began"
                )
            writing[key] = number
        written[number] = own
    if history.lists and not demand.atomic:
        _require_beginnings(history, state, [number for number, commits in events if commits])


def _require_beginnings(history: TransactionHistory, state: State, numbers: Sequence[int]) -> None:
    """Raises Refuted unless every list that was read is a prefix of the last one."""
    for number, operations in history.walk(numbers):
        for is_write, key, value in operations:
            if not is_write and not state.get(key, b"").startswith(value):
                raise Refuted(_wrong_read(history, number, key))


def _wrong_read(history: TransactionHistory, number: int, key: int) -> str:
    return f"{history.name(number)} could not have read what it read of {history.keys[key]}"
