"""What each process has open, and what its operations are called here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


class Processes:
    """Follows clients from operation to operation; a batch at a time."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, str | None]] = {}
        self._numbers: dict[int, int] = {}
        self._next_number = 0

    def follow(
        self, kinds: list[int], processes: list[int], fs: list[str], keys: list[str | None], findings: Findings
    ) -> tuple[list[int], list[str | None]]:
        """The number and the key of each operation: those of its invocation, where it completes one.

        Stops at what is no history.
        """
        numbers: list[int] = []
        own_keys: list[str | None] = []
        opened, known = self._open, self._numbers
        for row, (kind, process, f, key) in enumerate(zip(kinds, processes, fs, keys, strict=True)):
            if process == NEMESIS:
                numbers.append(NEMESIS)
                own_keys.append(None)
                continue
            if kind == INVOKE:
                if process in opened:
                    findings.add(row, f"process {process} invokes {f} while its {opened[process][0]} is still open")
                    break
                opened[process] = (f, key)
                number = known.get(process)
                if number is None:
                    number = known[process] = self._next_number
                    self._next_number += 1
            else:
                invoked = opened.pop(process, None)
                if invoked is None or invoked[0] != f or (key is not None and key != invoked[1]):
                    findings.add(row, _unfit(process, kind, f, key, invoked))
                    break
                key = invoked[1]
                number = known.pop(process) if kind == INFO else known[process]
            numbers.append(number)
            own_keys.append(key)
        return numbers, own_keys


def _unfit(process: int, kind: int, f: str, key: str | None, invoked: tuple[str, str | None] | None) -> str:
    if invoked is None:
        return f"process {process} has {OPERATION_TYPES[kind]} of {f} without an open invocation"
    if invoked[0] != f:
        return f"process {process} completes {f}, but what it has open is {invoked[0]}"
    where = "without a key" if invoked[1] is None else f"on {invoked[1]}"
    return f"process {process} completes {f} on key {key}, but invoked it {where}"
