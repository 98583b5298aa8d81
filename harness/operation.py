"""What clients did: operations, in the field's own four types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

OperationType = Literal["invoke", "ok", "fail", "info"]

NEMESIS = -1
"""The process number of the nemesis."""


class Operation(NamedTuple):
    """One event of a history: an invocation, or its completion.

    `fail` means that it certainly did not happen. `info` means that nobody knows: it may have happened,
    may still happen, or may never. `value` is a mapping that fits the workload's Arrow struct, or None.
    `index` is dense from 0 in the order recorded and is given by the history writer (-1 before).
    """

    process: int
    type: OperationType
    f: str
    value: Mapping[str, Any] | None = None
    key: str | None = None
    time: int = -1
    """Nanoseconds since the test began, on the harness's clock."""
    error: str | None = None
    node: str | None = None
    index: int = -1  # type: ignore[assignment]  # a column of the history; tuple.index is never wanted here
