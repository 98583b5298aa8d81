"""Whether a table is a history: dense indices, time that never runs back, processes that do one thing at a time.

Claims, for a history that passes: index i is in row i; time never decreases; every completion follows
an invocation of the same process and the same f; a process has at most one operation open and is never
used again after `info`. Open invocations at the end are legal (the run was cut off), and so is anything the
nemesis does in its own process. Not claimed: that values fit the workload.

Streaming: memory is bounded by one batch, plus one number for each process that is open or ended in `info`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harness.operation import NEMESIS
from harness.record.history.pairing import by_process
from harness.record.history.schema import OPERATION_TYPES, MalformedHistory, conform

VALIDATED = ("index", "time", "process", "type", "f")
"""The columns that validation looks at."""

_INVOKE, _OK, _FAIL, _INFO = range(4)
_IDLE, _OPEN, _RETIRED = range(3)
_STATE_AFTER = np.array([_OPEN, _IDLE, _IDLE, _RETIRED], dtype=np.int8)


@dataclass
class _Processes:
    """What must be remembered from one batch to the next."""

    rows: int = 0
    time: int = 0
    open_f: dict[int, str] = field(default_factory=dict)
    retired: set[int] = field(default_factory=set)

    def state(self, process: int) -> int:
        return _OPEN if process in self.open_f else _RETIRED if process in self.retired else _IDLE


@dataclass(frozen=True)
class _Finding:
    offset: int
    reason: str


def validate(batches: Iterable[pa.RecordBatch], *, path: Path | None = None) -> Iterator[pa.RecordBatch]:
    """The same batches, each with the exact types of the schema; raises MalformedHistory at the first bad row."""
    seen = _Processes()
    for batch in batches:
        try:
            conformed = conform(batch)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise MalformedHistory(seen.rows, f"values do not fit their column: {error}", path=path) from error
        finding = _first_finding(conformed, seen)
        if finding is not None:
            raise MalformedHistory(seen.rows + finding.offset, finding.reason, path=path)
        seen.rows += len(batch)
        yield conformed


def _first_finding(batch: pa.RecordBatch, seen: _Processes) -> _Finding | None:
    if len(batch) == 0:
        return None
    findings = [finding for finding in (_nulls(batch, name) for name in VALIDATED) if finding]
    if not findings:
        types = _codes(batch, "type", OPERATION_TYPES)
        candidates = (_types(batch, types), _index(batch, seen), _time(batch, seen), _processes(batch, types, seen))
        findings = [finding for finding in candidates if finding]
    return min(findings, key=lambda finding: finding.offset, default=None)


def _nulls(batch: pa.RecordBatch, name: str) -> _Finding | None:
    column = batch.column(name)
    if column.null_count == 0:
        return None
    offset = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
    return _Finding(offset, f"{name} is null; every row needs one")


def _codes(batch: pa.RecordBatch, name: str, names: tuple[str, ...]) -> npt.NDArray[np.int8]:
    """Position of each value in `names`, -1 for values that are not among them."""
    column = batch.column(name)
    table = np.array(
        [names.index(value) if value in names else -1 for value in column.dictionary.to_pylist()] or [-1], dtype=np.int8
    )
    codes: npt.NDArray[np.int8] = table[column.indices.to_numpy()]
    return codes


def _first(bad: npt.NDArray[np.bool_]) -> int | None:
    offset = int(np.argmax(bad))
    return offset if bad[offset] else None


def _types(batch: pa.RecordBatch, types: npt.NDArray[np.int8]) -> _Finding | None:
    offset = _first(types < 0)
    if offset is None:
        return None
    came = batch.column("type")[offset].as_py()
    return _Finding(offset, f"type must be one of {', '.join(OPERATION_TYPES)}, it is {came!r}")


def _index(batch: pa.RecordBatch, seen: _Processes) -> _Finding | None:
    index = batch.column("index").to_numpy()
    offset = _first(index != np.arange(seen.rows, seen.rows + len(index)))
    if offset is None:
        return None
    return _Finding(
        offset,
        f"index must be {seen.rows + offset} (dense from 0, in the order recorded), it is {index[offset]}; "
        "sort the rows by index, and leave none out",
    )


def _time(batch: pa.RecordBatch, seen: _Processes) -> _Finding | None:
    time = batch.column("time").to_numpy()
    before = np.concatenate(([seen.time], time[:-1]))
    offset = _first(time < before)
    if offset is None:
        seen.time = int(time[-1])
        return None
    if time[offset] < 0:
        return _Finding(offset, f"time must be nanoseconds since the test began, at least 0, it is {time[offset]}")
    return _Finding(
        offset,
        f"time runs back: {time[offset]} ns after {before[offset]} ns in the row before; "
        "record all operations on one monotonic clock",
    )


def _processes(batch: pa.RecordBatch, types: npt.NDArray[np.int8], seen: _Processes) -> _Finding | None:
    """Check that each process alternates, and remember how each one ends.

    A row's state before it is decided by the row before it of the same process alone, which is sound up
    to the first finding, and only the first one is reported.
    """
    process = batch.column("process").to_numpy()
    negative = _first(process < NEMESIS)
    if negative is not None:
        return _Finding(negative, f"process must be -1 (nemesis) or at least 0, it is {process[negative]}")
    clients = np.flatnonzero((process >= 0) & (types >= 0))
    if len(clients) == 0:
        return None
    order = clients[by_process(process[clients])]
    p, t = process[order], types[order]
    f = batch.column("f").indices.to_numpy()[order]
    names = batch.column("f").dictionary.to_pylist()

    starts = np.concatenate(([True], p[1:] != p[:-1]))
    state = np.empty(len(order), dtype=np.int8)
    state[1:] = _STATE_AFTER[t[:-1]]
    state[starts] = [seen.state(q) for q in p[starts].tolist()]
    f_before = np.concatenate(([-1], f[:-1]))
    f_before[starts] = [_position(names, seen.open_f.get(q)) for q in p[starts].tolist()]

    invoked = t == _INVOKE
    bad = np.where(invoked, state != _IDLE, state != _OPEN) | (~invoked & (state == _OPEN) & (f_before != f))
    if bad.any():
        worst = np.flatnonzero(bad)[np.argmin(order[bad])]
        before = names[f_before[worst]] if f_before[worst] >= 0 else seen.open_f.get(int(p[worst]), "")
        return _Finding(
            int(order[worst]),
            _alternation(int(p[worst]), OPERATION_TYPES[t[worst]], names[f[worst]], int(state[worst]), before),
        )

    ends = np.concatenate((starts[1:], [True]))
    for q, last, f_code in zip(p[ends].tolist(), t[ends].tolist(), f[ends].tolist(), strict=True):
        seen.open_f.pop(q, None)
        if last == _INVOKE:
            seen.open_f[q] = names[f_code]
        elif last == _INFO:
            seen.retired.add(q)
    return None


def _position(names: list[str], name: str | None) -> int:
    return names.index(name) if name in names else -1


def _alternation(process: int, operation_type: str, f: str, state: int, open_f: str) -> str:
    if state == _RETIRED:
        return (
            f"process {process} is used again ({operation_type} {f}) after an info; "
            "a new process number is needed, for the old operation may still be running"
        )
    if state == _OPEN and operation_type == "invoke":
        return f"process {process} invokes {f} while its {open_f} is still open; expected the completion first"
    if state == _OPEN:
        return f"process {process} completes {f}, but what it has open is {open_f}; both rows must have the same f"
    return f"process {process} has {operation_type} of {f} without an open invocation; expected an invoke first"
