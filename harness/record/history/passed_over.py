"""What of a foreign history decides no verdict and was passed over while it was read; it lies with the history."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from harness.record.history.metadata import metadata_of

METADATA = b"stormproof.passed_over"
NAMES_SHOWN = 5


@dataclass
class PassedOver:
    """Counted row by row."""

    notes: int = 0
    """Rows of clients that neither invoke nor complete."""
    functions: Counter[str] = field(default_factory=Counter)
    """Rows of functions that are not the workload's."""
    times: int = 0
    """Times before that of an earlier row."""
    by_ns: int = 0
    """The most by which such a time was earlier."""
    odd_times: int = 0
    """Times that are no number of nanoseconds."""

    def metadata(self) -> dict[bytes, bytes]:
        """What lies with the history; nothing where nothing was passed over."""
        if not self.words():
            return {}
        counted = [self.notes, dict(self.functions), self.times, self.by_ns, self.odd_times]
        return {METADATA: json.dumps(counted).encode()}

    def words(self) -> tuple[str, ...]:
        """`42 notes of clients`, `3 times that run back by up to 5.0 s`; empty where nothing was passed over."""
        parts = [_counted(self.notes, "note of clients", "notes of clients")]
        named = sorted(self.functions.items(), key=lambda pair: (-pair[1], pair[0]))
        parts += [_counted(rows, f"row of {f[:40]}", f"rows of {f[:40]}") for f, rows in named[:NAMES_SHOWN]]
        more = named[NAMES_SHOWN:]
        if more:
            parts.append(f"{sum(rows for _, rows in more)} rows of {len(more)} other functions")
        worst = _span(self.by_ns)
        parts.append(_counted(self.times, f"time that runs back by {worst}", f"times that run back by up to {worst}"))
        parts.append(_counted(self.odd_times, "time that is no number", "times that are no numbers"))
        return tuple(filter(None, parts))


def _counted(number: int, one: str, several: str) -> str:
    return "" if not number else f"{number} {one if number == 1 else several}"


def _span(ns: int) -> str:
    if ns >= 100_000_000:
        return f"{ns / 1e9:.1f} s"
    return f"{ns / 1e6:.3g} ms" if ns >= 10_000 else f"{ns} ns"


def passed_over(history: Path | pa.Table) -> PassedOver:
    """What lies with a history of ours; nothing for a file of another kind. Raises OSError."""
    counted = metadata_of(history).get(METADATA)
    if not counted:
        return PassedOver()
    notes, functions, times, by_ns, odd_times = json.loads(counted)
    return PassedOver(notes=notes, functions=Counter(functions), times=times, by_ns=by_ns, odd_times=odd_times)
