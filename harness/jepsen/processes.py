"""What each process has open, and what its operations are called here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.jepsen.operation_columns import Column
from harness.operation import NEMESIS
from harness.record.history.schema import OPERATION_TYPES

INVOKE, OK, FAIL, INFO = range(4)


@dataclass
class Findings:
    """The first row of a batch that makes it no history."""

    row: int | None = None
    reason: str = ""

    def add(self, row: int, reason: str) -> None:
        if self.row is None or row < self.row:
            self.row, self.reason = row, reason

    def at_first(self, is_so: npt.NDArray[np.bool_], reason: str) -> None:
        """At the first row where it is so, if it is anywhere."""
        if is_so.any():
            self.add(int(is_so.argmax()), reason)


DRAIN, LOGGED_BY_A_DRAIN = "drain", "dequeue"
"""A drain of Jepsen's older tests writes what it took as dequeues of its own process, while it is still open."""


@dataclass
class _Open:
    """An operation that has not completed."""

    f: str
    key: str | None
    content: Any
    """Its value as recorded; a code of the batch in which it was invoked until that is over."""
    of_batch: bool = True
    taken: list[Any] | None = None
    """What a drain has written of itself."""


@dataclass
class Followed:
    """What the rows of a batch are."""

    numbers: list[int] = field(default_factory=list)
    """The process of each row; NEMESIS also for rows that are part of no operation."""
    keys: list[str | None] = field(default_factory=list)
    """Those of invocations, also for what completes them."""
    fs: dict[int, str] = field(default_factory=dict)
    """Row of a completion under another name -> what it completes."""
    passed: list[int] = field(default_factory=list)
    """Rows of clients that are part of no operation."""
    logged: list[int] = field(default_factory=list)
    """Rows that a drain wrote of what it took."""
    beside: list[int] = field(default_factory=list)
    """Completions that count for nothing, and whose value is not what was asked: a reason."""
    taken: dict[int, list[Any]] = field(default_factory=dict)
    """Completions of drains that have written what they took."""


class Processes:
    """Follows clients from operation to operation; a batch at a time."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._numbers: dict[int, int] = {}
        self._next_number = 0

    def follow(
        self,
        kinds: list[int],
        processes: list[int],
        fs: list[str],
        is_known: list[bool],
        keys: list[str | None],
        content: Column,
        asking: frozenset[str],
        findings: Findings,
    ) -> Followed:
        """Stops at what is no history. `is_known`: of the workload's functions; `content`: the values as recorded;
        `asking`: functions that are invoked with one."""
        told = Followed()
        numbers, own_keys = told.numbers, told.keys
        opened, known = self._open, self._numbers
        codes = content.codes.tolist()
        for row, (kind, process, f, key) in enumerate(zip(kinds, processes, fs, keys, strict=False)):
            if process == NEMESIS:
                numbers.append(NEMESIS)
                own_keys.append(None)
                continue
            invoked = opened.get(process)
            is_logged = self._is_logged(row, kind, f, invoked, content)
            if is_logged or _is_no_operation(kind, is_known[row], invoked):
                (told.logged if is_logged else told.passed).append(row)
                numbers.append(NEMESIS)
                own_keys.append(None)
                continue
            if kind == INVOKE:
                if invoked is not None:
                    findings.add(row, f"process {process} invokes {f} while its {invoked.f} is still open")
                    break
                opened[process] = _Open(f, key, codes[row])
                number = known.get(process)
                if number is None:
                    number = known[process] = self._next_number
                    self._next_number += 1
            else:
                is_other = invoked is None or _is_other(f, key, invoked)
                if invoked is None or (is_other and kind == OK):
                    findings.add(row, _unfit(process, kind, f, key, invoked))
                    break
                del opened[process]
                if kind >= FAIL and invoked.f in asking:
                    self._note_beside(told, row, is_other, invoked, content)
                if invoked.f != f:
                    told.fs[row] = invoked.f
                if invoked.taken is not None:
                    told.taken[row] = invoked.taken
                key = invoked.key
                number = known.pop(process) if kind == INFO else known[process]
            numbers.append(number)
            own_keys.append(key)
        for one in opened.values():
            if one.of_batch:
                one.content, one.of_batch = content.values[one.content], False
        return told

    def unfinished_drains(self) -> list[tuple[int, str | None, list[Any]]]:
        """Of drains that have not completed and wrote what they took: the process, the key and that."""
        return [
            (self._numbers[process], one.key, one.taken) for process, one in self._open.items() if one.taken is not None
        ]

    def _is_logged(self, row: int, kind: int, f: str, invoked: _Open | None, content: Column) -> bool:
        """Whether an open drain wrote a row of what it takes."""
        if invoked is None or invoked.f != DRAIN:
            return False
        if (kind, f) == (OK, LOGGED_BY_A_DRAIN):
            invoked.taken = [] if invoked.taken is None else invoked.taken
            invoked.taken.append(content.values[content.codes[row]])
            return True
        return invoked.taken is not None and (kind, f) == (INVOKE, DRAIN)

    def _note_beside(self, followed: Followed, row: int, is_other: bool, invoked: _Open, content: Column) -> None:
        """Where the value of what failed, or has an unknown outcome, is not that of its invocation."""
        code = content.codes[row]
        if content.values[code] is None or (invoked.of_batch and invoked.content == code and not is_other):
            return
        asked = content.values[invoked.content] if invoked.of_batch else invoked.content
        if is_other or content.values[code] != asked:
            followed.beside.append(row)


def _is_other(f: str, key: str | None, invoked: _Open) -> bool:
    """Whether a completion is of another function or key than what it completes; that a read is the last one may be
    marked where it is invoked alone."""
    is_final = (invoked.f, f) == ("final-read", "read")
    return (invoked.f != f and not is_final) or (key is not None and key != invoked.key)


def _is_no_operation(kind: int, is_known: bool, invoked: _Open | None) -> bool:
    """Whether a row of a client neither invokes nor completes."""
    if invoked is None:
        return not is_known or kind == INFO
    return not is_known and kind != FAIL


def _unfit(process: int, kind: int, f: str, key: str | None, invoked: _Open | None) -> str:
    if invoked is None:
        return f"process {process} has {OPERATION_TYPES[kind]} of {f} without an open invocation"
    if invoked.f != f:
        return f"process {process} completes {f}, but what it has open is {invoked.f}"
    where = "without a key" if invoked.key is None else f"on {invoked.key}"
    return f"process {process} completes {f} on key {key}, but invoked it {where}"
