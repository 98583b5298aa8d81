"""A row of a history in words, for people who look at a counterexample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from results.report.escaped import escape

LONGEST_VALUE = 240
MESSAGES_SHOWN = 6
NOTHING = "null"

_HAPPENED = {
    "invoke": "asked",
    "ok": "succeeded",
    "fail": "certainly did not happen",
    "info": "outcome unknown",
}


def happened(type_: str) -> str:
    return _HAPPENED.get(type_, type_)


def numbers_in(details: Mapping[str, Any]) -> frozenset[int]:
    """The whole numbers that an anomaly is about: its messages, its offset."""
    found = [part for item in details.values() for part in (item if isinstance(item, (list, tuple)) else [item])]
    return frozenset(part for part in found if isinstance(part, int))


def value_words(
    value: Mapping[str, Any] | None, about: frozenset[int] = frozenset(), *, completed: bool = False
) -> str:
    """Only the fields that are set, with long lists cut to where they are `about` something: `message 17, offset 4`.
    `null` where none is set, and for what a `completed` operation read as null."""
    if value and set(value) == {"json"}:
        return _short(NOTHING if value["json"] is None else str(value["json"]))
    parts = [f"{name} {_words(item, about, completed)}" for name, item in (value or {}).items() if item is not None]
    return _short(", ".join(parts)) or NOTHING


def _words(item: Any, about: frozenset[int], completed: bool) -> str:
    if isinstance(item, list):
        first = _window(item, about)
        shown = [_words(part, about, completed) for part in item[first : first + MESSAGES_SHOWN]]
        before = ["…"] if first else []
        after = ["…"] if first + MESSAGES_SHOWN < len(item) else []
        total = f" ({len(item)} in all)" if before or after else ""
        return f"[{', '.join([*before, *shown, *after])}]{total}"
    if isinstance(item, Mapping):
        if set(item) == {"f", "key", "value", "values"}:
            return _micro_operation(item, about, completed)
        if set(item) == {"offset", "message"}:
            return f"{item['offset']}: {item['message']}"
        return json.dumps(item, ensure_ascii=False, default=str)
    # A string is shown as it is unless it would be invisible.
    return json.dumps(item, ensure_ascii=False) if isinstance(item, str) and not item.strip() else str(item)


def _micro_operation(item: Mapping[str, Any], about: frozenset[int], completed: bool) -> str:
    """`append x 1`, `w x = 1`, `r x = [1, 2]`; of a read without an answer `r x`, if it completed `r x = null`."""
    answer = item["value"] if item["values"] is None else item["values"]
    shown = _words(answer, about, completed) if answer is not None else NOTHING if completed else None
    equals = "" if shown is None else f" {shown}" if item["f"] == "append" else f" = {shown}"
    return f"{item['f']} {item['key']}{equals}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _window(items: list[Any], about: frozenset[int]) -> int:
    """Where to begin, so that the first item which is all about it is among those shown."""
    if len(items) <= MESSAGES_SHOWN:
        return 0
    position = next(
        (i for i, item in enumerate(items) if isinstance(item, Mapping) and about.issuperset(item.values())), 0
    )
    return max(0, min(position - 2, len(items) - MESSAGES_SHOWN))


def outcome_mark(type_: str) -> str:
    """A dot of its colour, and its name."""
    return f'<span class="nowrap"><span class="dot t-{escape(type_)}"></span>{escape(happened(type_))}</span>'
