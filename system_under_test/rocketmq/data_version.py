"""Which state a table is in: equal versions, equal tables. It travels and is kept as RocketMQ's DataVersion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DataVersion:
    """`state_version` is the master epoch under which the table was changed last, `counter` how often it was."""

    state_version: int = 0
    timestamp_ms: int = 0
    counter: int = 0

    def __str__(self) -> str:
        return f"{self.state_version}.{self.timestamp_ms}.{self.counter}"

    def next(self, state_version: int, now_ms: int) -> DataVersion:
        return DataVersion(state_version=state_version, timestamp_ms=now_ms, counter=self.counter + 1)

    def as_json(self) -> dict[str, int]:
        return {"counter": self.counter, "stateVersion": self.state_version, "timestamp": self.timestamp_ms}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DataVersion:
        """Brokers before 5.0 know no state version. Raises ValueError, KeyError, TypeError, AttributeError."""
        numbers = value.get("stateVersion", 0), value["timestamp"], value["counter"]
        if not all(type(number) is int for number in numbers):
            raise ValueError(f"a data version needs three whole numbers, got {numbers}")
        return cls(state_version=numbers[0], timestamp_ms=numbers[1], counter=numbers[2])
