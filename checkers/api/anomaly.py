"""Anomalies: explanations as data first; prose and pages render them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """One broken promise, with the operations that witness it."""

    name: str
    """The field's term, e.g. `lost-write`, `inconsistent-offsets`, `nonlinearizable`."""
    key: str | None = None
    operations: tuple[int, ...] = ()
    """History indices of the witnesses, fewest that prove it."""
    because: str
    """One sentence with the actual values: why these operations cannot all be right."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON-able facts the sentence was made from."""
