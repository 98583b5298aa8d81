"""Our histories, written for Jepsen's tools: EDN, or JSON, one operation a line.

A value whose only field besides nulls is `value` is written plain, a cas as `[expected new]`, the text of `json` as
what it says, others as maps. An operation on a key has its value lifted, `[k v]`, as Jepsen's independent workloads
do, and its position and link beside it; a transaction is a list of `[f key value]`. One on a log is a map with a list
of maps, lifted with the key nil, for the operations beside it have keys; so is every value without a key where others
have one. What the nemesis did has `:nemesis` as its process, and the words of a sentence joined by hyphens as its f.
Memory is bounded by one batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pyarrow as pa

from harness.jepsen.edn import Keyword, Verbatim, parse, written
from harness.jepsen.scan import BESIDE
from harness.jepsen.values import key_of, with_text_keys
from harness.operation import NEMESIS
from harness.record.history import History
from harness.record.history.named_values import ValueNames, names_of

_NO_NAME = re.compile(r"[^\w*!?<>=.+/-]+")
"""What no keyword holds, as the blanks between the words of a fault."""
EXPORTED = ("index", "time", "process", "type", "f", "key", "value", "error", "node")


class Format(Enum):
    EDN = "edn"
    JSON = "json"


def exported(history: History, form: Format) -> Iterator[str]:
    """All operations, a line each. Raises OSError where the history can no longer be read."""
    line = _edn_line if form is Format.EDN else _json_line
    kind = history.value_type
    single = pa.types.is_struct(kind) and {field.name for field in kind} <= {
        "value",
        "expected",
        "json",
        "txn",
        *BESIDE,
    }
    has_keys = not single and any(batch["key"].null_count < len(batch) for batch in history.batches(("key",)))
    names = names_of(history.path)
    for batch in history.batches(EXPORTED):
        for row in batch.to_pylist():
            operation = _operation(row, single, has_keys)
            yield line({**operation, "value": _recorded(operation["value"], names, form)} if names else operation)


def _recorded(value: Any, names: ValueNames, form: Format) -> Any:
    """The value as it was recorded, where it was numbered then."""
    if isinstance(value, dict):
        return {name: _recorded(item, names, form) for name, item in value.items()}
    if isinstance(value, list):
        return [_recorded(item, names, form) for item in value]
    text = names.whole(value) if value.__class__ is int else None
    if text is None:
        return value
    return Verbatim(text) if form is Format.EDN else parse(text.encode())


def _operation(row: dict[str, Any], single: bool, has_keys: bool) -> dict[str, Any]:
    value = row["value"]
    beside = {name: value.pop(name) for name in BESIDE if value is not None and name in value}
    if single and value is not None and value.get("txn") is not None:
        value = [_micro_operation(part) for part in value["txn"]]
    elif single and value is not None:
        value = _plain(row["f"], value)
    is_lifted = row["key"] is not None or (
        not single and value is not None and (row["f"] == "txn" or (has_keys and row["process"] != NEMESIS))
    )
    operation = {
        "index": row["index"],
        "time": row["time"],
        "process": Keyword("nemesis") if row["process"] == NEMESIS else row["process"],
        "type": Keyword(row["type"]),
        "f": Keyword(_NO_NAME.sub("-", row["f"])),
        "value": [row["key"], value] if is_lifted else value,
    }
    known = {"error": row["error"], "node": row["node"], **beside}
    return operation | {name: text for name, text in known.items() if text is not None}


def _plain(f: str, value: dict[str, Any]) -> Any:
    if "json" in value:
        return None if value["json"] is None else json.loads(value["json"])
    return [value.get("expected"), value["value"]] if f == "cas" else value.get("value")


def _micro_operation(part: dict[str, Any]) -> list[Any]:
    return [Keyword(part["f"]), key_of(part["key"]), part["value"] if part["values"] is None else part["values"]]


def _edn_line(operation: dict[str, Any]) -> str:
    return f"{written(operation)}\n"


def _json_line(operation: dict[str, Any]) -> str:
    return json.dumps(with_text_keys(operation), ensure_ascii=False) + "\n"
