"""`usage.jsonl`: what each node's program held of its machine, sampled while a run went on.

    {"time": 20000000000, "node": "b1", "memory_bytes": 41943040, "handles": 37}

Memory is resident memory of all processes of the program; handles are their open files, sockets among them. A program
that is down has no row. Whether a node grows is told by its quarters: the median of the first quarter of its samples
beside that of the last one, so that single peaks and restarts tell nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

LEAST_SAMPLES = 4
"""How many samples of a node there must be; with fewer there are no quarters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageRow:
    time_ns: int
    node: str
    memory_bytes: int
    handles: int

    def to_json(self) -> dict[str, int | str]:
        return {
            "time": self.time_ns,
            "node": self.node,
            "memory_bytes": self.memory_bytes,
            "handles": self.handles,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> UsageRow:
        """Raises KeyError, TypeError for what is no such row."""
        time_ns, node, memory, handles = (data[name] for name in ("time", "node", "memory_bytes", "handles"))
        if not (isinstance(time_ns, int) and isinstance(memory, int) and isinstance(handles, int)):
            raise TypeError(f"expected whole numbers, got {data!r}")
        return cls(time_ns=time_ns, node=str(node), memory_bytes=memory, handles=handles)


@dataclass(frozen=True, kw_only=True)
class Quarters:
    """Medians of the first and the last quarter of a node's samples."""

    samples: int
    memory_bytes: tuple[int, int]
    handles: tuple[int, int]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def read_usage(path: Path) -> tuple[UsageRow, ...]:
    """Those of a run; none where nothing was sampled. A last line that is torn is left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    rows = []
    for line in lines:
        try:
            rows.append(UsageRow.from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(rows)


def quarters_of(rows: Sequence[UsageRow]) -> Mapping[str, Quarters]:
    """Node -> its quarters, by name; of nodes that were sampled often enough."""
    by_node: dict[str, list[UsageRow]] = {}
    for row in rows:
        by_node.setdefault(row.node, []).append(row)
    return {node: _quarters(own) for node, own in sorted(by_node.items()) if len(own) >= LEAST_SAMPLES}


def _quarters(rows: Sequence[UsageRow]) -> Quarters:
    count = len(rows) // 4

    def ends(values: Sequence[int]) -> tuple[int, int]:
        return round(median(values[:count])), round(median(values[-count:]))

    return Quarters(
        samples=len(rows),
        memory_bytes=ends([row.memory_bytes for row in rows]),
        handles=ends([row.handles for row in rows]),
    )
