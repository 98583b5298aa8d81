"""Reads the two files with code of its own, and refuses files of another kind with a message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.linearizable.replay.objects import OBJECTS

LARGEST_BYTES = 1 << 30
"""The largest certificate, which is read as a whole."""
COLUMNS = ("index", "process", "type", "f", "key", "value", "error")


def is_own(model: Any) -> bool:
    """Whether it is a user's own model, named module:NAME."""
    return isinstance(model, str) and ":" in model


class Unreadable(Exception):
    """A file cannot be used, and why."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The content of a file; None for what is not in it."""

    orders: Mapping[str, list[int]]
    model: str | None = None
    failed_cas: str | None = None
    initial: Any = None
    says_initial: bool = False


def _require_file(path: Path) -> None:
    """Raises OSError, Unreadable."""
    path.stat()
    if not path.is_file():
        raise Unreadable(f"{path} is no file")


def certificate(path: Path) -> Certificate:
    """Raises OSError, Unreadable."""
    _require_file(path)
    if path.stat().st_size > LARGEST_BYTES:
        raise Unreadable(f"{path} is larger than {LARGEST_BYTES >> 20} MiB")
    head: dict[str, Any] = {}
    orders: dict[str, list[int]] = {}
    with path.open("rb") as file:
        if file.peek(1)[:1] != b"{":
            raise Unreadable(f"{path} is no certificate of orders: it does not begin with '{{'")
        for number, line in enumerate(file, start=1):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Unreadable(f"{path} is no certificate of orders: line {number} is no JSON: {error}") from None
            if number == 1 and isinstance(entry, dict) and "order" not in entry:
                head = entry
                continue
            key, order = _entry(entry, f"{path}, line {number}")
            if key in orders:
                raise Unreadable(f"{path}, line {number}: a second order of {key!r}")
            orders[key] = order
    model, failed_cas = head.get("model"), head.get("failed_cas")
    if head and model not in list(OBJECTS) and not is_own(model):
        raise Unreadable(f"{path} is of a model {model!r}; known are: {', '.join(sorted(OBJECTS))}")
    if failed_cas not in (None, "ignored", "answer"):
        raise Unreadable(f"{path} says of failed cas {failed_cas!r}; known are: ignored, answer")
    return Certificate(
        orders=orders,
        model=model,
        failed_cas=failed_cas,
        initial=head.get("initial"),
        says_initial=bool(head),
    )


def _entry(entry: Any, where: str) -> tuple[str, list[int]]:
    if not isinstance(entry, dict) or not {"key", "order"} <= entry.keys():
        raise Unreadable(f"{where} is no order: an object with key and order was expected")
    key, order = entry["key"], entry["order"]
    if not isinstance(key, (str, type(None))):
        raise Unreadable(f"{where}: a key is text, not {str(key)[:40]}")
    if not isinstance(order, list) or any(type(index) is not int for index in order):
        raise Unreadable(f"{where}: an order is a list of indices")
    return key or "", order


def history(path: Path) -> list[dict[str, Any]]:
    """The rows, by index. Raises OSError, Unreadable."""
    _require_file(path)
    try:
        table = pq.ParquetFile(path).read(columns=list(COLUMNS))
        missing = sorted(set(COLUMNS) - set(table.column_names))
        if missing:
            raise Unreadable(f"{path} is no history: it has no column {missing[0]}")
        rows = [row | {"value": plain(row["value"])} for row in table.to_pylist()]
    except (pa.ArrowException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(
            f"{path} is no history in Parquet, such as stormproof check keeps: {first_line(error)}"
        ) from None
    for row in rows:
        if type(row["index"]) is not int or type(row["process"]) is not int or not isinstance(row["key"] or "", str):
            raise Unreadable(f"{path} is no history: row {row['index']!r} has no index, process or key as they must be")
        if row["type"] not in ("invoke", "ok", "fail", "info"):
            raise Unreadable(f"{path} is no history: row {row['index']} is of type {row['type']!r}")
    return sorted(rows, key=lambda row: row["index"])


def first_line(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) else None
    return (words or str(error)).partition("\n")[0] or type(error).__name__


def plain(value: Any) -> Any:
    """A history's value as plain data."""
    if value is None:
        return None
    if "json" in value:
        return None if value["json"] is None else json.loads(value["json"])
    if value.get("expected") is not None:
        return [value["expected"], value.get("value")]
    return value.get("value")
