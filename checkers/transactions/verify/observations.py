"""What a history shows of its transactions at any model: what they read and wrote, and whether they happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from checkers.transactions.verify.history import INITIAL, WORD, Operation, Refuted, TransactionHistory


@dataclass(frozen=True, kw_only=True)
class Observations:
    history: TransactionHistory
    _operations: dict[int, list[Operation]] = field(default_factory=dict)

    def require_ended_before(self, before: int, after: int) -> None:
        if not self.history.ok[before] or self.history.end[before] >= self.history.start[after]:
            raise Refuted(f"{self.history.name(before)} had not ended when {self.history.name(after)} began")

    def require_writer(self, transaction: int, key: int) -> None:
        self.require_committed(transaction)
        if transaction != INITIAL and self.written(transaction, key) is None:
            raise Refuted(f"{self.history.name(transaction)} did not write {self.history.keys[key]}")

    def require_committed(self, transaction: int) -> None:
        if transaction == INITIAL or self.history.ok[transaction]:
            return
        shown = (
            (key, value) in self._read_of_indefinite
            for is_write, key, value in self.operations(transaction)
            if is_write
        )
        if self.history.failed[transaction] or not any(shown):
            raise Refuted(f"{self.history.name(transaction)} is not known to have happened")

    def require_read(self, reader: int, key: int, writer: int) -> None:
        if not any(key == of and self.is_of(writer, of, value) for of, value in self.reads(reader)):
            source = self.history.name(writer)
            raise Refuted(f"{self.history.name(reader)} did not read {self.history.keys[key]} from {source}")

    def has_read(self, reader: int, key: int, value: int | None) -> bool:
        """Whether it read this before it wrote the key itself."""
        return (key, value) in self.reads(reader)

    def is_of(self, writer: int, key: int, value: int | None) -> bool:
        """Whether the value read, for a list its last element, is what the writer left there."""
        return value is None if writer == INITIAL else value is not None and self.written(writer, key) == value

    def written(self, transaction: int, key: int) -> int | None:
        """The last write of the key."""
        return next(reversed(self.all_written(transaction, key)), None)

    def all_written(self, transaction: int, key: int) -> list[int]:
        """All values that it wrote to the key, in program order. The initial transaction wrote none."""
        if transaction == INITIAL:
            return []
        operations = self.operations(transaction)
        return [value for is_write, of, value in operations if is_write and of == key and isinstance(value, int)]

    def reads(self, transaction: int) -> list[tuple[int, int | None]]:
        """(key, value or last element) of what it read before it wrote the key itself, in its order."""
        reads: list[tuple[int, int | None]] = []
        own: set[int] = set()
        for is_write, key, value in self.operations(transaction):
            if is_write:
                own.add(key)
            elif key not in own:
                reads.append((key, _last_element(value) if isinstance(value, bytes) else value))
        return reads

    def operations(self, transaction: int) -> list[Operation]:
        if transaction == INITIAL:
            return []
        if transaction not in self._operations:
            self._operations[transaction] = self.history.operations(transaction)
        return self._operations[transaction]

    @cached_property
    def place(self) -> dict[int, dict[int, int]]:
        """key -> element -> its place in the longest list that was read."""
        return {
            key: {element: at for at, element in enumerate(elements)} for key, elements in self.history.longest.items()
        }

    @cached_property
    def _read_of_indefinite(self) -> set[tuple[int, Any]]:
        """(key, value) of all that indefinite transactions wrote and others read."""
        history = self.history
        if history.lists:
            return {(key, element) for key, elements in self.place.items() for element in elements}
        indefinite = ~history.ok & ~history.failed
        value = history.value.fill_null(0).to_numpy()
        given = history.value.is_valid().to_numpy(zero_copy_only=False)
        written = value[history.is_write & indefinite[history.transaction]]
        reads = np.flatnonzero(~history.is_write & given & np.isin(value, written))
        return set(zip(history.key[reads].tolist(), value[reads].tolist(), strict=True))


def _last_element(value: bytes) -> int | None:
    return int.from_bytes(value[-WORD:], "little", signed=True) if value else None
