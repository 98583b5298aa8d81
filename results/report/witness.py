"""A row of a history in words, for people who look at a counterexample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LONGEST_VALUE = 240
MESSAGES_SHOWN = 6

_HAPPENED = {
    "invoke": "asked",
    "ok": "succeeded",
    "fail": "certainly did not happen",
    "info": "outcome unknown",
}


def happened(type_: str) -> str:
    return _HAPPENED.get(type_, type_)


def value_words(value: Mapping[str, Any] | None) -> str:
    """Only the fields that are set, with long lists cut: `message 17, offset 4`."""
    if not value:
        return ""
    parts = [f"{name} {_words(item)}" for name, item in value.items() if item is not None]
    return _short(", ".join(parts))


def _words(item: Any) -> str:
    if isinstance(item, list):
        shown = [_words(part) for part in item[:MESSAGES_SHOWN]]
        more = f", … {len(item)} in all" if len(item) > MESSAGES_SHOWN else ""
        return f"[{', '.join(shown)}{more}]"
    if isinstance(item, Mapping):
        if set(item) == {"offset", "message"}:
            return f"{item['offset']}: {item['message']}"
        return json.dumps(item, ensure_ascii=False, default=str)
    return str(item)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
