"""Whether an order is valid: complete, in real time, and allowed by the object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from checkers.linearizable.replay.files import Unreadable
from checkers.linearizable.replay.objects import Run


def fault(
    rows: Iterable[Mapping[str, Any]], orders: Mapping[str, list[int]], make: Callable[[], Run], answers: bool
) -> str | None:
    """The first fault of these orders, or None. Rows are those of the history, by index, with values as plain data.
    `answers`: a failed cas without an error ran, and found another value. Raises Unreadable if rows are not a
    history."""
    opened: dict[int, Mapping[str, Any]] = {}
    ended: dict[str, dict[int, tuple[Mapping[str, Any], Mapping[str, Any] | None]]] = {}
    for row in rows:
        if row["process"] < 0:
            continue
        if row["type"] == "invoke":
            if row["process"] in opened:
                raise Unreadable(f"row {row['index']}: process {row['process']} has an operation open")
            opened[row["process"]] = row
            ended.setdefault(row["key"] or "", {})[row["index"]] = (row, None)
        else:
            if row["process"] not in opened:
                raise Unreadable(f"row {row['index']}: process {row['process']} completes what it did not invoke")
            begin = opened.pop(row["process"])
            ended[begin["key"] or ""][begin["index"]] = (begin, row)
    for key in orders.keys() - ended.keys():
        if orders[key]:
            return f"{key}: nothing in the history is on this key"
    for key, operations in ended.items():
        wrong = _fault_of_object(operations, orders.get(key, []), make(), answers) if key in orders else "has no order"
        if wrong is not None:
            return f"{key}: {wrong}" if key else wrong
    return None


def _fault_of_object(
    operations: Mapping[int, tuple[Mapping[str, Any], Mapping[str, Any] | None]],
    order: list[int],
    run: Run,
    answers: bool,
) -> str | None:
    if len(set(order)) != len(order):
        return "the order names an operation twice"
    latest_begin = -1
    for index in order:
        if index not in operations:
            return f"{index} is no invocation"
        begin, end = operations[index]
        failed = end is not None and end["type"] == "fail"
        if failed and not _is_answer(begin, end, answers):
            return f"{index} failed"
        known = end is not None and end["type"] != "info"
        if known and end is not None and end["index"] < latest_begin:
            return f"{index} had ended when {latest_begin}, which the order puts before it, began"
        latest_begin = max(latest_begin, index)
        result = "failed" if failed else end["value"] if end is not None else None
        if not run(begin["f"], begin["value"], result, known):
            return f"{begin['f']} {index} could not have returned {result!r}"
    named = set(order)
    for index, (begin, end) in operations.items():
        if index in named or end is None:
            continue
        tells = end["value"] is not None or begin["f"] != "read"
        if (end["type"] == "ok" and tells) or _is_answer(begin, end, answers):
            return f"{index} is missing"
    return None


def _is_answer(begin: Mapping[str, Any], end: Mapping[str, Any] | None, answers: bool) -> bool:
    is_failed_cas = begin["f"] == "cas" and end is not None and end["type"] == "fail" and end["error"] is None
    return answers and is_failed_cas
